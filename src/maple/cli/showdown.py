"""`maple showdown`: what belongs to Pokémon Showdown alone."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from maple.cli.evaluate import print_evaluations
from maple.cli.options import JsonOption, RunsDirOption, SeedOption, SetOption
from maple.cli.output import notes, print_json, results, warn
from maple.cli.settings import battle_settings
from maple.core.errors import ConfigError, GameError, RunError, nearest

if TYPE_CHECKING:
    from maple.games.showdown.game import ShowdownGame
    from maple.runs.store import RunFolder
    from maple.training.agent import Agent
    from maple.training.evaluate import Player

__all__ = ["app"]

RunArgument = Annotated[
    str,
    typer.Argument(help="A run of showdown: its name, NAME@best, or a path; or an opponent in the box.", metavar="RUN"),
]
AtATimeOption = Annotated[int, typer.Option("--at-a-time", min=1, max=256, help="Battles side by side.")]
NameOption = Annotated[str, typer.Option("--as", help="The agent's name on the server, at most 18 characters.")]

app = typer.Typer(help="Pokémon Showdown: its simulator and its servers.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """A group of commands, also while there is only one."""


@app.command("setup")
def setup(json: JsonOption = False) -> None:
    """Install the simulator's pinned npm packages beside this Python; afterwards nothing needs a network."""
    from maple.games.showdown.runtime import find_node, install, node_version

    node = find_node()
    with notes.status("installing the simulator"):
        folder = install(notes.print)
    found = {"node": node, "node_version": node_version(node), "packages": str(folder)}
    if json:
        print_json(found)
    else:
        results.print(f"Node {found['node_version']} ({node}); the simulator is in {folder}", soft_wrap=True)


@app.command("serve")
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where to listen, on this machine alone.")] = 8000,
) -> None:
    """Run a Showdown server of the installed package on this machine, for agents, programs and people with a browser.

    - `maple showdown serve`, and beside it `maple showdown play battles --server 127.0.0.1:8000 --as Maple`
    """
    from maple.games.showdown.server import LocalServer

    with _stoppable(), LocalServer(port) as server:
        notes.print(f"a Showdown server runs at http://localhost:{port} (names need no password); Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            server.wait()


@dataclass(slots=True)
class _Stop:
    """Whether a stop was asked for: what is raised for it may be dropped, wherever it comes."""

    asked: bool = False


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    """SIGTERM is taken as a Ctrl-C: whoever stops it, things are left in order."""
    stop = _Stop()

    def leave(*_: object) -> None:
        stop.asked = True
        raise KeyboardInterrupt

    heard = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class _Guest:
    """Who plays on a server, and its game there."""

    player: Player
    game: ShowdownGame
    steps: int  # that it learned from
    folder: RunFolder | None  # of its run, if it is no opponent in the box

    def log(self, text: str) -> None:
        """Told what happens to its battles."""
        if self.folder is not None:
            self.folder.log(text)

    def keep(self, anomaly: Mapping[str, Any]) -> None:
        """Given every anomaly of its battles."""
        notes.print(f"an anomaly: {anomaly.get('error') or anomaly['kind']}", markup=False, soft_wrap=True)
        try:
            if self.folder is not None:
                self.folder.append("anomalies.jsonl", anomaly)
        except RunError as error:
            warn(f"{error}; battles go on")


def _guest(run: str, runs_dir: Path | None, server: str, name: str, battles: int, settings: list[str] | None) -> _Guest:
    """The agent of a run or an opponent in the box, on a server under a name, for so many battles (0: any number)."""
    from maple.core.sources import load_config
    from maple.core.threads import Team
    from maple.games.showdown.game import ShowdownGame
    from maple.games.showdown.places import parse_servers
    from maple.runs.store import RunFolder, find_run
    from maple.training.agent import load_agent
    from maple.training.evaluate import bot_player

    if not 0 < len(name) <= 18 or not name.isprintable() or set(name) & set("|,"):
        raise GameError(f"--as {name!r} is no name for a server; use at most 18 letters, digits and blanks")
    if len(parse_servers(server)) != 1:
        raise GameError(f"--server {server!r} cannot be used; give one server, HOST:PORT")
    asked = {**load_config("showdown", settings=_game_settings(settings or [])).game, "servers": server}
    if run in ShowdownGame().spec.opponents:
        game = ShowdownGame(battle_settings(asked), name, battles)
        return _Guest(bot_player(game, run, Team(1)), game, 0, None)
    agent = load_agent(run, runs_dir)
    if agent.config.name != "showdown":
        raise GameError(f"run {run!r} plays {agent.config.name}, not showdown; choose another run")
    _compile(agent)
    game = ShowdownGame(battle_settings({**agent.config.game, **asked}), name, battles)
    path = find_run(run, runs_dir)
    return _Guest(agent, game, agent.steps, RunFolder(path) if (path / "checkpoints").is_dir() else None)


def _game_settings(settings: list[str]) -> list[str]:
    for setting in settings:
        if not setting.startswith(("game.", "env.")):
            raise ConfigError(f"--set {setting.partition('=')[0]} changes nothing here; it takes game.NAME")
    return settings


def _compile(agent: Agent) -> None:
    """Have the agent's kernels ready: nobody should wait for its first move while they are compiled."""
    from maple.cli.sitting import compile_kernels
    from maple.core.kernel_cache import is_compiled
    from maple.training.warming import compiled_name

    if not is_compiled(compiled_name(agent.config, agent.game)):
        compile_kernels(agent.config.model_copy(update={"game": {**agent.config.game, "servers": ""}}))


@app.command("play")
def play(
    run: RunArgument,
    server: Annotated[str, typer.Option(help="Where to play: HOST:PORT of a server without passwords.")],
    name: NameOption = "Maple agent",
    battles: Annotated[int | None, typer.Option(min=1, help="Stop after so many [default: Ctrl-C].")] = None,
    at_a_time: AtATimeOption = 8,
    settings: SetOption = None,
    runs_dir: RunsDirOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Let an agent take challenges on a Showdown server, from people and from programs.

    - `maple showdown play battles --server localhost:8000 --as Maple`
    - `maple showdown play heuristic --server localhost:8000 --set game.format=gen8randombattle`
    """
    from maple.training.host import host_battles, played

    guest = _guest(run, runs_dir, server, name, battles or 0, settings)
    game, scores, lost, refusals, anomalies = guest.game, list[float](), 0, 0, 0

    def opened() -> None:
        notes.print(f"{name} waits for challenges in {game.settings.format} at {server}; Ctrl-C ends it")

    def ended(figures: Any) -> bool:
        nonlocal lost, refusals
        fresh = played(figures)
        refusals += int(figures["refused"].sum())
        scores.extend(fresh.tolist())
        lost += len(figures) - len(fresh)
        for score in fresh:
            notes.print({1.0: "won", 0.5: "tied", 0.0: "lost"}[float(score)] + f" battle {len(scores)}")
        return not stop.asked and (battles is None or len(scores) + lost < battles)

    def keep(anomaly: Mapping[str, Any]) -> None:
        nonlocal anomalies
        anomalies += 1
        guest.keep(anomaly)

    with _stoppable() as stop:
        with suppress(KeyboardInterrupt):
            count = min(at_a_time, battles or at_a_time)
            host_battles(game, guest.player, count, seed or 0, opened, ended, keep, guest.log)
        if stop.asked:
            notes.print("leaving; battles under way are given up")
    found = {"run": run, "server": server, "name": name, "battles": len(scores), "won": scores.count(1.0)}
    found |= {"tied": scores.count(0.5), "dropped": lost, "refusals": refusals, "anomalies": anomalies}
    found["format"] = game.settings.format
    if json:
        print_json(found)
    else:
        results.print(f"{found['won']} of {found['battles']} battles won, {found['tied']} tied, {lost} cut off")


@app.command("eval")
def evaluate_on_server(
    run: RunArgument,
    against: Annotated[
        str, typer.Option(help="poke-env's players: random, power, heuristic, by commas.")
    ] = "random,power,heuristic",
    server: Annotated[
        str | None, typer.Option(help="HOST:PORT [default: a server of its own on this machine].")
    ] = None,
    battles: Annotated[int, typer.Option(min=1, help="With each of them.")] = 100,
    at_a_time: AtATimeOption = 8,
    name: NameOption = "Maple agent",
    settings: SetOption = None,
    runs_dir: RunsDirOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Win rates over a real server against poke-env's RandomPlayer, MaxBasePowerPlayer and SimpleHeuristicsPlayer.

    - `maple showdown eval battles --battles 200`
    - `maple showdown eval heuristic --against heuristic` (an opponent in the box beside poke-env's)
    """
    from maple.bench.peers.poke_env import PLAYERS
    from maple.games.showdown.server import LocalServer

    kinds = [kind.strip() for kind in against.split(",")]
    for kind in kinds:
        if kind not in PLAYERS:
            raise GameError(f"poke-env has no player {kind!r}; {nearest(kind, PLAYERS)}")
    with ExitStack() as stack:
        place = server or f"127.0.0.1:{stack.enter_context(LocalServer()).port}"
        rows = [
            _meet(_guest(run, runs_dir, place, name, battles, settings), run, kind, battles, at_a_time, seed or 0)
            for kind in kinds
        ]
    if json:
        print_json({"run": run, "server": server or "a local one", "evaluations": rows})
    else:
        print_evaluations(f"{run} against poke-env's players", rows)


def _meet(guest: _Guest, run: str, kind: str, battles: int, at_a_time: int, seed: int) -> dict[str, Any]:
    """The agent against one of poke-env's players."""
    from maple.bench.peers.poke_env import PLAYERS, Challenger
    from maple.games.showdown.places import parse_servers
    from maple.games.showdown.teams import read_team_files
    from maple.training.evaluate import share_interval
    from maple.training.host import host_battles, played

    game = guest.game
    files = read_team_files(game.settings.team)
    if len(files) > 1:
        raise GameError(f"{run} plays {len(files)} teams, and poke-env's players take one; use maple eval for this run")
    found, anomalies = list[Any](), 0
    (server,) = parse_servers(game.settings.servers)
    with (
        Challenger(kind, server.url, game.settings.format, files[0]["text"] if files else None, at_a_time) as other,
        notes.status(f"playing {PLAYERS[kind]}") as status,
    ):

        def ended(figures: Any) -> bool:
            found.extend(figures)
            status.update(f"playing {PLAYERS[kind]}: {len(found)} of {battles}")
            return len(found) < battles

        def keep(anomaly: Mapping[str, Any]) -> None:
            nonlocal anomalies
            anomalies += 1
            guest.keep(anomaly)

        begin = partial(other.challenge, game.name, battles)
        host_battles(game, guest.player, min(at_a_time, battles), seed, begin, ended, keep, guest.log)
    figures = np.array(found, game.spec.figures)
    score = played(figures)
    if not len(score):
        raise GameError(f"the server at {server.place} dropped every battle with {PLAYERS[kind]}; look at its log")
    return {
        "run": run,
        "steps": guest.steps,
        "against": [f"poke-env {PLAYERS[kind]}"],
        "metric": "win_rate",
        **game.summarize(figures, np.zeros(len(figures), np.int64)),
        "ci95": list(share_interval(score, np.ones(len(score)))),
        "games": len(score),
        "lost": len(figures) - len(score),
        "anomalies": anomalies,
        "seed": seed,
        "game": game.settings.model_dump(),
    }


@app.command("repeat")
def repeat(
    source: Annotated[str, typer.Argument(help="A run, or a file of anomalies that one wrote.", metavar="RUN|FILE")],
    number: Annotated[int | None, typer.Option(min=1, help="Only this one of them, counted from 1.")] = None,
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Let a run's anomalies happen again: choices that the mask offered and the simulator refused, failed battles.

    - `maple showdown repeat battles --number 3`
    """
    from maple.games.showdown.anomalies import repeat_anomalies
    from maple.runs.store import RunFolder, find_run

    path = Path(source) if Path(source).is_file() else find_run(source, runs_dir) / "anomalies.jsonl"
    kept = RunFolder(path.parent).records(path.name)
    if number is not None and number > len(kept):
        raise GameError(f"{path} has {len(kept)} anomalies, and no {number}.; choose another --number")
    chosen = range(len(kept)) if number is None else [number - 1]
    rows = [
        {
            "number": at + 1,
            **{key: value for key, value in kept[at].items() if key not in ("input", "heard")},
            "now": now,
        }
        for at, now in zip(chosen, repeat_anomalies([kept[at] for at in chosen]), strict=True)
    ]
    if json:
        print_json({"source": str(path), "anomalies": rows})
    for row in [] if json else rows:
        results.print(_retold(row), markup=False, soft_wrap=True)
    if not rows and not json:
        results.print(f"no anomaly is kept in {path.parent}", markup=False, soft_wrap=True)
    if any(row["now"]["repeats"] is False for row in rows):
        raise typer.Exit(1)


def _retold(row: dict[str, Any]) -> str:
    """An anomaly and what became of it, in a line."""
    where = f"table {row['table']}, game {row['game']}, seat {row['seat']}"
    what = f"{row['number']}. {row['kind']} {row.get('choice', '')}".rstrip() + f" ({row['format']}, {where})"
    then = str(row["error"]).splitlines()[0]
    now = row["now"]
    if now["repeats"] is None:
        return f"{what}: {then}; it was on a server, and what the seat was told is kept with it"
    if now["repeats"]:
        return f"{what}: happens again: {then}"
    found = str(now["error"]).splitlines()[0] if now["error"] else "nothing goes wrong"
    return f"{what}: does not happen again with pokemon-showdown {now['simulator']}: {found}; it was: {then}"
