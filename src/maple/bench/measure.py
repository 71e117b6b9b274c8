"""How things are measured: one at a time on the machine, interleaved, as ratios with intervals."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from maple.core.cores import available_cores
from maple.runs.machine import versions

__all__ = ["interleave", "machine", "machine_lock", "ratio_interval"]

LOCK = "maple-bench.lock"  # in the folder for files of the moment


@contextmanager
def machine_lock(tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the machine: only one thing is measured at a time."""
    lock = FileLock(Path(tempfile.gettempdir()) / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell("another measurement is under way on this machine; waiting for it to end")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def machine() -> dict[str, Any]:
    """What a figure was measured on."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": available_cores(),
        "python": platform.python_version(),
        "versions": versions(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def interleave(a: Callable[[], float], b: Callable[[], float], pairs: int) -> tuple[list[float], list[float]]:
    """Run A B B A A B …: each call measures one slice and returns its speed. The first pair is warm-up and dropped."""
    speeds: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs + 1):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        for side in order:
            speed = (a, b)[side]()
            if pair > 0:
                speeds[side].append(speed)
    return speeds


def ratio_interval(
    a: Sequence[float], b: Sequence[float], samples: int = 4000, level: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """The median of the pairs' ratios a / b, and a bootstrap interval of that level for it."""
    ratios = np.asarray(a) / np.asarray(b)
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(ratios, (samples, len(ratios))), axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(ratios)), (float(low), float(high))
