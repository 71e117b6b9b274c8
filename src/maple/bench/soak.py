"""Long runs: whether speed, memory, files and processes stay as they were, minute by minute, in a real run.

A machine that others use slows down and recovers by itself, and not all work alike: what it does to arithmetic says
little of a loop that waits for memory and for other processes. So the known work is the run's own: a twin, the same
run in a process of its own, trains for a moment every few seconds while the long one waits, and speeds are taken
relative to the twin's. It has a fifth of the time at the most, so it is young when the run is old.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from maple.bench.measure import machine
from maple.bench.side import SideProcess
from maple.bench.train import later_on
from maple.core.config import Config
from maple.runs.store import RunFolder
from maple.training.session import Progress, train_run

__all__ = ["Look", "Watch", "bench_soak", "verdicts"]

TWIN_S, TWIN_SLICES = 0.5, 15  # how long it trains at least, and how often between two looks
TWIN_SHARE = 0.2  # of the time at the most
RESAMPLES = 2000
WARM_UP = 0.2  # of the looks, left out
LOOKS = 4  # at least, after the warm-up
SPEED_DRIFT, MEMORY_GROWTH = 0.03, 0.02


@dataclass(frozen=True, slots=True)
class Look:
    """What a run is like at a moment."""

    minute: float
    steps_per_s: float  # since the look before, without the time that the twin took
    twin_steps_per_s: float  # of its slices since the look before
    slices: int
    memory_mb: float  # of the process and its children without the twin, as are the descriptors
    descriptors: int
    processes: int

    @property
    def relative_speed(self) -> float:
        """Steps for each of the twin's."""
        return self.steps_per_s / self.twin_steps_per_s


class Watch:
    """Looks at the process of a run every so many seconds, between two updates."""

    def __init__(
        self,
        twin: Callable[[], tuple[int, float]],  # trains it for a moment: its steps, and the seconds they took
        apart: Callable[[], set[int]],  # the twin's processes, which are no part of the run
        every_s: float,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.looks: list[Look] = []
        self._twin, self._apart, self._every_s, self._tell, self._clock = twin, apart, every_s, tell, clock
        self._process = psutil.Process()
        self._began: float | None = None  # when the first update ended
        self._last, self._next_slice = 0.0, -math.inf
        self._steps = self._seen = 0
        self._slices: list[tuple[int, float]] = []  # of the twin since the last look
        self._away_s = 0.0  # how long they took

    def __call__(self, now: Progress) -> bool:
        """Take a look if it is time for one; training always goes on."""
        updated, self._seen = now.steps != self._seen, now.steps  # steps are counted when an update ends
        if self._began is None:
            if updated:
                self._began = self._last = self._clock()
                self._steps = now.steps
            return True
        if self._clock() >= self._next_slice:
            self._train_twin()
        if updated and self._slices and self._clock() - self._last >= self._every_s:
            self._look(now.steps, self._began)
        return True

    def _train_twin(self) -> None:
        began = self._clock()
        self._slices.append(self._twin())
        ended = self._clock()
        self._away_s += ended - began
        self._next_slice = ended + max(self._every_s / TWIN_SLICES, (ended - began) * (1 / TWIN_SHARE - 1))

    def _look(self, steps: int, began: float) -> None:
        now = self._clock()
        memory_mb, descriptors, processes = self._held()
        look = Look(
            minute=(now - began) / 60,
            steps_per_s=(steps - self._steps) / (now - self._last - self._away_s),
            twin_steps_per_s=sum(done for done, _ in self._slices) / sum(took for _, took in self._slices),
            slices=len(self._slices),
            memory_mb=memory_mb,
            descriptors=descriptors,
            processes=processes,
        )
        self.looks.append(look)
        self._tell(
            f"minute {look.minute:.1f}: {look.steps_per_s:,.0f} steps/s, its twin {look.twin_steps_per_s:,.0f}, "
            f"{memory_mb:,.0f} MB, {descriptors} descriptors, {processes} processes"
        )
        self._last, self._steps, self._slices, self._away_s = self._clock(), steps, [], 0.0

    def _held(self) -> tuple[float, int, int]:
        """Memory in MB, descriptors and processes, of this process and all that it has started."""
        memory = descriptors = processes = 0
        apart = self._apart()
        for process in [self._process, *self._process.children(recursive=True)]:
            if process.pid in apart:
                continue
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


def _interval(values: list[float]) -> tuple[float, float]:
    """Where the change lies with 95 % confidence: looks of both thirds are drawn again and again."""
    third, rng = max(1, len(values) // 3), np.random.default_rng(0)
    first, last = (np.median(rng.choice(part, (RESAMPLES, third)), 1) for part in (values[:third], values[-third:]))
    low, high = np.quantile(last / first - 1, (0.025, 0.975))
    return float(low), float(high)


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
        "speed_drift_ci95": _interval(relative),
        "plain_speed_drift": _change([look.steps_per_s for look in kept]),
        "twin_drift": _change([look.twin_steps_per_s for look in kept]),
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
    low, high = found["speed_drift_ci95"]
    told = {
        "speed": f"speed {found['speed_drift']:+.1%} ({low:+.1%} to {high:+.1%}) beside its twin's "
        f"(allowed ±{SPEED_DRIFT:.0%})",
        "memory": f"memory {found['memory_growth']:+.1%} (allowed {MEMORY_GROWTH:.0%})",
        **{name: f"{name} {found[name][0]:g} → {found[name][1]:g}" for name in ("descriptors", "processes")},
    }
    wrong = [told[name] for name, good in passed.items() if not good]
    right = [told[name] for name, good in passed.items() if good]
    return f"NOT FLAT: {'; '.join(wrong)}; flat: {'; '.join(right)}" if wrong else f"flat: {'; '.join(right)}"


@contextmanager
def _twin(config: Config) -> Iterator[tuple[Callable[[], tuple[int, float]], Callable[[], set[int]]]]:
    """The same run in another process, past its first update: what trains it, and what tells its processes."""
    with SideProcess("twin") as side:
        side.ask("begin", config=later_on(config).model_dump())
        side.ask("train", seconds=0.0)
        root = psutil.Process(side.process.pid)

        def train() -> tuple[int, float]:
            done = side.ask("train", seconds=TWIN_S)
            return int(done["steps"]), float(done["wall_s"])

        yield train, lambda: {root.pid, *(child.pid for child in root.children(recursive=True))}


def bench_soak(config: Config, folder: Path, every_s: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """Train for the config's own budget in `folder`, looking every so many seconds."""
    with _twin(config) as (twin, apart):
        watch = Watch(twin, apart, every_s, tell)
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
