"""Where an external game is played: by the trainer itself or by workers, from what a step costs here and now."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.games.external.game import ExternalGame

__all__ = ["choose_workers", "external_arena", "step_cost_s"]

HANDSHAKE_S = 60e-6  # a round of commands and answers: two system calls and a wake-up on each side
GAIN = 1.2  # workers have to promise this much before they are started
MEASURE_S = 0.25


def step_cost_s(
    game: ExternalGame, seconds: float = MEASURE_S, clock: Callable[[], float] = time.perf_counter
) -> float:
    """What one step of one env costs, row included: the median of short rounds of random play."""
    rounds: list[float] = []
    with SerialArena(game, 4, seed=0, max_deaths=0) as arena:
        step, bot, began = arena.recv(), game.bot("random"), clock()
        while len(rounds) < 3 or clock() - began < seconds:
            action = np.empty(len(step.keys), np.int32)
            bot(step.view, 0, step.keys, action, 0, len(action))
            started = clock()
            arena.send(action)
            rounds.append((clock() - started) / 4)
            step = arena.recv()
    return float(np.mean(rounds))


def choose_workers(cost_s: float, tables: int, cores: int) -> int:
    """How many workers to start; 0 where the plain loop is expected to be as fast."""
    workers = min(cores, tables)
    serial = tables * cost_s
    shared = serial / max(1, workers) + 2 * HANDSHAKE_S
    return workers if workers > 1 and serial > GAIN * shared else 0


def external_arena(
    game: ExternalGame,
    tables: int,
    seed: int,
    workers: int | Literal["auto"],
    cores: int,
    *,
    step_limit_s: float = 30.0,
    memory_mb: float = 0.0,
    max_deaths: int = 20,
    log: Callable[[str], None] = lambda _: None,
) -> SerialArena | WorkerArena:
    """Tables of an env: 0 workers for the trainer's own process, "auto" for what is faster."""
    count = choose_workers(step_cost_s(game), tables, cores) if workers == "auto" else min(workers, tables)
    if workers == "auto":
        log(f"{count} workers chosen for {tables} tables of {game.spec.name}")
    if count == 0:
        return SerialArena(game, tables, seed, max_deaths=max_deaths, log=log)
    return WorkerArena(
        game,
        tables,
        seed,
        workers=count,
        step_limit_s=step_limit_s,
        memory_mb=memory_mb,
        max_deaths=max_deaths,
        log=log,
    )
