"""The Python API: play, train, load."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from maple.arena.base import Arena
from maple.arena.choose import external_arena
from maple.arena.native import NativeArena
from maple.arena.node import NodeArena
from maple.core.cores import available_cores
from maple.core.sources import gather
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.games.bridged import Bridged
from maple.games.external.game import ExternalGame
from maple.runs.storage import mirrored
from maple.runs.store import RunFolder, default_runs_dir
from maple.training.agent import Agent, load_agent
from maple.training.session import Progress, train_run

__all__ = ["load", "make_arena", "train"]


def make_arena(
    game: str,
    *,
    tables: int = 1024,
    seed: int = 0,
    threads: int | None = None,
    observations: bool = True,
    options: bool = False,
    workers: int | Literal["auto"] = "auto",
    **game_options: Any,
) -> Arena:
    """Tables of a game, ready to play; close() ends what they started.

    `observations` writes observation and mask into every Step, `options` describes each legal option too. What is not a
    parameter here is an option of the game: `make_arena("ofc", tables=64, seats=2, fantasyland="off")`. For an env of
    your own, `make_arena("package.module:make_env", tables=64, workers=2)`, these are the env's arguments.
    """
    rules, count = make_game(game, game_options), threads or available_cores()
    if isinstance(rules, ExternalGame):
        return external_arena(rules, tables, seed, workers, available_cores())
    if isinstance(rules, Bridged):
        return NodeArena(rules, tables, seed, processes=count, observations=observations, options=options)
    team = Team(count)
    return NativeArena(rules, tables, seed, team, observations=observations, options=options, owns_team=True)


def train(
    game: str,
    *,
    run: str,
    runs_dir: str | Path | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    preset: str | None = None,
    algo: str | None = None,
    opponents: str | None = None,
    settings: list[str] | None = None,
    progress: Callable[[Progress], bool] | None = None,
) -> Agent:
    """Train an agent, or go on with a run of that name, until `steps` decisions or `minutes` are spent.

    `settings` are `key=value` texts as after `--set`; `progress` is called after each update and stops the run, which
    is then saved, by answering False.
    """
    flags = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
    config = gather(
        game, defaults=entry(game).defaults, preset=preset, environment=os.environ, settings=settings, flags=flags
    ).config
    folder = RunFolder(Path(runs_dir or default_runs_dir()) / run)
    with folder.locked(), mirrored(folder.path, config.storage, warnings.warn, warnings.warn) as copy_soon:
        train_run(config, folder, progress or (lambda _: True), saved=lambda _: copy_soon(), held=True)
    return load_agent(folder.path)


def load(run_or_checkpoint: str | Path, runs_dir: str | Path | None = None) -> Agent:
    """The agent of a run's newest checkpoint, by name or path, or of one checkpoint folder."""
    return load_agent(run_or_checkpoint, Path(runs_dir) if runs_dir else None)
