"""Where an external game is played: by the trainer itself or by workers, from what a step costs here and now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import numpy as np

from maple.arena.base import Arena
from maple.arena.child import FATAL
from maple.arena.memory import SharedBlock
from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.arena.processes import START_LIMIT_S, WorkerProcess
from maple.arena.serial import SerialArena
from maple.arena.trial_main import DONE, FIGURES, READY_S, STEP_S
from maple.arena.workers import Parts, WorkerArena
from maple.core.config import WorkerConfig
from maple.core.cores import available_cores
from maple.core.errors import ConfigError, GameError
from maple.games.contract import Game
from maple.games.external.game import ExternalGame

__all__ = ["Trial", "choose_parts", "choose_workers", "evaluation_arena", "external_arena", "try_env"]

HANDSHAKE_S = 60e-6  # a round of commands and answers: two system calls and a wake-up on each side
LONG_S = 3e-3  # a half of its tables that takes a worker longer is long beside what the trainer does meanwhile
FEW_WORKERS = 4  # up to so many, a worker's tables are enough for a Step
GAIN = 1.1  # workers have to promise this much before they are tried
CLEAR_S = 1e-3  # envs of such a step, and rounds of CLEAR_ROUND_S, leave no doubt that workers pay: nothing is tried
CLEAR_ROUND_S = 0.03
TRIAL_S = 2.0  # for the trial, once the env can be made
TRY_S, TURNS, MOST_TURNS = 0.1, 5, 15
CLOSE = 0.8, 1.25  # gains between these take more turns: a single one is off by a fifth on a shared machine
READY_LIMIT_S = 1.0  # envs that take longer to get ready, all together, are not made only to be tried

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """What an env costs, as far as a trial showed it."""

    step_s: float  # of one step of one env, row included; infinite where none was seen
    ready_s: float  # to make an env and begin its game
    died: str = ""  # how, if the trial did not survive


def try_env(game: ExternalGame, log: Tell = lambda _: None) -> Trial:
    """Play a few envs in a process of its own, for a bounded time; an env that breaks its contract is told on."""
    block = SharedBlock(8 * FIGURES)
    figures = np.frombuffer(block.buffer, np.float64)
    task = {"name": game.spec.name, "arguments": game.settings.model_dump()}
    process = WorkerProcess("maple.arena.trial_main", 0, task, block, log)
    process.name = "trial"
    try:
        _wait(lambda: process.is_ready() or figures[DONE] > 0, START_LIMIT_S)
        _wait(lambda: figures[DONE] > 0 or not process.alive(), TRIAL_S)
        died = "" if process.alive() or figures[DONE] > 0 else process.how_it_ended()
        if died and os.read(process.answers, 1) == FATAL:
            raise GameError(process.last_words())
    except ConfigError:
        died = process.how_it_ended()
    finally:
        process.kill("is not needed any more")
        process.close()
        block.close()
    return Trial(float(figures[STEP_S]) or inf, float(figures[READY_S]) or inf, died)


def _wait(until: Callable[[], bool], limit_s: float) -> None:
    """Return when it is so, or when so long has passed."""
    end = time.monotonic() + limit_s
    while not until() and time.monotonic() < end:
        time.sleep(0.002)


def choose_workers(cost_s: float, tables: int, cores: int) -> int:
    """How many workers may be worth starting for envs of this cost; 0 where the plain loop is surely as fast."""
    workers = min(cores, tables)
    serial = tables * cost_s
    shared = serial / max(1, workers) + 2 * HANDSHAKE_S
    return workers if workers > 1 and serial > GAIN * shared else 0


def choose_parts(cost_s: float, tables: int, workers: int, cores: int) -> Parts:
    """How tables are split: by halves of all workers' tables, or where cores are short by worker.

    While the trainer thinks about one worker's rows it has that worker's core; in halves it would be one process too
    many, and each half would wait for whichever core is slowest. With many workers such parts would be small, and long
    steps leave time enough for everybody.
    """
    crowded, part_s = workers >= cores, cost_s * tables / (2 * workers)
    if crowded and 1 < workers <= FEW_WORKERS:
        return "workers"
    return "whole" if crowded and part_s < LONG_S else "halves"


def _play(arena: SerialArena | WorkerArena, game: ExternalGame, seconds: float) -> float:
    """What a step of one table took in some rounds of random play, with all that there is to it."""
    clock, rows, bot = time.perf_counter, 0, game.bot("random")
    step, began = arena.recv(), clock()
    while not rows or clock() - began < seconds:
        action = np.empty(len(step.keys), np.int32)
        bot(step.view, 0, step.keys, action, 0, len(action))
        arena.send(action)
        rows += len(action)
        step = arena.recv()
    passed = clock() - began
    arena.send(np.zeros(len(step.keys), np.int32) + step.mask.argmax(axis=1))
    return passed / max(1, rows)


def _gain(game: ExternalGame, tables: int, workers: int, parts: Parts) -> float:
    """How many times faster workers are than the plain loop, tried out in turns; the first is warm-up."""
    ratios: list[float] = []
    gain = 1.0
    shared = WorkerArena(game, tables, 0, workers=workers, parts=parts, spares=0)
    with SerialArena(game, tables, 0) as serial, shared:
        while len(ratios) <= TURNS or (CLOSE[0] < gain < CLOSE[1] and len(ratios) <= MOST_TURNS):
            ratios.append(_play(serial, game, TRY_S) / _play(shared, game, TRY_S))
            gain = float(np.median(ratios[1:] or ratios))
    return gain


def _choose(game: ExternalGame, trial: Trial, tables: int, cores: int) -> tuple[int, str]:
    """How many workers play, and why."""
    name, most = game.spec.name, min(cores, tables)
    if trial.died:
        return most, f"{_not_survived(game, trial)}: {_workers(most)} to keep it apart from the trainer"
    if trial.step_s == inf:
        return most, f"{name} made no step in {TRIAL_S:g} s of trial: {_workers(most)}"
    cost, count = f"{name} takes {_duration(trial.step_s)} a step", choose_workers(trial.step_s, tables, cores)
    if not count:
        return 0, f"{cost}, too little for workers: the trainer plays"
    if trial.step_s > CLEAR_S or tables * trial.step_s > CLEAR_ROUND_S or tables * trial.ready_s > READY_LIMIT_S:
        return count, f"{cost}: {_workers(count)}"
    gain = _gain(game, tables, count, choose_parts(trial.step_s, tables, count, cores))
    if gain >= 1.0:  # as fast is enough: workers survive what the trainer would not, and play while it learns
        return count, f"{cost}: {_workers(count)}, {gain:.2f} times as fast as the trainer alone"
    return 0, f"{cost}: the trainer plays, {_workers(count)} would be {gain:.2f} times as fast"


def _not_survived(game: ExternalGame, trial: Trial) -> str:
    return f"{game.spec.name} did not survive its trial, which {trial.died}"


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count != 1)}"


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.1f} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def external_arena(
    game: ExternalGame,
    tables: int,
    seed: int,
    workers: int | Literal["auto"],
    cores: int,
    *,
    parts: Parts | None = None,
    max_deaths: int = 20,
    log: Tell = lambda _: None,
    note: Tell = lambda _: None,
    **options: Any,
) -> SerialArena | WorkerArena:
    """Tables of an env: 0 workers for the trainer's own process, "auto" for what is faster; options of WorkerArena.

    `note` is told in a sentence what "auto" chose, `log` that and what workers have to say. Where nothing is left to
    choose, not the `parts` either, nothing is tried.
    """
    if workers == 0:
        return SerialArena(game, tables, seed, max_deaths=max_deaths, log=log)
    trial = try_env(game, log) if workers == "auto" or parts is None else Trial(inf, inf)
    if workers == "auto":
        count, why = _choose(game, trial, tables, cores)
        log(why)
        note(why)
        if count == 0:
            return SerialArena(game, tables, seed, max_deaths=max_deaths, log=log)
    else:
        count = min(workers, tables)
        if trial.died:
            log(_not_survived(game, trial))
    parts = parts or choose_parts(trial.step_s, tables, count, cores)
    return WorkerArena(game, tables, seed, workers=count, parts=parts, max_deaths=max_deaths, log=log, **options)


def evaluation_arena(
    game: Game,
    tables: int,
    seed: int,
    tables_per_deal: int,
    limits: WorkerConfig,
    log: Tell = lambda _: None,
    keep: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> Arena:
    """Tables for an evaluation of what is played elsewhere, with a run's limits; `keep` is given every anomaly.

    "auto" means workers here: nothing is measured, and an env that crashes or hangs then costs games alone. Only where
    that was asked for does this process play envs itself.
    """
    if not isinstance(game, ExternalGame):
        return NodeArena(
            game,
            tables,
            seed,
            processes=available_cores(),
            observations=False,
            check=False,
            tables_per_deal=tables_per_deal,
            # Nobody stands by: most evaluations are shorter than it takes a process to be warm.
            limits=PoolLimits(limits.step_limit_s, limits.memory_mb, limits.max_deaths, spares=0),
            log=log,
            keep=keep,
        )
    alike: dict[str, Any] = {"tables_per_deal": tables_per_deal, "max_deaths": limits.max_deaths, "log": log}
    if limits.count == 0:
        return SerialArena(game, tables, seed, **alike)
    return WorkerArena(
        game,
        tables,
        seed,
        workers=min(available_cores() if limits.count == "auto" else limits.count, tables),
        parts="whole",
        spares=limits.spares,
        step_limit_s=limits.step_limit_s,
        memory_mb=limits.memory_mb,
        **alike,
    )
