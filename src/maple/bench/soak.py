"""Long runs: whether speed, memory, files and processes stay as they were, minute by minute, in a real run.

A machine that others use slows down and recovers by itself, so a kernel of known work is timed all along, many moments
between two looks, and speeds are taken relative to the median of them.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import suppress
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

__all__ = ["Look", "Watch", "bench_soak", "verdicts"]

CALIBRATE_S, CALIBRATIONS = 0.02, 60  # how long, and how often between two looks
CALIBRATE_SHARE = 0.1  # of the time at the most, where looks are close
SHAPE = (256, 256, 256)
WARM_UP = 0.2  # of the looks, left out
LOOKS = 4  # at least, after the warm-up
SPEED_DRIFT, MEMORY_GROWTH = 0.03, 0.02


@dataclass(frozen=True, slots=True)
class Look:
    """What a run is like at a moment."""

    minute: float
    steps_per_s: float  # since the look before, without the time that the known work took
    calibration: float  # of the known work, in GFLOP/s: the median of its timings since the look before
    timings: int
    memory_mb: float  # of the process and its children, as are the descriptors
    descriptors: int
    processes: int

    @property
    def relative_speed(self) -> float:
        """Steps for each unit of the known work."""
        return self.steps_per_s / self.calibration


class Watch:
    """Looks at the process of a run every so many seconds, between two updates."""

    def __init__(
        self,
        known_work: Callable[[], float],  # does it, and tells how fast it went
        every_s: float,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.looks: list[Look] = []
        self._known_work, self._every_s, self._tell, self._clock = known_work, every_s, tell, clock
        self._process = psutil.Process()
        self._began: float | None = None  # when the first update ended
        self._last, self._timed = 0.0, -math.inf
        self._steps = self._seen = 0
        self._known: list[float] = []  # speeds of the known work since the last look
        self._known_s = 0.0  # how long that took

    def __call__(self, now: Progress) -> bool:
        """Take a look if it is time for one; training always goes on."""
        updated, self._seen = now.steps != self._seen, now.steps  # steps are counted when an update ends
        if self._began is None:
            if updated:
                self._began = self._last = self._clock()
                self._steps = now.steps
            return True
        self._calibrate()
        if updated and self._known and self._clock() - self._last >= self._every_s:
            self._look(now.steps, self._began)
        return True

    def _calibrate(self) -> None:
        """Time the known work, if it is time for that."""
        began = self._clock()
        if began - self._timed >= max(self._every_s / CALIBRATIONS, CALIBRATE_S / CALIBRATE_SHARE):
            self._known.append(self._known_work())
            self._timed = self._clock()
            self._known_s += self._timed - began

    def _look(self, steps: int, began: float) -> None:
        now = self._clock()
        memory_mb, descriptors, processes = self._held()
        look = Look(
            minute=(now - began) / 60,
            steps_per_s=(steps - self._steps) / (now - self._last - self._known_s),
            calibration=float(np.median(self._known)),
            timings=len(self._known),
            memory_mb=memory_mb,
            descriptors=descriptors,
            processes=processes,
        )
        self.looks.append(look)
        self._tell(
            f"minute {look.minute:.1f}: {look.steps_per_s:,.0f} steps/s at {look.calibration:.1f} GFLOP/s, "
            f"{memory_mb:,.0f} MB, {descriptors} descriptors, {processes} processes"
        )
        self._last, self._steps, self._known, self._known_s = self._clock(), steps, [], 0.0

    def _held(self) -> tuple[float, int, int]:
        """Memory in MB, descriptors and processes, of this process and all that it has started."""
        memory = descriptors = processes = 0
        for process in [self._process, *self._process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                memory += process.memory_info().rss
                descriptors += process.num_handles() if sys.platform == "win32" else process.num_fds()
                processes += 1
        return memory / 2**20, descriptors, processes


def _ends(values: list[float]) -> tuple[float, float]:
    """The medians of the first third and of the last."""
    third = max(1, len(values) // 3)
    return float(np.median(values[:third])), float(np.median(values[-third:]))


def _change(values: list[float]) -> float:
    """From the first third to the last, relative to the first."""
    first, last = _ends(values)
    return last / first - 1


def verdicts(looks: list[Look]) -> dict[str, Any]:
    """How much each figure changed after the warm-up, and whether that is flat."""
    kept = looks[int(WARM_UP * len(looks)) :]
    about = {"kept_looks": len(kept), "limits": {"speed_drift": SPEED_DRIFT, "memory_growth": MEMORY_GROWTH}}
    if len(kept) < LOOKS:
        sentence = f"too short to say: it takes {LOOKS} looks after the warm-up, and there are {len(kept)}"
        return {"flat": None, "verdict": sentence, **about}
    relative = [look.relative_speed for look in kept]
    found: dict[str, Any] = {
        "speed_drift": _change(relative),
        "plain_speed_drift": _change([look.steps_per_s for look in kept]),
        "calibration_drift": _change([look.calibration for look in kept]),
        "speed_spread": float(np.median(np.abs(np.array(relative) / np.median(relative) - 1))),
        "memory_growth": _change([look.memory_mb for look in kept]),
        "descriptors": _ends([look.descriptors for look in kept]),
        "processes": _ends([look.processes for look in kept]),
    }
    passed = {
        "speed": abs(found["speed_drift"]) <= SPEED_DRIFT,
        "memory": found["memory_growth"] < MEMORY_GROWTH,
        **{name: found[name][1] <= found[name][0] for name in ("descriptors", "processes")},
    }
    flat = all(passed.values())
    return {"flat": flat, "verdict": _sentence(passed, found), "passed": passed, **found, **about}


def _sentence(passed: dict[str, bool], found: dict[str, Any]) -> str:
    """The verdict in words, what is not flat first."""
    told = {
        "speed": f"speed {found['speed_drift']:+.1%} beside the known work (allowed ±{SPEED_DRIFT:.0%})",
        "memory": f"memory {found['memory_growth']:+.1%} (allowed {MEMORY_GROWTH:.0%})",
        **{name: f"{name} {found[name][0]:g} → {found[name][1]:g}" for name in ("descriptors", "processes")},
    }
    wrong = [told[name] for name, good in passed.items() if not good]
    right = [told[name] for name, good in passed.items() if good]
    return f"NOT FLAT: {'; '.join(wrong)}; flat: {'; '.join(right)}" if wrong else f"flat: {'; '.join(right)}"


def bench_soak(config: Config, folder: Path, every_s: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """Train for the config's own budget in `folder`, looking every so many seconds."""
    threads = config.threads or available_cores()
    watch = Watch(lambda: matmul_flops(*SHAPE, threads, CALIBRATE_S) / 1e9, every_s, tell)
    last = train_run(config, RunFolder(folder), watch, warn=tell)
    return {
        "game": config.name,
        "algo": config.algo,
        "minutes": last.elapsed_s / 60,
        "every_s": every_s,
        "steps": last.steps,
        "games": last.games,
        "lost": last.lost,
        "worker_deaths": last.worker_deaths,
        **verdicts(watch.looks),
        "looks": [asdict(look) for look in watch.looks],
        "seed": config.seed,
        "config": config.model_dump(),
        "machine": machine(),
    }
