"""Long runs: whether speed, memory, files and processes stay as they were, minute by minute, in a real run.

A machine that others use slows down and recovers by itself, so a kernel of known work is timed all along, a moment
at a time, and speeds are taken relative to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from maple.bench.limits import matmul_flops
from maple.bench.measure import machine
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.runs.store import RunFolder
from maple.training.session import Progress, train_run

__all__ = ["Look", "bench_soak", "verdicts"]

CALIBRATE_S, CALIBRATIONS = 0.05, 20  # how long, and how often between two looks
SHAPE = (256, 256, 256)
WARM_UP = 0.2  # of the looks, left out
SPEED_DRIFT, MEMORY_GROWTH = 0.03, 0.02


@dataclass(frozen=True, slots=True)
class Look:
    """What a run is like at a moment."""

    minute: float
    steps_per_s: float  # since the look before
    calibration: float  # of the known work
    memory_mb: float  # of the process and its children
    descriptors: int
    processes: int

    @property
    def relative_speed(self) -> float:
        """Steps for each unit of the known work."""
        return self.steps_per_s / self.calibration


class _Watch:
    """Looks at the process of a run every so many seconds, between two updates."""

    def __init__(self, threads: int, every_s: float, tell: Callable[[str], None]) -> None:
        self.looks: list[Look] = []
        self._threads, self._every_s, self._tell = threads, every_s, tell
        self._process = psutil.Process()
        self._began = self._last = self._timed = time.monotonic()
        self._steps = 0
        self._known: list[float] = []  # speeds of the known work since the last look

    def __call__(self, now: Progress) -> bool:
        """Take a look if it is time for one; training always goes on."""
        if time.monotonic() - self._timed >= self._every_s / CALIBRATIONS:
            self._known.append(matmul_flops(*SHAPE, self._threads, CALIBRATE_S) / 1e9)
            self._timed = time.monotonic()
        passed = time.monotonic() - self._last
        if passed < self._every_s:
            return True
        speed, self._steps = (now.steps - self._steps) / passed, now.steps
        look = Look(
            minute=(time.monotonic() - self._began) / 60,
            steps_per_s=speed,
            calibration=float(np.mean(self._known)),
            memory_mb=self._memory_mb(),
            descriptors=self._process.num_fds() if hasattr(self._process, "num_fds") else 0,
            processes=1 + len(self._process.children(recursive=True)),
        )
        self.looks.append(look)
        self._tell(
            f"minute {look.minute:.1f}: {speed:,.0f} steps/s, {look.memory_mb:,.0f} MB, "
            f"{look.descriptors} descriptors, {look.processes} processes"
        )
        self._last, self._known = time.monotonic(), []
        return True

    def _memory_mb(self) -> float:
        found = 0
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                found += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return found / 2**20


def _change(values: list[float]) -> float:
    """From the first third to the last, by medians, relative to the first."""
    third = max(1, len(values) // 3)
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    return last / first - 1


def verdicts(looks: list[Look]) -> dict[str, Any]:
    """How much each figure changed after the warm-up, and whether that is flat."""
    kept = looks[int(WARM_UP * len(looks)) :]
    if len(kept) < 4:
        return {"flat": None, "note": "too short to say: it takes at least four looks"}
    found: dict[str, Any] = {
        "speed_drift": _change([look.relative_speed for look in kept]),
        "memory_growth": _change([look.memory_mb for look in kept]),
        "descriptors": [kept[0].descriptors, kept[-1].descriptors],
        "processes": [kept[0].processes, kept[-1].processes],
    }
    flat = (
        abs(found["speed_drift"]) <= SPEED_DRIFT
        and found["memory_growth"] < MEMORY_GROWTH
        and all(len(set(found[name])) == 1 for name in ("descriptors", "processes"))
    )
    return {"flat": flat, **found}


def bench_soak(config: Config, folder: Path, every_s: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """Train for the config's own budget in `folder`, looking every so many seconds."""
    watch = _Watch(config.threads or available_cores(), every_s, tell)
    last = train_run(config, RunFolder(folder), watch, warn=tell)
    return {
        "game": config.name,
        "algo": config.algo,
        "minutes": last.elapsed_s / 60,
        "steps": last.steps,
        **verdicts(watch.looks),
        "looks": [asdict(look) for look in watch.looks],
        "seed": config.seed,
        "machine": machine(),
    }
