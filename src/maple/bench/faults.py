"""Faults by the hundred: envs that raise, exit, crash, hang and grow, workers that are killed and stopped from outside.

Every row is checked against what the env must have shown, so a row of a dead worker, or of another table, is seen.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from maple.arena.workers import WorkerArena
from maple.bench.burn import BurnEnv
from maple.bench.measure import machine
from maple.core.config import WorkerConfig
from maple.core.step import Outcome, Step
from maple.games import make_game
from maple.games.external.game import ExternalGame

__all__ = ["bench_faults"]

STEP_LIMIT_S = 1.0
MEMORY_MB = 350.0
FAULT_EVERY = 40  # of the games
FROM_OUTSIDE_S = 0.5  # between signals sent to a worker
KINDS = {
    "raised": "lost its game",
    "exited": "ended with exit code",
    "crashed": "died by SIGSEGV",
    "killed": "died by SIGKILL",
    "hung": f"hung for {STEP_LIMIT_S:g} s",
    "grew": f"held more than {MEMORY_MB:g} MB",
}


class _Rows:
    """What every row must be."""

    def __init__(self) -> None:
        self._observations = BurnEnv()._observations
        self.answer: NDArray[np.intp] = np.zeros(0, np.intp)
        self.corrupted = 0
        self.lost_games = 0
        self.finished_games = 0

    def check(self, step: Step) -> None:
        """Compare a Step's rows with the env's own."""
        self.answer = step.mask.argmax(axis=1)
        expected = self._observations[step.keys.decision]
        self.corrupted += int((step.observation != expected).any(axis=1).sum())
        lost = int((step.ended.outcome == Outcome.LOST).sum())
        self.lost_games += lost
        self.finished_games += len(step.ended.outcome) - lost


class _Striker:
    """Sends a worker a signal now and then, and sees how long its tables are without decisions."""

    def __init__(self, arena: WorkerArena) -> None:
        self._arena = arena
        self.sent = {"SIGKILL": 0, "SIGSTOP": 0}
        self.replaced_s: list[float] = []  # from each kill until the dead worker's tables had decisions again
        self._last = time.perf_counter()
        self._victim: int | None = None  # that is not replaced yet
        self._killed = False  # rather than stopped, which is noticed only after the limit of a step

    def look(self) -> None:
        """After each Step: whether the last victim is replaced, and whether it is time for another."""
        now, arena = time.perf_counter(), self._arena
        if self._victim is not None:
            if self._victim not in arena.pids and not arena.replacing:
                self.replaced_s += [now - self._last] if self._killed else []
                self._victim = None
        elif now - self._last > FROM_OUTSIDE_S and not arena.replacing:
            self._killed = sum(self.sent.values()) % 8 != 7
            name = "SIGKILL" if self._killed else "SIGSTOP"
            self._victim = arena.pids[sum(self.sent.values()) % len(arena.pids)]
            self._last = time.perf_counter()
            with suppress(ProcessLookupError):  # it died by itself in this moment
                os.kill(self._victim, signal.Signals[name])
            self.sent[name] += 1


def _workers_of(parent: psutil.Process) -> int:
    return sum("maple.arena.worker_main" in " ".join(child.cmdline()) for child in parent.children(recursive=True))


def _quantiles(name: str, seconds: list[float]) -> dict[str, float]:
    return {f"{name}_p{q}_s": float(np.quantile(seconds, q / 100)) if seconds else 0.0 for q in (50, 99)}


def _play(faults: int, tables: int, workers: int, tell: Callable[[str], None], seed: int) -> dict[str, Any]:
    game = make_game("maple.bench.burn:BurnEnv", {"fault_every": FAULT_EVERY})
    assert isinstance(game, ExternalGame)
    rows, messages, longest, told, count = _Rows(), list[str](), 0.0, 0, 0
    limits = WorkerConfig(step_limit_s=STEP_LIMIT_S, memory_mb=MEMORY_MB, max_deaths=10**9)  # the rest as users have it
    opened = WorkerArena(
        game,
        tables,
        seed,
        workers=workers,
        spares=limits.spares,
        step_limit_s=limits.step_limit_s,
        memory_mb=limits.memory_mb,
        max_deaths=limits.max_deaths,
        log=messages.append,
    )
    with opened as arena:
        rows.check(arena.recv())
        striker = _Striker(arena)
        while (count := arena.lost_workers + _count(messages, KINDS["raised"])) < faults:
            arena.send(rows.answer)
            started = time.perf_counter()
            rows.check(arena.recv())
            longest = max(longest, time.perf_counter() - started)
            striker.look()
            if count >= told + 100:
                told = count
                tell(f"{count} of {faults} faults")
        return {
            "faults": count,
            "worker_deaths": arena.lost_workers,
            "kinds": {kind: _count(messages, words) for kind, words in KINDS.items()},
            "sent": striker.sent,
            "spares": limits.spares,
            "process_starts": arena.starts,
            **_quantiles("replaced", striker.replaced_s),
            **_quantiles("noticed_to_replaced", arena.replaced_s),
            "longest_recv_s": longest,
            "finished_games": rows.finished_games,
            "lost_games": rows.lost_games,
            "corrupted_rows": rows.corrupted,
        }


def _count(messages: list[str], words: str) -> int:
    return sum(words in message for message in messages)


def bench_faults(faults: int, tables: int, workers: int, tell: Callable[[str], None], seed: int = 0) -> dict[str, Any]:
    """Play until so many faults have happened; how fast workers were replaced and what was left behind."""
    gc.collect()
    parent, began = psutil.Process(), time.perf_counter()
    files = parent.num_fds()
    found = _play(faults, tables, workers, tell, seed)
    gc.collect()  # arrays hold their memory until they are gone
    return found | {
        "leaked_processes": _workers_of(parent),
        "leaked_descriptors": parent.num_fds() - files,
        "seconds": time.perf_counter() - began,
        "seed": seed,
        "machine": machine(),
    }
