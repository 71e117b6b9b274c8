"""`maple eval`: how strong an agent is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from maple.cli.options import JsonOption, RunsDirOption, SetOption
from maple.cli.output import notes, print_json, print_table, results
from maple.core.errors import ConfigError, GameError, RunError
from maple.core.sources import load_config

if TYPE_CHECKING:
    from maple.core.threads import Team
    from maple.games.contract import Game
    from maple.training.agent import Agent
    from maple.training.evaluate import Player

__all__ = ["evaluate_run", "evaluation", "print_evaluations", "seated_player"]

HANDS = {"rollout": 3000}  # by opponent, where they are slow
GAME_HANDS = {"showdown": 400, "wargame": 400}
DEFAULT_HANDS = 12_000
EXTERNAL_GAMES = 200


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
    from maple.core.threads import Team
    from maple.games import GAMES, make_game
    from maple.training.agent import load_agent
    from maple.training.build import available_cores
    from maple.training.evaluate import evaluate

    with Team(available_cores()) as team:
        agent = load_agent(run, runs_dir, team)
        asked = _asked(agent, settings)
        game = make_game(agent.config.name, {**agent.config.game, **asked})
        if against is None:
            against = ["random"] * (game.spec.seats - 1)
        if len(against) != game.spec.seats - 1:
            raise GameError(
                f"--against names {len(against)} opponents, but {game.spec.name} with {game.spec.seats} seats has "
                f"{game.spec.seats - 1}; write for example --against {','.join(['random'] * (game.spec.seats - 1))}"
            )
        others = [seated_player(name, game, runs_dir, team) for name in against]
        usual = GAME_HANDS.get(game.spec.name, DEFAULT_HANDS if game.spec.name in GAMES else EXTERNAL_GAMES)
        count = hands or min((min(usual, HANDS.get(name, usual)) for name in against), default=usual)
        with Progress(console=notes, disable=quiet or not notes.is_terminal, transient=True) as bar:
            task = bar.add_task(f"playing {','.join(against) or game.spec.name}", total=count)
            result = evaluate(game, agent, others, count, seed, team, lambda done, _: bar.update(task, completed=done))
    return {
        "run": str(run),
        "steps": agent.steps,
        "against": against,
        "metric": result.metric,
        **result.figures,
        "ci95": list(result.ci95),
        "hands": result.hands,
        "games": result.games,
        "per_seat": list(result.per_seat),
        "seed": seed,
        "game": game.settings.model_dump(),
    }


def seated_player(name: str, game: Game, runs_dir: Path | None, team: Team) -> Player:
    """A scripted opponent, or the agent of a run."""
    from maple.training.agent import load_agent
    from maple.training.evaluate import bot_player

    if name in game.spec.opponents:
        return bot_player(game, name, team)
    try:
        other = load_agent(name, runs_dir, team)
    except RunError:
        bots = ", ".join(game.spec.opponents)
        raise GameError(f"--against {name}: neither an opponent of {game.spec.name} ({bots}) nor a run") from None
    if other.config.name != game.spec.name:
        raise GameError(f"--against {name}: that run plays {other.config.name}, not {game.spec.name}")
    return other


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


def print_evaluations(title: str, rows: list[dict[str, Any]]) -> None:
    """A table of evaluations, an opponent a row."""
    if rows and rows[0]["metric"] == "win_rate":
        (_print_wargames if "vp_margin" in rows[0] else _print_win_rates)(title, rows)
        return
    if rows and rows[0]["metric"] != "points_per_hand":
        _print_external(title, rows)
        return
    columns = ["against", "points a hand", "95 % interval", "foul", "royalties", "fantasyland", "stay", "hands"]
    cells = [
        [
            ", ".join(row["against"]),
            f"{row['points_per_hand']:+.2f}",
            f"{row['ci95'][0]:+.2f} … {row['ci95'][1]:+.2f}",
            f"{row['foul']:.1%}",
            f"{row['royalty']:.2f}",
            f"{row['fantasyland_entry']:.1%}",
            f"{row['fantasyland_stay']:.1%}",
            f"{row['hands']:,}",
        ]
        for row in rows
    ]
    print_table(title, columns, cells)


def _print_win_rates(title: str, rows: list[dict[str, Any]]) -> None:
    columns = ["against", "win rate", "95 % interval", "turns", "cut off", "battles"]
    cells = [
        [
            ", ".join(row["against"]),
            f"{row['win_rate']:.1%}",
            f"{row['ci95'][0]:.1%} … {row['ci95'][1]:.1%}",
            f"{row['turns']:.1f}",
            f"{row['truncated']:.1%}",
            f"{row['games']:,}",
        ]
        for row in rows
    ]
    print_table(title, columns, cells)


def _print_wargames(title: str, rows: list[dict[str, Any]]) -> None:
    ends = {"end_wipe_out": "wipe-outs", "end_round_limit": "full length", "end_step_cap": "cut off"}
    columns = [
        "against",
        "win rate",
        "95 % interval",
        "VP margin",
        "kills",
        "losses",
        "charges",
        *ends.values(),
        "games",
    ]
    cells = [
        [
            ", ".join(row["against"]),
            f"{row['win_rate']:.1%}",
            f"{row['ci95'][0]:.1%} … {row['ci95'][1]:.1%}",
            f"{row['vp_margin']:+.1f}",
            f"{row['kills']:.2f}",
            f"{row['losses']:.2f}",
            f"{row['charges']:.2f}",
            *(f"{row[key]:.0%}" for key in ends),
            f"{row['games']:,}",
        ]
        for row in rows
    ]
    print_table(title, columns, cells)
    lowest = min(rows, key=lambda row: float(row["win_rate"]))
    if len(rows) > 1:
        results.print(f"lowest win rate: {lowest['win_rate']:.1%}, against {', '.join(lowest['against'])}")


def _print_external(title: str, rows: list[dict[str, Any]]) -> None:
    """The same for envs of the user's own."""
    metric = rows[0]["metric"]
    columns = ["against", metric.replace("_", " "), "95 % interval", "length", "truncated", "games"]
    cells = [
        [
            ", ".join(row["against"]) or "nobody",
            f"{row[metric]:,.2f}",
            f"{row['ci95'][0]:,.2f} … {row['ci95'][1]:,.2f}",
            f"{row['length']:,.1f}",
            f"{row['truncated']:.1%}",
            f"{row['games']:,}",
        ]
        for row in rows
    ]
    print_table(title, columns, cells)


def _evaluate_each(
    run: str, hands: int | None, seed: int, settings: list[str], runs_dir: Path | None, json: bool
) -> None:
    """Every scripted opponent in turn, in all other seats, and the lowest of the results."""
    from maple.games import make_game
    from maple.training.agent import load_agent

    config = load_agent(run, runs_dir).config
    spec = make_game(config.name, config.game).spec
    against = [[name] * (spec.seats - 1) for name in spec.opponents] if spec.seats > 1 else [[]]
    rows = [evaluation(run, names, hands, seed, settings, runs_dir, quiet=json) for names in against]
    lowest = min(rows, key=lambda row: float(row[row["metric"]]))
    if json:
        figures = {"metric": lowest["metric"], "value": lowest[lowest["metric"]], "against": lowest["against"]}
        print_json({"run": run, "rows": rows, "lowest": figures})
    else:
        print_evaluations(f"{rows[0]['run']} after {rows[0]['steps']:,} steps", rows)


def evaluate_run(
    run: Annotated[str, typer.Argument(help="A run's name or path, or a checkpoint folder.", metavar="RUN")],
    against: Annotated[
        str | None,
        typer.Option(
            help="The other seats, opponents or runs: random,random, safe,first@best; or each, every opponent in turn "
            "[default: random]."
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
    - `maple eval general --against each` (every scripted opponent, and the lowest result)
    - `maple eval pole` (an env with one seat has no opponents: its mean return)
    """
    if against == "each":
        _evaluate_each(run, hands, seed, settings or [], runs_dir, json)
        return
    names = [name.strip() for name in against.split(",")] if against else None
    row = evaluation(run, names, hands, seed, settings or [], runs_dir, quiet=json)
    if json:
        print_json(row)
    else:
        print_evaluations(f"{row['run']} after {row['steps']:,} steps", [row])
