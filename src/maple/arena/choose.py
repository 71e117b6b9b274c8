"""Where an external game is played: by the trainer itself or by workers, from what a step costs here and now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.games.external.game import ExternalGame

__all__ = ["available_cores", "choose_workers", "external_arena", "step_cost_s"]

HANDSHAKE_S = 60e-6  # a round of commands and answers: two system calls and a wake-up on each side
GAIN = 1.1  # workers have to promise this much before they are tried, and to keep it before they are taken
MEASURE_S = 0.2
TRY_S, TURNS = 0.1, 3


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _round_s(arena: SerialArena | WorkerArena, game: ExternalGame, seconds: float) -> float:
    """What a step of one table takes in an arena: the median of rounds of random play."""
    clock, rounds, bot = time.perf_counter, list[float](), game.bot("random")
    step, began = arena.recv(), clock()
    while len(rounds) < 4 or clock() - began < seconds:
        action = np.empty(len(step.keys), np.int32)
        bot(step.view, 0, step.keys, action, 0, len(action))
        started = clock()
        arena.send(action)
        step = arena.recv()
        rounds.append((clock() - started) / len(action))
    arena.send(np.zeros(len(step.keys), np.int32) + step.mask.argmax(axis=1))
    return float(np.median(rounds))


def step_cost_s(game: ExternalGame, seconds: float = MEASURE_S) -> float:
    """What one step of one env costs, row included."""
    with SerialArena(game, 4, seed=0, max_deaths=0) as arena:
        return _round_s(arena, game, seconds)


def choose_workers(cost_s: float, tables: int, cores: int) -> int:
    """How many workers may be worth starting for envs of this cost; 0 where the plain loop is surely as fast."""
    workers = min(cores, tables)
    serial = tables * cost_s
    shared = serial / max(1, workers) + 2 * HANDSHAKE_S
    return workers if workers > 1 and serial > GAIN * shared else 0


def _gain(game: ExternalGame, tables: int, workers: int) -> float:
    """How many times faster workers are than the plain loop, tried out in turns."""
    ratios = []
    with SerialArena(game, tables, 0) as serial, WorkerArena(game, tables, 0, workers=workers, spares=0) as shared:
        for _ in range(TURNS):
            ratios.append(_round_s(serial, game, TRY_S) / _round_s(shared, game, TRY_S))
    return float(np.median(ratios))


def external_arena(
    game: ExternalGame,
    tables: int,
    seed: int,
    workers: int | Literal["auto"],
    cores: int,
    *,
    max_deaths: int = 20,
    log: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> SerialArena | WorkerArena:
    """Tables of an env: 0 workers for the trainer's own process, "auto" for what is faster; options of WorkerArena."""
    if workers == "auto":
        cost_s = step_cost_s(game)
        count = choose_workers(cost_s, tables, cores)
        gain = _gain(game, tables, count) if count else 0.0
        count = count if gain > GAIN else 0
        log(
            f"{game.spec.name}: {1e6 * cost_s:.1f} µs a step, workers would be {gain:.2f} times as fast: {count} chosen"
        )
    else:
        count = min(workers, tables)
    if count == 0:
        return SerialArena(game, tables, seed, max_deaths=max_deaths, log=log)
    return WorkerArena(game, tables, seed, workers=count, max_deaths=max_deaths, log=log, **options)
