"""Where an external game is played: by the trainer itself or by workers, from what a step costs here and now."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.core.errors import GameError
from maple.games.external.game import ExternalGame

__all__ = ["choose_halves", "choose_workers", "external_arena", "step_cost_s"]

HANDSHAKE_S = 60e-6  # a round of commands and answers: two system calls and a wake-up on each side
LONG_S = 200e-6  # a part of the tables that takes a worker longer is long beside a handshake
GAIN = 1.1  # workers have to promise this much before they are tried, and to keep it before they are taken
MEASURE_S = 0.2
TRIAL_LIMIT_S = 5.0  # for a step of the trial
TRY_S, TURNS = 0.1, 5


def _play(arena: SerialArena | WorkerArena, game: ExternalGame, seconds: float) -> tuple[int, float]:
    """Rounds of random play: how many, and what a step of one table took, with all that there is to it."""
    clock, rounds, rows, bot = time.perf_counter, 0, 0, game.bot("random")
    step, began = arena.recv(), clock()
    while rounds < 4 or clock() - began < seconds:
        action = np.empty(len(step.keys), np.int32)
        bot(step.view, 0, step.keys, action, 0, len(action))
        arena.send(action)
        rounds, rows = rounds + 1, rows + len(action)
        step = arena.recv()
    passed = clock() - began
    arena.send(np.zeros(len(step.keys), np.int32) + step.mask.argmax(axis=1))
    return rounds, passed / max(1, rows)


def step_cost_s(game: ExternalGame, seconds: float = MEASURE_S) -> float | None:
    """What one step of one env costs, row included: tried in a process of its own, since nobody knows yet what it does.

    None where the trial did not survive.
    """
    try:
        with WorkerArena(game, 4, 0, workers=1, halves=1, spares=0, step_limit_s=TRIAL_LIMIT_S, max_deaths=0) as arena:
            _play(arena, game, seconds / 4)  # warm-up
            before = arena.played_s[0]
            rounds, _ = _play(arena, game, seconds)
            return (arena.played_s[0] - before) / (4 * (rounds + 1))  # and the one that goes on
    except GameError:
        return None


def choose_workers(cost_s: float, tables: int, cores: int) -> int:
    """How many workers may be worth starting for envs of this cost; 0 where the plain loop is surely as fast."""
    workers = min(cores, tables)
    serial = tables * cost_s
    shared = serial / max(1, workers) + 2 * HANDSHAKE_S
    return workers if workers > 1 and serial > GAIN * shared else 0


def choose_halves(cost_s: float, tables: int, workers: int, cores: int) -> int:
    """Into how many parts tables are split: in two, the trainer thinks about one while workers play the other.

    Where all cores are taken anyway, that pays only if a part is long beside a handshake.
    """
    part_s = cost_s * tables / max(1, 2 * workers)
    return 1 if workers >= cores and part_s < LONG_S else 2


def _gain(game: ExternalGame, tables: int, workers: int, halves: int) -> float:
    """How many times faster workers are than the plain loop, tried out in turns; the first is warm-up."""
    ratios = []
    shared = WorkerArena(game, tables, 0, workers=workers, halves=halves, spares=0)
    with SerialArena(game, tables, 0) as serial, shared:
        for _ in range(1 + TURNS):
            ratios.append(_play(serial, game, TRY_S)[1] / _play(shared, game, TRY_S)[1])
    return float(np.median(ratios[1:]))


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
    cost_s = step_cost_s(game) if workers else 0.0
    count = min(cores if workers == "auto" else workers, tables)
    halves = 2 if cost_s is None else choose_halves(cost_s, tables, count, cores)
    if cost_s is None:
        log(f"{game.spec.name} did not survive its trial: {count} workers keep it apart from the trainer")
    elif workers == "auto":
        count = choose_workers(cost_s, tables, cores)
        gain = _gain(game, tables, count, halves) if count else 0.0
        count = count if gain > GAIN else 0
        log(
            f"{game.spec.name}: {1e6 * cost_s:.1f} µs a step, workers would be {gain:.2f} times as fast: {count} chosen"
        )
    if count == 0:
        return SerialArena(game, tables, seed, max_deaths=max_deaths, log=log)
    options = {"halves": halves, **options}
    return WorkerArena(game, tables, seed, workers=count, max_deaths=max_deaths, log=log, **options)
