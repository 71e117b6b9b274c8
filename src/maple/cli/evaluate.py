"""`maple eval`: how strong an agent is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from maple.cli.options import JsonOption, RunsDirOption, SetOption
from maple.cli.output import notes, print_json, print_table, results
from maple.core.errors import ConfigError, GameError, RunError
from maple.core.sources import load_config
from maple.runs.store import RunFolder, find_run, write_atomically

if TYPE_CHECKING:
    from maple.arena.record import GameRecord
    from maple.core.threads import Team
    from maple.games.contract import Game
    from maple.training.agent import Agent
    from maple.training.evaluate import Player, Result

__all__ = ["evaluate_run", "evaluation", "find_player", "print_comparison", "print_evaluations", "print_where_to_watch"]

HANDS = {"rollout": 3000}  # by opponent, where they are slow
GAME_HANDS = {"showdown": 400, "wargame": 400}
DEFAULT_HANDS = 12_000
EXTERNAL_GAMES = 200
HERE: dict[str, dict[str, Any]] = {"showdown": {"servers": ""}}  # paired deals are only to be had on this machine


def evaluation(
    run: str | Path,
    against: list[str] | None,
    hands: int | None,
    seed: int,
    settings: list[str],
    runs_dir: Path | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Play a run's agent against scripted opponents (`random` unless told); returns its figures."""
    from maple.arena.choose import evaluation_arena
    from maple.arena.record import Scribe
    from maple.core.cores import available_cores
    from maple.core.threads import Team
    from maple.games import GAMES, make_game
    from maple.games.bridged import Bridged
    from maple.training.agent import load_agent
    from maple.training.evaluate import evaluate

    with Team(available_cores()) as team:
        agent, folder = load_agent(run, runs_dir, team), _folder_of(run, runs_dir)
        asked = _asked(agent, settings)
        game = make_game(agent.config.name, {**agent.config.game, **HERE.get(agent.config.name, {}), **asked})
        against = _opposite(game, against)
        others = [find_player(name, game, runs_dir, team) for name in against]
        usual = GAME_HANDS.get(game.spec.name, DEFAULT_HANDS if game.spec.name in GAMES else EXTERNAL_GAMES)
        count = hands or min((min(usual, HANDS.get(name, usual)) for name in against), default=usual)
        with Progress(console=notes, disable=quiet or not notes.is_terminal, transient=True) as bar:
            task = bar.add_task(f"playing {','.join(against) or game.spec.name}", total=count)
            scribe, anomalies = Scribe(), list[Mapping[str, Any]]()
            envs = partial(evaluation_arena, limits=agent.config.workers, log=folder.log, keep=anomalies.append)
            result = evaluate(
                game,
                agent,
                others,
                count,
                seed,
                team,
                lambda done, _: bar.update(task, completed=done),
                envs,
                scribe.over,
            )
    if result.lost:
        where = folder.path / "run.log"
        notes.print(f"{result.lost} games were lost and others played in their stead; see {where}", soft_wrap=True)
    if anomalies:
        _keep_anomalies(folder, anomalies)
    record = scribe.record(game, seed, [run.name if isinstance(run, Path) else run, *against])
    return {
        "run": str(run),
        "steps": agent.steps,
        "against": against,
        **_told(result),
        **({"anomalies": len(anomalies)} if isinstance(game, Bridged) else {}),
        "seed": seed,
        "game": game.settings.model_dump(),
        "record": _keep_game(folder, agent.steps, record) if record else None,
    }


def _opposite(game: Game, against: list[str] | None) -> list[str]:
    """Who sits in the other seats."""
    seats = game.spec.seats - 1
    if against is None:
        return ["random"] * seats
    if len(against) != seats:
        raise GameError(
            f"--against names {len(against)} opponents, but {game.spec.name} with {game.spec.seats} seats has "
            f"{seats}; write for example --against {','.join(['random'] * seats)}"
        )
    return against


def _told(result: Result) -> dict[str, Any]:
    """A result as it is written down."""
    return {
        "metric": result.metric,
        "win_rate": result.win_rate,
        "win_rate_ci95": result.win_rate_ci95,
        **result.figures,
        "ci95": list(result.ci95),
        "hands": result.hands,
        "games": result.games,
        "lost": result.lost,
        "per_seat": list(result.per_seat),
    }


def _is_ours(folder: RunFolder) -> bool:
    """Whether results belong there: a checkpoint that stands alone, or somebody else's folder, is left as it is."""
    return (folder.path / "config.json").is_file() and os.access(folder.path, os.W_OK)


def _keep(folder: RunFolder, rows: list[dict[str, Any]]) -> None:
    """Add results to a run's own."""
    if _is_ours(folder):
        folder.extend("evaluations.jsonl", rows)


def _keep_anomalies(folder: RunFolder, anomalies: list[Mapping[str, Any]]) -> None:
    """Add what went wrong in battles to a run's own, and say so."""
    where = ""
    if _is_ours(folder):
        folder.extend("anomalies.jsonl", anomalies)
        where = f"; they are kept in {folder.path / 'anomalies.jsonl'}"
    notes.print(f"{len(anomalies)} anomalies were noted{where}", soft_wrap=True)


def _keep_game(folder: RunFolder, steps: int, record: GameRecord) -> str | None:
    """Add an evaluation's first game to a run's own; the newest of each pairing and step stays."""
    if not _is_ours(folder):
        return None
    others = re.sub(r"[^A-Za-z0-9_.@-]+", "-", "-".join(record.players[1:]))
    path = folder.path / "games" / f"{steps}{'-' * bool(others)}{others}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, record.text())
    except (OSError, RunError) as error:
        notes.print(f"the evaluation's first game is not kept: {error}", soft_wrap=True)
        return None
    return str(path.relative_to(folder.path))


def print_where_to_watch(folder: RunFolder, rows: list[dict[str, Any]]) -> None:
    """Say how to look at a game of the evaluation in which the agent did worst."""
    kept = [row for row in rows if row["record"]]
    if kept:
        hardest = min(kept, key=lambda row: float(row[row["metric"]]))
        name = folder.read_json("config.json").get("name", "GAME")
        notes.print(f"a game of it: maple show {name} --replay {folder.path / hardest['record']}", soft_wrap=True)


def _folder_of(run: str | Path, runs_dir: Path | None) -> RunFolder:
    """The folder of a run, or of the run that a checkpoint is of: its log takes what an env's workers have to say."""
    found = find_run(str(run), runs_dir)
    return RunFolder(next((one for one in (found, *found.parents) if (one / "checkpoints").is_dir()), found))


def find_player(name: str, game: Game, runs_dir: Path | None, team: Team, option: str = "--against") -> Player:
    """A scripted opponent, or the agent of a run; `option` is where the user named it."""
    from maple.training.agent import load_agent_for
    from maple.training.evaluate import bot_player

    if name in game.spec.opponents:
        return bot_player(game, name, team)
    try:
        return load_agent_for(game, name, runs_dir, team)
    except RunError:
        bots = ", ".join(game.spec.opponents)
        raise GameError(f"{option} {name}: neither an opponent of {game.spec.name} ({bots}) nor a run") from None
    except GameError as error:
        raise GameError(f"{option} {name}: {error}") from None


def _asked(agent: Agent, settings: list[str]) -> dict[str, Any]:
    """The game's options among the settings; a change of caution is put into effect, anything else is a mistake."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if not key.startswith(("game.", "env.")) and key != "afterstate.caution":
            raise ConfigError(
                f"--set {key} changes nothing in an evaluation; it takes game.NAME and afterstate.caution"
            )
    config = load_config(agent.config.name, settings=settings)
    if any(setting.startswith("afterstate.caution") for setting in settings):
        agent.set_caution(config.afterstate.caution)
    return config.game


def _columns(row: dict[str, Any]) -> dict[str, Callable[[dict[str, Any]], str]]:
    """What a table of evaluations shows besides opponents, metric and interval, by the kind of game."""
    metric = row["metric"]
    if metric == "points_per_hand":
        return {
            "foul": lambda row: f"{row['foul']:.1%}",
            "royalties": lambda row: f"{row['royalty']:.2f}",
            "fantasyland": lambda row: f"{row['fantasyland_entry']:.1%}",
            "stay": lambda row: f"{row['fantasyland_stay']:.1%}",
            "hands": lambda row: f"{row['hands']:,}",
        }
    if "vp_margin" in row:
        return {
            "VP margin": lambda row: f"{row['vp_margin']:+.1f}",
            "kills": lambda row: f"{row['kills']:.2f}",
            "losses": lambda row: f"{row['losses']:.2f}",
            "charges": lambda row: f"{row['charges']:.2f}",
            "wipe-outs": lambda row: f"{row['end_wipe_out']:.0%}",
            "full length": lambda row: f"{row['end_round_limit']:.0%}",
            "cut off": lambda row: f"{row['end_step_cap']:.0%}",
            "games": lambda row: f"{row['games']:,}",
        }
    length = "turns" if metric == "win_rate" else "length"
    return {
        length: lambda row: f"{row[length]:,.1f}",
        "cut off": lambda row: f"{row['truncated']:.1%}",
        "games": lambda row: f"{row['games']:,}",
    }


def print_evaluations(title: str, rows: list[dict[str, Any]]) -> None:
    """A table of evaluations, an opponent a row."""
    more = _columns(rows[0])
    cells = [
        [", ".join(row["against"]) or "nobody", *metric_texts(row), *(show(row) for show in more.values())]
        for row in rows
    ]
    print_table(title, ["against", metric_name(rows[0]["metric"]), "95 % interval", *more], cells, spare=len(more))


def metric_name(metric: str) -> str:
    """What a game's figure of strength is called."""
    return {"points_per_hand": "points a hand"}.get(metric, metric.replace("_", " "))


def metric_texts(row: dict[str, Any]) -> tuple[str, str]:
    """The strength that an evaluation found, and its interval."""
    form = {"points_per_hand": "+.2f", "win_rate": ".1%"}.get(row["metric"], ",.2f")
    return format(row[row["metric"]], form), f"{row['ci95'][0]:{form}} … {row['ci95'][1]:{form}}"


def print_comparison(row: dict[str, Any], before: dict[str, Any]) -> None:
    """A line that says how an evaluation compares with the best before it on the same deals."""
    metric, against = row["metric"], ", ".join(row["against"]) or "nobody"
    now, then = float(row[metric]), float(before[metric])
    name = Path(before["run"]).name
    apart = row["ci95"][0] > before["ci95"][1] or row["ci95"][1] < before["ci95"][0]
    verdict = ("better than" if now > then else "behind") if apart else "not to be told apart from"
    results.print(f"against {against}: {now:.3f}, {verdict} the best before ({name}: {then:.3f})", soft_wrap=True)


def _every_opponent(run: str, runs_dir: Path | None) -> list[list[str]]:
    """The tables at which a run's agent meets each opponent in the box."""
    from maple.core.threads import Team
    from maple.games import make_game
    from maple.training.agent import load_agent

    with Team(1) as team:
        config = load_agent(run, runs_dir, team).config
    spec = make_game(config.name, config.game).spec
    return [[name] * (spec.seats - 1) for name in spec.opponents]


def evaluate_run(
    run: Annotated[str, typer.Argument(help="A run's name or path, or a checkpoint folder.", metavar="RUN")],
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="The other seats, opponents or runs: random,random or safe,first@best; all: each opponent in the box. "
            "May be given several times."
        ),
    ] = None,
    hands: Annotated[int | None, typer.Option(min=1, help="Hands to play, every rotation counted.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the deals.")] = 0,
    runs_dir: RunsDirOption = None,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Evaluate a run's agent on duplicate deals: the same cards with the agent in every seat.

    The game's options are the run's own unless `--set game.NAME=VALUE` says otherwise, and so is the player's caution
    unless `--set afterstate.caution=VALUE` does. The network plays alone.

    - `maple eval first --against random,random --hands 30000`
    - `maple eval first --against rollout,rollout --set game.fantasyland=off --json`
    - `maple eval first@best --against second,second`
    - `maple eval first --against all` (every opponent in the box, and against which it does worst)
    - `maple eval first --against safe,safe --against second,second --against first@best,first@best`
    - `maple eval pole` (an env with one seat has no opponents: its mean return)
    """
    asked: list[list[str] | None] = []
    for table in against or []:
        asked += _every_opponent(run, runs_dir) if table == "all" else [[name.strip() for name in table.split(",")]]
    several = len(against or []) > 1 or against == ["all"]
    rows = [evaluation(run, names, hands, seed, settings or [], runs_dir, quiet=json) for names in asked or [None]]
    lowest = min(rows, key=lambda row: float(row[row["metric"]]))
    folder = _folder_of(run, runs_dir)
    if json:
        print_json({"evaluations": rows, "lowest": lowest} if several else rows[0])
    else:
        print_evaluations(f"{run} after {rows[0]['steps']:,} steps", rows)
        if len(rows) > 1:
            results.print(f"lowest: {float(lowest[lowest['metric']]):.3f} against {', '.join(lowest['against'])}")
        print_where_to_watch(folder, rows)
    _keep(folder, rows)  # last: what was found is told even where the disk is full
