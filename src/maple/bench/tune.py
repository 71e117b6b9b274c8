"""Which number of tables and threads is fastest on this machine, within a budget of seconds.

A race: every round measures what is still in it once, in an order that turns round each time, and drops whatever is
clearly behind. It begins on a coarse grid; the neighbours of the best then join. What is left at the end is decided by
the median of its ratios to the leader, taken in the same rounds, so a machine that slows down slows all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.train import PAIRS, MapleSide
from maple.core.config import Config, user_presets
from maple.core.errors import ConfigError, RunError
from maple.runs.store import write_atomically

__all__ = ["Setting", "Slices", "Tried", "bench_tuner", "neighbours", "race", "start_grid", "tune", "write_preset"]

TABLES = (64, 256, 1024, 4096)  # where the race begins; the steps between are tried around the best
MOST_TABLES = 16384
KEEP = 0.85  # of the leader's speed: below, a setting drops out after its second slice
CLOSE = 0.97  # of the leader's speed: such settings are measured on until the time is up
MIN_SLICES = 3


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """A point of the search."""

    threads: int
    tables: int

    def as_dict(self) -> dict[str, int]:
        """By the names of the config."""
        return {"tables": self.tables, "threads": self.threads}


@dataclass(slots=True)
class Tried:
    """A setting and the speeds that it had, by round."""

    setting: Setting
    speeds: dict[int, float] = field(default_factory=dict)
    racing: bool = True

    @property
    def median(self) -> float:
        """Of its speeds."""
        return float(np.median(list(self.speeds.values()))) if self.speeds else 0.0


Measure = Callable[[Setting], float]


def start_grid(cores: int) -> list[Setting]:
    """Few tables to many, on one thread, on half the cores, on all but one and on all."""
    threads = sorted({1, max(1, cores // 2), max(1, cores - 1), cores})
    return [Setting(t, n) for t in reversed(threads) for n in TABLES]


def neighbours(setting: Setting, cores: int) -> list[Setting]:
    """Half and twice the tables, one thread more and less."""
    tables = [n for n in (setting.tables // 2, setting.tables * 2) if 16 <= n <= MOST_TABLES]
    threads = [t for t in (setting.threads - 1, setting.threads + 1) if 1 <= t <= cores]
    return [*(Setting(setting.threads, n) for n in tables), *(Setting(t, setting.tables) for t in threads)]


def _ratio(one: Tried, leader: Tried) -> float:
    """Its speed over the leader's, in the rounds that both were in; of all rounds if there is none."""
    both = [number for number in one.speeds if number in leader.speeds]
    if not both:
        return one.median / max(leader.median, 1e-9)
    return float(np.median([one.speeds[number] / leader.speeds[number] for number in both]))


def _leader(tried: Iterable[Tried]) -> Tried:
    """The one that is ahead in the rounds that it shares with the one of the highest median."""
    rows = [row for row in tried if row.speeds]
    first = max(rows, key=lambda row: row.median)
    racing = [row for row in rows if row.racing and len(row.speeds) >= min(MIN_SLICES, len(first.speeds))]
    return max([first, *racing], key=lambda row: _ratio(row, first))


def race(
    measure: Measure,
    grid: Sequence[Setting],
    around: Callable[[Setting], list[Setting]],
    left: Callable[[], float],
    tell: Callable[[list[Tried]], None],
) -> list[Tried]:
    """Measure until `left()`, a share of the budget that falls from 1 to 0, is used up; the best comes first."""
    tried = {setting: Tried(setting) for setting in grid}
    number, rounds_alone = 0, 0
    while left() > 0:
        racing = [row for row in tried.values() if row.racing]
        for row in racing if number % 2 == 0 else reversed(racing):
            if left() <= 0:
                break
            row.speeds[number] = measure(row.setting)
            tell(list(tried.values()))
        leader = _leader(tried.values())
        for row in racing:
            slow = KEEP if len(row.speeds) < MIN_SLICES else CLOSE
            row.racing = row is leader or len(row.speeds) < 2 or _ratio(row, leader) >= slow
        for setting in around(leader.setting) if number > 0 and left() > 0.2 else []:
            tried.setdefault(setting, Tried(setting))
        number += 1
        alone = sum(row.racing for row in tried.values()) == 1
        rounds_alone = rounds_alone + 1 if alone else 0
        if rounds_alone >= 2:
            break
    leader = _leader(tried.values())
    rows = sorted((row for row in tried.values() if row.speeds), key=lambda row: -_ratio(row, leader))
    return [leader, *(row for row in rows if row is not leader)]


class Slices:
    """Measures steps a second of a setting in a slice of whole updates; each setting keeps a run of its own."""

    def __init__(self, config: Config, slice_s: float) -> None:
        self._config, self._slice_s = config, slice_s
        self._sides: dict[Setting, MapleSide] = {}

    def __call__(self, setting: Setting) -> float:
        side = self._sides.get(setting)
        if side is None:
            side = self._sides[setting] = MapleSide(self._config.model_copy(update=setting.as_dict()))
            side.slice(0.0)  # one update as warm-up
        return side.slice(self._slice_s)

    def close(self) -> None:
        """End all threads."""
        for side in self._sides.values():
            side.team.close()


def tune(
    config: Config,
    cores: int,
    seconds: float,
    tell: Callable[[list[Tried]], None],
    clock: Callable[[], float] = time.monotonic,
) -> list[Tried]:
    """Race settings of a real run for `seconds`; the best comes first."""
    began, measure = clock(), Slices(config, min(1.0, seconds / 60))
    try:
        return race(
            measure,
            start_grid(cores),
            lambda setting: neighbours(setting, cores),
            lambda: 1 - (clock() - began) / seconds,
            tell,
        )
    finally:
        measure.close()


def bench_tuner(config: Config, cores: int, seconds: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """What tune() finds beside the best of the whole grid, measured for twice as long, and their ratio in turns."""
    tell(f"tuning for {seconds:g} s")
    found = tune(config, cores, seconds, lambda _: None)[0].setting
    grid = [Setting(t, 2**n) for t in range(1, cores + 1) for n in range(5, 15)]
    measure = Slices(config, max(0.1, 2 * seconds / (MIN_SLICES * len(grid))))
    speeds: dict[Setting, list[float]] = {setting: [] for setting in grid}
    try:
        for number in range(MIN_SLICES):
            for setting in grid if number % 2 == 0 else reversed(grid):
                tell(f"the whole grid, round {number + 1} of {MIN_SLICES}: {setting.as_dict()}")
                speeds[setting].append(measure(setting))
        best = max(grid, key=lambda setting: float(np.median(speeds[setting])))
        ours, theirs = interleave(lambda: measure(found), lambda: measure(best), PAIRS)
    finally:
        measure.close()
    ratio, interval = ratio_interval(ours, theirs)
    return {
        "game": config.name,
        "tuned": found.as_dict(),
        "best_of_grid": best.as_dict(),
        "settings_in_grid": len(grid),
        "ratio": ratio,
        "ratio_ci95": list(interval),
        "seed": config.seed,
        "machine": machine(),
    }


def write_preset(game: str, name: str, settings: dict[str, Any], comment: str) -> str:
    """Write a preset of the user's own; returns where it is."""
    path = user_presets(game) / f"{name}.yml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, f"# {comment}\n{yaml.safe_dump(settings, sort_keys=False)}")
    except (OSError, RunError):
        raise ConfigError(f"cannot write preset {path}; set MAPLE_CONFIG_DIR to a folder that can be written") from None
    return str(path)
