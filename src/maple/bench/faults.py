"""Faults by the hundred: envs that raise, exit and crash, workers that are killed and stopped from outside.

Every row is checked against what the env must have shown, so a row of a dead worker, or of another table, is seen.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from maple.arena.workers import WorkerArena
from maple.bench.burn import BurnEnv
from maple.bench.measure import machine
from maple.core.step import Outcome, Step
from maple.games import make_game
from maple.games.external.game import ExternalGame

__all__ = ["bench_faults"]

STEP_LIMIT_S = 1.0
FAULT_EVERY = 40  # of the games
FROM_OUTSIDE_S = 0.5  # between signals sent to a worker


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


def _workers_of(parent: psutil.Process) -> int:
    return sum("maple.arena.worker_main" in " ".join(child.cmdline()) for child in parent.children(recursive=True))


def _play(faults: int, tables: int, workers: int, tell: Callable[[str], None]) -> dict[str, Any]:
    game = make_game("maple.bench.burn:BurnEnv", {"fault_every": FAULT_EVERY})
    assert isinstance(game, ExternalGame)
    rows, messages, sent, longest, told, count = _Rows(), list[str](), {"SIGKILL": 0, "SIGSTOP": 0}, 0.0, 0, 0
    with WorkerArena(
        game, tables, 0, workers=workers, spares=2, step_limit_s=STEP_LIMIT_S, max_deaths=10**9, log=messages.append
    ) as arena:
        rows.check(arena.recv())
        struck = time.perf_counter()
        while (count := arena.lost_workers + sum("lost its game" in message for message in messages)) < faults:
            arena.send(rows.answer)
            started = time.perf_counter()
            rows.check(arena.recv())
            now = time.perf_counter()
            longest = max(longest, now - started)
            if now - struck > FROM_OUTSIDE_S and not arena.replacing:
                name = "SIGSTOP" if sum(sent.values()) % 8 == 7 else "SIGKILL"
                os.kill(arena.pids[sent["SIGKILL"] % len(arena.pids)], signal.Signals[name])
                sent[name] += 1
                struck = now
            if count >= told + 100:
                told = count
                tell(f"{count} of {faults} faults")
        replaced = np.array(arena.replaced_s)
        return {
            "faults": count,
            "worker_deaths": arena.lost_workers,
            "exceptions": count - arena.lost_workers,
            "sent": sent,
            "process_starts": arena.starts,
            "replaced_p50_s": float(np.quantile(replaced, 0.5)) if len(replaced) else 0.0,
            "replaced_p99_s": float(np.quantile(replaced, 0.99)) if len(replaced) else 0.0,
            "longest_recv_s": longest,
            "finished_games": rows.finished_games,
            "lost_games": rows.lost_games,
            "corrupted_rows": rows.corrupted,
        }


def bench_faults(faults: int, tables: int, workers: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Play until so many faults have happened; how fast workers were replaced and what was left behind."""
    gc.collect()
    parent, began = psutil.Process(), time.perf_counter()
    files = parent.num_fds()
    found = _play(faults, tables, workers, tell)
    gc.collect()  # arrays hold their memory until they are gone
    return found | {
        "leaked_processes": _workers_of(parent),
        "leaked_descriptors": parent.num_fds() - files,
        "seconds": time.perf_counter() - began,
        "machine": machine(),
    }
