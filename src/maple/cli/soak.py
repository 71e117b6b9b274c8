"""`maple bench soak` and `maple bench kills`: runs that are long, and runs that are killed."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from maple.arena.child import die_with
from maple.bench.measure import machine_lock
from maple.cli.measuring import bench_config, show
from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption
from maple.cli.output import notes, print_json, results
from maple.cli.sitting import compile_kernels
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.errors import ConfigError
from maple.games import is_external

__all__ = ["kills", "soak"]

SOAKED = ("ofc", "wargame", "maple.bench.burn:BurnEnv")


def soak(
    games: Annotated[
        list[str] | None,
        typer.Argument(help="Games and envs, one after the other [default: ofc, wargame and an env in workers]."),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long to train, all games together.")] = 60.0,
    every_s: Annotated[float, typer.Option(min=0.5, help="Seconds between looks.")] = 60.0,
    workers: Annotated[int | None, typer.Option(min=0, help="That play envs [default: one a core].")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="A new folder for the runs [default: they are thrown away].")
    ] = None,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Train for an hour: do speed, memory, files and processes stay flat?

    Each game has its share of the time and a process of its own. Speed is taken relative to a twin: the same run,
    young, in another process that trains for a moment every few seconds while the long one waits. What the agent
    learns changes how long its decisions take, so add `--set optimizer.learning_rate=1e-9` to see the machinery alone.
    The exit code is 1 where something is not flat.

    - `maple bench soak`
    - `maple bench soak ofc --minutes 30`
    - `maple bench soak showdown --minutes 75 --keep soaked` (then `maple eval soaked/showdown --against power`)
    - `maple bench soak CartPole-v1 --workers 2 --minutes 10 --every-s 20`
    """
    chosen, found = games or list(SOAKED), []
    if keep is not None and keep.exists():
        raise ConfigError(f"--keep: {keep} is there already; name a new folder")
    flags = [_flags(game, workers, minutes / len(chosen)) for game in chosen]
    configs = [
        bench_config(game, preset, settings, algo, seed, **flag) for game, flag in zip(chosen, flags, strict=True)
    ]
    with machine_lock(notes.print):
        for config in configs:
            notes.print(f"{config.name} for {config.minutes:g} minutes")
            found.append(_alone(config, every_s, keep))
            notes.print(f"{config.name}: {found[-1]['verdict']}", soft_wrap=True)
    flat = None if any(one["flat"] is None for one in found) else all(one["flat"] for one in found)
    if json:
        print_json({"flat": flat, "minutes": minutes, "games": found})
    else:
        for one in found:
            results.print(f"{one['game']}: {one['verdict']}", soft_wrap=True)
    if flat is False:
        raise typer.Exit(1)


def _flags(game: str, workers: int | None, minutes: float) -> dict[str, Any]:
    """The settings that soak gives a game: its time, and for an env of the user's own processes that play it."""
    if not is_external(game):
        return {"minutes": minutes}
    return {"minutes": minutes, "workers": {"count": available_cores() if workers is None else workers}}


def _alone(config: Config, every_s: float, keep: Path | None) -> dict[str, Any]:
    """Soak a game in a process of its own: what another has left in memory is no part of its figures."""
    with ProcessPoolExecutor(1, get_context("spawn"), die_with, (os.getpid(),)) as pool:
        return pool.submit(_soak_here, config, every_s, keep).result()


def _soak_here(config: Config, every_s: float, keep: Path | None) -> dict[str, Any]:
    from maple.bench.soak import bench_soak

    compile_kernels(config)
    with TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        place = Path(folder) / config.name.replace(":", "-").replace("/", "-")
        return bench_soak(config, place, every_s, partial(notes.print, soft_wrap=True))


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
    with machine_lock(notes.print), TemporaryDirectory() as folder:
        found = bench_kills(game, kills, settings or [], Path(folder), config.seed, notes.print)
    show(f"{kills} kills of {game}", found, json)
