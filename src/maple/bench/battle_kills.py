"""Node processes killed by the hundred: who replaces them how fast, and what is lost.

Every row is checked: its game must be the one that its table is at, and its decision the next of its seat.
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

from maple.arena.node import NodeArena
from maple.bench.measure import machine
from maple.core.step import Outcome, Step
from maple.games import make_game

__all__ = ["bench_battle_kills"]

PAUSE_S = 3.0  # between a replacement and the next kill: the next spare warms up


class _Rows:
    """Where every table is, by what the arena said of it before."""

    def __init__(self, tables: int) -> None:
        self._game = np.zeros(tables, np.int64)
        self._decision = np.zeros((tables, 2), np.int64)
        self.corrupted = self.lost = self.finished = 0

    def check(self, step: Step) -> None:
        """Take in what ended and compare the rows with what must come next."""
        for table, game, outcome in zip(step.ended.table, step.ended.game, step.ended.outcome, strict=True):
            self.corrupted += int(game != self._game[table])
            self._game[table], self._decision[table] = game + 1, 0
            self.lost += int(outcome == Outcome.LOST)
            self.finished += int(outcome != Outcome.LOST)
        keys = step.keys
        wrong = (keys.game != self._game[keys.table]) | (keys.decision != self._decision[keys.table, keys.seat])
        self.corrupted += int(wrong.sum())
        self._decision[keys.table, keys.seat] += 1


def _strike(arena: NodeArena, number: int, go_on: Callable[[], None]) -> float:
    """Kill one of the processes; play on until its tables have decisions again. Returns the seconds that it took."""
    pids, crashes = arena.pids, arena.counters.crashes
    began = time.perf_counter()
    os.kill(pids[number % len(pids)], signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    while arena.counters.crashes == crashes or arena.replacing:
        go_on()
    return time.perf_counter() - began


def _play(
    options: dict[str, Any], kills: int, processes: int, battles: int, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    game = make_game("showdown", options)
    bot, rows, replaced, longest = game.bot("random"), _Rows(processes * battles), list[float](), 0.0
    with NodeArena(game, processes * battles, seed, processes=processes) as arena:

        def go_on() -> None:
            nonlocal longest
            began = time.perf_counter()
            step = arena.recv()
            longest = max(longest, time.perf_counter() - began)
            rows.check(step)
            action = np.empty(len(step.keys), np.int32)
            bot(step.view, seed, step.keys, action, 0, len(action))
            arena.send(action)

        go_on()
        longest = 0.0  # the first waits for Node to start
        while len(replaced) < kills:
            until = time.perf_counter() + PAUSE_S
            while time.perf_counter() < until:
                go_on()
            replaced.append(_strike(arena, len(replaced), go_on))
            tell(f"{len(replaced)} of {kills} kills, the last replaced in {replaced[-1]:.2f} s")
        counters = arena.counters
        return {
            "kills": len(replaced),
            "crashes": counters.crashes,
            "hangs": counters.hangs,
            "node_starts": counters.starts,
            "replaced_p50_s": float(np.quantile(replaced, 0.5)),
            "replaced_p99_s": float(np.quantile(replaced, 0.99)),
            "longest_recv_s": longest,
            "battles_finished": rows.finished,
            "battles_lost": rows.lost,
            "battles_of_the_killed": kills * battles,
            "corrupted_rows": rows.corrupted,
        }


def bench_battle_kills(
    options: dict[str, Any], kills: int, processes: int, battles: int, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Kill so many Node processes in play, one after the other; what was lost and what was left behind."""
    gc.collect()
    parent, began = psutil.Process(), time.perf_counter()
    files, children = parent.num_fds(), len(parent.children(recursive=True))
    found = _play(options, kills, processes, battles, seed, tell)
    gc.collect()  # arrays hold their memory until they are gone
    return found | {
        "leaked_processes": len(parent.children(recursive=True)) - children,
        "leaked_descriptors": parent.num_fds() - files,
        "seconds": time.perf_counter() - began,
        "seed": seed,
        "machine": machine(),
    }
