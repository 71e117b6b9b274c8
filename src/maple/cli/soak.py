"""`maple bench soak` and `maple bench kills`: runs that are long, and runs that are killed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from maple.bench.measure import machine_lock
from maple.cli.measuring import bench_config, show
from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption
from maple.cli.output import notes
from maple.cli.sitting import compile_kernels

__all__ = ["kills", "soak"]


def soak(
    game: GameArgument,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long to train.")] = 60.0,
    every_s: Annotated[float, typer.Option(min=0.5, help="Seconds between looks.")] = 60.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Train for an hour in a folder that is thrown away: do speed, memory, files and processes stay flat?

    Speed is taken relative to a kernel that is timed all along. What the agent learns changes how long its
    decisions take, so add `--set optimizer.learning_rate=1e-9` to see the machinery alone.

    - `maple bench soak ofc`
    - `maple bench soak CartPole-v1 --set workers.count=2 --minutes 10`
    """
    from maple.bench.soak import bench_soak

    config = bench_config(game, preset, settings, algo, seed, minutes=minutes)
    compile_kernels(config)
    with machine_lock(notes.print), TemporaryDirectory() as folder:
        found = bench_soak(config, Path(folder) / "soak", every_s, notes.print)
    show(f"{minutes:g} minutes of {game}", found, json)


def kills(
    game: GameArgument,
    kills: Annotated[int, typer.Option(min=1, help="How often to kill it.")] = 200,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Kill a training run again and again, at random moments: it goes on each time, and loses an interval at most.

    - `maple bench kills ofc --kills 200`
    """
    from maple.bench.kills import bench_kills

    config = bench_config(game, None, settings, None, seed)
    compile_kernels(config)
    with TemporaryDirectory() as folder:
        found = bench_kills(game, kills, settings or [], Path(folder), config.seed, notes.print)
    show(f"{kills} kills of {game}", found, json)
