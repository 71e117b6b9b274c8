"""`maple bench`: how fast the parts and the whole are, alone and beside peers."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.status import Status

from maple.bench.measure import machine_lock
from maple.cli.measuring import SecondsOption, bench_config, show
from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption, refuse_unused
from maple.cli.output import notes, print_json, print_table
from maple.cli.sitting import compile_kernels
from maple.cli.soak import kills, soak
from maple.core.config import Config
from maple.core.errors import ConfigError, nearest
from maple.runs.store import default_runs_dir, write_atomically

__all__ = ["app"]

app = typer.Typer(help="Measure: one thing at a time, on this machine, as it is now.", invoke_without_command=True)


@app.callback()
def suites(
    context: typer.Context,
    game: Annotated[str, typer.Option(help="The game of the suites; `maple games` lists them.")] = "ofc",
    only: Annotated[
        str | None, typer.Option(help="Suites, by commas: games, inference, training, arenas, replay.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="About how long each suite takes.")] = 30.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads [default: one a core].")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the JSON goes [default: bench/ among the runs].")] = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Measure: one thing at a time, on this machine, as it is now.

    Without a command, all suites run: games, inference, training, arenas and replay, each beside a peer where one is
    installed (`pip install 'maple-rl[peers]'`) and beside the limit that bounds it. Figures are written as JSON too.

    - `maple bench`
    - `maple bench --only inference --seconds 10`
    """
    if context.invoked_subcommand is not None:
        return
    from maple.bench.suites import SUITES, run_suites
    from maple.core.cores import available_cores

    names = [name.strip() for name in only.split(",")] if only else list(SUITES)
    for name in names:
        if name not in SUITES:
            raise ConfigError(f"there is no suite {name!r}; {nearest(name, SUITES)}")
    config = bench_config(game, None, settings, None, seed)
    for recipe in (config, bench_config(game, "sb3", settings, None, seed)):
        compile_kernels(recipe)
    path = out or default_runs_dir() / "bench" / time.strftime(f"{game}-%Y%m%d-%H%M%S.json")
    with machine_lock(notes.print), notes.status("measuring") as status:
        found = run_suites(names, config, threads or available_cores(), seconds, status.update)
    if out is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, jsonlib.dumps(found, indent=2) + "\n", "--out")
    if json:
        print_json({**found, "path": str(path)})
        return
    print_table(f"{game} on {found['threads']} threads", SUITE_COLUMNS, [_suite_cells(row) for row in found["rows"]])
    notes.print(f"wrote {path}", soft_wrap=True)


def _add(
    name: str, title: str, usual_seconds: float, module: str, help_text: str, usual_preset: str | None = None
) -> None:
    """A command that measures one config for so many seconds, by bench_NAME(config, seconds) of a module."""

    def command(
        game: GameArgument,
        seconds: SecondsOption = usual_seconds,
        preset: PresetOption = usual_preset,
        algo: AlgoOption = None,
        settings: SetOption = None,
        seed: SeedOption = None,
        json: JsonOption = False,
    ) -> None:
        config = bench_config(game, preset, settings, algo, seed)
        compile_kernels(config)
        bench = getattr(import_module(f"maple.bench.{module}"), f"bench_{name}")
        with machine_lock(notes.print), notes.status(f"measuring for {seconds:g} s"):
            found = bench(config, seconds)
        show(title.format(game), found, json)

    app.command(name, help=help_text)(command)


_add(
    *("inference", "inference of {}", 5.0, "inference"),
    "A policy by itself: decisions chosen a second, in batches of a run's own decisions.",
)
_add(
    *("profiler", "the profiler's cost on {}", 20.0, "profiler"),
    "What --profile costs: a span times the spans of a second, and a run with and without it in turns.",
)
_add(
    *("tuner", "the tuner on {}", 60.0, "tune"),
    "What `maple tune` finds in so many seconds in turns with the best of the whole grid and with the preset: "
    "seven times as long in all.",
    usual_preset="speed",
)
_add(
    *("roofline", "roofline of {}", 40.0, "roofline"),
    "The parts of training measured alone, the loop, and how much of the bound the loop reaches.",
)

app.command("soak")(soak)
app.command("kills")(kills)

SUITE_COLUMNS = ["suite", "a second", "ratio", "95 %", "against", "of the limit", "the limit"]


def _suite_cells(row: dict[str, Any]) -> list[str]:
    ratio, interval = row["ratio"], row["ratio_ci95"]
    return [
        f"{row['suite']}: {row['what']}",
        f"{row['per_s']:,.0f}",
        "" if ratio is None else f"{ratio:.1f}×",
        "" if interval is None else f"{interval[0]:.1f}–{interval[1]:.1f}",
        row["against"] or "no peer installed",
        f"{row['of_limit']:.0%}",
        f"{row['limit']}: {row['limit_per_s']:,.0f}",
    ]


@app.command("logging")
def logging(
    game: GameArgument,
    seconds: Annotated[float, typer.Option(min=1, help="How long all of it takes.")] = 120.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """What console, file and TensorBoard logging cost: after each update, each batch of decisions, each decision."""
    from maple.bench.logging import bench_logging

    config = bench_config(game, preset, settings, algo, seed)
    compile_kernels(config)
    with machine_lock(notes.print), notes.status("measuring") as status:
        found = bench_logging(config, seconds, status.update)
    if json:
        print_json(found)
        return
    rows = [
        [
            f"{r['to']} {r['level']}".strip(),
            f"{r['us_per_record']:,.1f}",
            f"{r['share']:.2%}",
            f"{r['steps_per_s']:,.0f}",
            f"{1 - r['ratio']:+.1%}",
            _cost(r["ratio_ci95"]),
        ]
        for r in found["rows"]
    ]
    print_table(
        f"what logging costs in {game}",
        ["to, after each", "µs a record", "of the time", "steps/s", "throughput lost", "95 %"],
        rows,
    )
    for note in found["notes"]:
        notes.print(note)


def _cost(interval: list[float]) -> str:
    return f"{1 - interval[1]:+.1%} … {1 - interval[0]:+.1%}"


@app.command("game")
def game(
    game: GameArgument,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads [default: one a core].")] = None,
    tables: Annotated[
        int | None, typer.Option(min=1, help="Games side by side on each thread [default: 8192].")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="How long to measure, per side beside a peer [default: 5].")
    ] = None,
    options: Annotated[bool, typer.Option("--options", help="Describe every legal option too.")] = False,
    battle_format: Annotated[str | None, typer.Option("--format", help="showdown: the battle format.")] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="showdown: Node processes [default: one a core].")
    ] = None,
    battles: Annotated[
        int | None, typer.Option(min=1, help="showdown: battles side by side in each process [default: 32].")
    ] = None,
    peer: Annotated[str | None, typer.Option(help="showdown: measure poke-env in the same run.")] = None,
    transport: Annotated[
        str | None, typer.Option(help="showdown: compare with another way to play: server, shared, pipe.")
    ] = None,
    strikes: Annotated[
        int | None, typer.Option("--kills", min=1, help="showdown: instead, kill so many Node processes in play.")
    ] = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """A game by itself: random legal play with observation and mask written for each decision.

    - `maple bench game ofc`
    - `maple bench game showdown --peer poke-env --seconds 30`
    - `maple bench game showdown --kills 100`
    """
    from maple.bench.game import bench_game
    from maple.core.cores import available_cores

    lines = [*(settings or []), *([f"game.format={battle_format}"] if battle_format else [])]
    config, beside = bench_config(game, None, lines, None, seed), {"--peer": peer, "--transport": transport}
    if game == "showdown":
        native = {"--threads": threads, "--tables": tables, "--options": options or None}
        refuse_unused(native, "showdown, which plays --battles in each of its --processes")
        pool = processes or available_cores(), battles or 32
        if strikes is None:
            found = _bench_battles(config, *pool, seconds or 5.0, peer, transport)
        else:
            refuse_unused({**beside, "--seconds": seconds}, "--kills, which plays until so many were killed")
            found = _kill_battles(config, strikes, *pool)
        show("battles", found, json)
        return
    bridged = {"--format": battle_format, "--processes": processes, "--battles": battles, "--kills": strikes}
    refuse_unused({**bridged, **beside}, f"{game}, which plays --tables on each of its --threads")
    size = threads or available_cores(), tables or 8192, seconds or 5.0
    with machine_lock(notes.print), notes.status(f"measuring {game} for {size[-1]:g} s"):
        found = bench_game(game, config.game, *size, options, config.seed)
    show(f"{game} alone", found, json)


def _telling(status: Status) -> Callable[[str], None]:
    """Say how far it is: in one line that changes, or line by line where nobody watches."""

    def tell(text: str) -> None:
        status.update(text)
        if not notes.is_terminal:
            notes.print(text)

    return tell


def _kill_battles(config: Config, kills: int, processes: int, battles: int) -> dict[str, Any]:
    from maple.bench.battle_kills import bench_battle_kills

    with machine_lock(notes.print), notes.status("killing Node processes") as status:
        return bench_battle_kills(config.game, kills, processes, battles, config.seed, _telling(status))


def _bench_battles(
    config: Config, processes: int, battles: int, seconds: float, peer: str | None, transport: str | None
) -> dict[str, Any]:
    """The bridge beside the simulator alone, as it is, and a peer."""
    from maple.bench.peers.poke_env import PokeEnvSide
    from maple.bench.showdown import Way, bench_showdown
    from maple.games import make_game

    ways: list[Way] = ["ipc"]
    for way in (transport or "ipc").split(","):
        if way not in get_args(Way):
            raise ConfigError(f"there is no transport {way!r}; {nearest(way, get_args(Way))}")
        ways += [cast(Way, way)] if way not in ways else []
    if peer not in (None, "poke-env"):
        raise ConfigError(f"there is no peer {peer!r} for battles; {nearest(peer, ['poke-env'])}")
    chosen = make_game("showdown", config.game).settings.model_dump()["format"]
    make_peer = partial(PokeEnvSide, chosen, config.seed) if peer else None
    with machine_lock(notes.print), notes.status("measuring battles") as status:
        tell = _telling(status)
        return bench_showdown(config.game, processes, battles, seconds, config.seed, tell, make_peer, ways)


@app.command("strength")
def strength(
    game: GameArgument,
    target: Annotated[float, typer.Option(help="The result to reach, in the game's own metric.")] = 8.0,
    against: Annotated[str, typer.Option(help="Who sits in all other seats.")] = "random",
    minutes: Annotated[float, typer.Option(min=0.01, help="Give up after this; also the learning schedule.")] = 5.0,
    hands: Annotated[int, typer.Option(min=1, help="Hands of each look at the strength.")] = 3000,
    look_every_s: Annotated[float, typer.Option(min=0.1, help="Seconds of training between looks.")] = 2.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Seconds of training until a result against fixed opponents is reached; looking and compiling do not count."""
    from maple.bench.strength import bench_strength

    config = bench_config(game, preset, settings, algo, seed, minutes=minutes)
    with machine_lock(notes.print):
        found = bench_strength(config, target, against, hands, look_every_s, notes.print)
    show(f"time to {target:+g} in {game}", found, json)


@app.command("arena")
def arena(
    step_cost_us: Annotated[
        float | None, typer.Option(min=0, help="What a step of the env burns [default: 0, 10, 50, 200 and 1000].")
    ] = None,
    envs: Annotated[int, typer.Option(min=1, help="Envs side by side.")] = 32,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes; `auto` is measured beside them.")] = 2,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also Gymnasium's and Stable-Baselines3's vector envs.")
    ] = False,
    seconds: SecondsOption = 7.0,
    faults: Annotated[int, typer.Option(min=0, help="Instead: let so many envs and workers fail.")] = 0,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Envs of your own: worker processes, `auto`, a plain loop and peers, interleaved, on an env of known cost.

    - `maple bench arena --step-cost-us 10 --peers`
    - `maple bench arena --faults 1000`
    """
    from maple.bench.arena import STEP_COSTS_US, bench_arena
    from maple.bench.faults import bench_faults

    if faults:
        with machine_lock(notes.print), notes.status(f"{faults} faults"):
            show(f"{faults} faults", bench_faults(faults, envs, workers, notes.print, seed or 0), json)
        return

    costs = STEP_COSTS_US if step_cost_us is None else (step_cost_us,)
    with machine_lock(notes.print), notes.status("measuring arenas"):
        results = bench_arena(costs, envs, workers, peers, seconds, notes.print, seed or 0)
    if json:
        print_json({"results": results} if step_cost_us is None else results[0])
        return
    for found in results:
        show(f"envs of {found['step_cost_us']:g} µs a step", found, json)
