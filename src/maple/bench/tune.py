"""Which number of tables, threads and workers is fastest on this machine, within a budget of seconds.

A race: every round measures what is still in it once, in an order that turns round each time, and drops whatever is
clearly behind. It begins on a coarse grid; the neighbours of the best then join. What is left at the end is decided by
the median of its ratios to the leader, taken in the same rounds, so a machine that slows down slows all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import yaml

from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.train import PAIRS, MapleSide
from maple.core.config import Config, user_presets
from maple.core.cores import available_cores
from maple.core.errors import ConfigError, RunError
from maple.games import make_game
from maple.games.bridged import Bridged
from maple.games.external.game import ExternalGame
from maple.runs.store import write_atomically
from maple.training.build import AUTO_TABLES, least_replay

__all__ = ["Setting", "Slices", "Space", "Tried", "bench_tuner", "race", "tune", "write_preset"]

KEEP = 0.85  # of the leader's speed: below, a setting drops out after its second slice
CLOSE = 0.97  # of the leader's speed: such settings are measured on until the time is up
MIN_SLICES = 3
SLICES = 120  # that a budget should have room for
FEW_MINIBATCHES = 2


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """A point of the search; no workers where a game does not know them."""

    threads: int
    tables: int
    workers: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """By the names of the config."""
        counts: dict[str, Any] = {"tables": self.tables, "threads": self.threads}
        return counts if self.workers is None else {**counts, "workers": {"count": self.workers}}

    def within(self, config: Config) -> dict[str, Any]:
        """What to set in a run's config for it; as much is learned from a decision as before."""
        return {**self.as_dict(), **({"dqn": self._rounds(config)} if config.algo == "dqn" else {})}

    def of(self, config: Config) -> Config:
        """A run's config with this setting."""
        changed = self.within(config)
        sections = {name: part for name, part in changed.items() if isinstance(part, dict)}
        parts = {name: getattr(config, name).model_copy(update=part) for name, part in sections.items()}
        return config.model_copy(update={**changed, **parts})

    def _rounds(self, config: Config) -> dict[str, int]:
        """Rounds of learning from replay that fit the tables, with as many updates for a decision."""
        base, c = config.tables or AUTO_TABLES, config.dqn
        decisions, updates = max(base, c.train_every or base), c.updates_per_step
        every = max(self.tables, -(-decisions // updates))
        return {"train_every": every, "updates_per_step": max(1, round(updates * every / decisions))}

    def __str__(self) -> str:
        text = f"{self.tables} tables on {self.threads} thread{'s' * (self.threads > 1)}"
        return text if self.workers is None else f"{text}, {self.workers} worker{'s' * (self.workers != 1)}"


@dataclass(frozen=True, slots=True)
class Space:
    """Where the race begins, and how far it may go: tables from few to many by factors of two."""

    cores: int
    tables: tuple[int, ...] = (64, 256, 1024, 4096)
    fewest: int = 16
    most: int = 16384
    with_workers: bool = False

    @classmethod
    def of(cls, config: Config, cores: int) -> Self:
        """What there is to choose for a run; envs and battles are heavier than tables of kernels."""
        game = make_game(config.name, config.game)
        if isinstance(game, ExternalGame):
            space = cls(cores, (8, 32, 128), 2, 512, with_workers=not config.actors.count)  # actors play by themselves
        elif isinstance(game, Bridged):
            space = cls(cores, (16, 32, 64), 4, 256)
        else:
            space = cls(cores)
        if config.algo != "dqn":
            return space
        one = least_replay(config.model_copy(update={"tables": 1}), game)
        most = max(space.fewest, min(space.most, config.dqn.capacity // one))
        return replace(space, most=most, tables=tuple(n for n in space.tables if n <= most) or (most,))

    def of_preset(self, config: Config) -> Setting:
        """What a run has that was not tuned."""
        workers = config.workers.count if isinstance(config.workers.count, int) else self.cores
        tables = config.tables or AUTO_TABLES
        return Setting(config.threads or self.cores, tables, min(workers, tables) if self.with_workers else None)

    def _counts(self, fewest: int) -> list[int]:
        return sorted({fewest, max(1, self.cores // 2), max(1, self.cores - 1), self.cores}, reverse=True)

    def start(self) -> list[Setting]:
        """Few tables to many; on one thread, on half the cores, on all but one and on all; as many workers, or none."""
        if self.with_workers:
            return [Setting(self.cores, n, w) for w in self._counts(0) for n in self.tables]
        return [Setting(t, n) for t in self._counts(1) for n in self.tables]

    def around(self, setting: Setting) -> list[Setting]:
        """Half and twice the tables, one thread more and less, one worker more and less."""
        found = [replace(setting, tables=n) for n in (setting.tables // 2, setting.tables * 2)]
        found += [replace(setting, threads=setting.threads + step) for step in (-1, 1)]
        if setting.workers is not None:
            found += [replace(setting, workers=setting.workers + step) for step in (-1, 1)]
        return [one for one in found if self._has(one)]

    def _has(self, setting: Setting) -> bool:
        return (
            self.fewest <= setting.tables <= self.most
            and 1 <= setting.threads <= self.cores
            and 0 <= (setting.workers or 0) <= min(self.cores, setting.tables)
        )

    def grid(self) -> list[Setting]:
        """Everything there is."""
        workers = range(self.cores + 1) if self.with_workers else [None]
        tables = [2**n for n in range(20) if 2 * self.fewest <= 2**n <= self.most]
        every = [Setting(t, n, w) for t in range(1, self.cores + 1) for n in tables for w in workers]
        return [setting for setting in every if self._has(setting)]


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

    def ratio_to(self, leader: Tried) -> float:
        """Its speed over the leader's, in the rounds that both were in; of all rounds if there is none.

        Rounds there and back count alike: a machine that gets slower meanwhile favours whoever comes first.
        """
        ratios = {n: speed / leader.speeds[n] for n, speed in self.speeds.items() if n in leader.speeds}
        if not ratios:
            return self.median / max(leader.median, 1e-9)
        ways = [[ratio for n, ratio in ratios.items() if n % 2 == way] for way in (0, 1)]
        return float(np.exp(np.mean([np.log(np.median(way)) for way in ways if way])))


Measure = Callable[[Setting], float]


def _leader(tried: Iterable[Tried]) -> Tried:
    """Of those still in the race, the one that is ahead in the rounds that it shares with the highest median."""
    racing = [row for row in tried if row.speeds and row.racing]
    first = max(racing, key=lambda row: row.median)
    known = [row for row in racing if len(row.speeds) >= min(MIN_SLICES, len(first.speeds))]
    return max([first, *known], key=lambda row: row.ratio_to(first))


def race(
    measure: Measure,
    grid: Sequence[Setting],
    around: Callable[[Setting], list[Setting]],
    left: Callable[[], float],
    tell: Callable[[list[Tried]], None],
    drop: Callable[[Setting], None] = lambda _: None,
) -> list[Tried]:
    """Measure until `left()`, a share of the budget that falls from 1 to 0, is used up; the best comes first.

    `drop` is told of what falls behind, which never comes back.
    """
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
            row.racing = row is leader or len(row.speeds) < 2 or row.ratio_to(leader) >= slow
            if not row.racing:
                drop(row.setting)
        for setting in around(leader.setting) if number > 0 and left() > 0.2 else []:
            tried.setdefault(setting, Tried(setting))
        number += 1
        alone = sum(row.racing for row in tried.values()) == 1
        rounds_alone = rounds_alone + 1 if alone else 0
        if rounds_alone >= 2:
            break
    leader = _leader(tried.values())
    rows = sorted((row for row in tried.values() if row.speeds), key=lambda row: -row.ratio_to(leader))
    return [leader, *(row for row in rows if row is not leader)]


class Slices:
    """Measures steps a second of a setting in a slice of whole updates; each setting keeps a run of its own.

    Where an update takes longer than a slice, it is made of fewer decisions: what a decision costs stays the same as
    long as a few minibatches and a decision of each table are in it.
    """

    def __init__(self, config: Config, slice_s: float) -> None:
        self._config, self._slice_s = config, slice_s
        self._sides: dict[Setting, MapleSide] = {}
        self._open: dict[Setting, ExitStack] = {}  # what ends each of them
        self._pace = 0.0  # decisions that the first setting learned from in a slice

    def __call__(self, setting: Setting) -> float:
        side = self._sides.get(setting)
        if side is None:
            if not self._pace:
                with MapleSide(self._brief(setting)) as probe:
                    probe.slice(0.0)
                    self._pace = probe.slice(0.0) * self._slice_s
            self._open[setting] = ExitStack()
            self._sides[setting] = side = self._open[setting].enter_context(MapleSide(self._brief(setting)))
            side.slice(0.0)  # one update as warm-up
        return side.slice(self._slice_s)

    def _brief(self, setting: Setting) -> Config:
        """A run with updates that about fit a slice, and are no longer than they would be; nobody stands by."""
        config = setting.of(self._config)
        recipe = config.recipe
        decisions = max(int(self._pace), FEW_MINIBATCHES * recipe.minibatch, setting.tables)
        changed = recipe.model_copy(update={"horizon": min(recipe.horizon, decisions)})
        workers = config.workers.model_copy(update={"spares": 0})
        return config.model_copy(update={config.algo: changed, "workers": workers})

    def drop(self, setting: Setting) -> None:
        """End the threads and processes of a setting: idle ones hold memory, and share the cores with the others."""
        del self._sides[setting]
        self._open.pop(setting).close()

    def close(self) -> None:
        """End all threads and workers."""
        for setting in list(self._sides):
            self.drop(setting)


def tune(
    config: Config,
    space: Space,
    seconds: float,
    tell: Callable[[list[Tried]], None],
    clock: Callable[[], float] = time.monotonic,
) -> list[Tried]:
    """Race settings of a real run for `seconds`; the best comes first."""
    began, measure = clock(), Slices(config, min(1.0, seconds / SLICES))
    try:
        return race(
            measure,
            space.start(),
            space.around,
            lambda: 1 - (clock() - began) / seconds,
            tell,
            measure.drop,
        )
    finally:
        measure.close()


def bench_tuner(config: Config, seconds: float) -> dict[str, Any]:
    """What tune() finds in turns with the best of the whole grid, and with the preset that it began from.

    The grid, and each of the turns, take twice as long as the tuner. Turns are as short as its slices: many short pairs
    tell two settings apart on a machine whose speed changes from second to second, where a few long ones do not.
    """
    space = Space.of(config, available_cores())
    found = tune(config, space, seconds, lambda _: None)[0].setting
    grid = space.grid()
    turn_s = min(1.0, seconds / SLICES)
    measure = Slices(config, turn_s)
    rounds = max(MIN_SLICES, int(2 * seconds / (turn_s * len(grid))))
    speeds: dict[Setting, list[float]] = {setting: [] for setting in grid}
    try:
        for number in range(rounds):
            for setting in grid if number % 2 == 0 else reversed(grid):
                speeds[setting].append(measure(setting))
        best = max(grid, key=lambda setting: float(np.median(speeds[setting])))
        pairs = max(PAIRS, int(seconds / turn_s))
        ratio, interval = ratio_interval(*interleave(lambda: measure(found), lambda: measure(best), pairs))
        untuned = space.of_preset(config)
        gain, gain_interval = ratio_interval(*interleave(lambda: measure(found), lambda: measure(untuned), pairs))
    finally:
        measure.close()
    return {
        "game": config.name,
        "tuned": found.within(config),
        "best_of_grid": best.within(config),
        "settings_in_grid": len(grid),
        "pairs": pairs,
        "ratio": ratio,
        "ratio_ci95": list(interval),
        "ratio_to_preset": gain,
        "ratio_to_preset_ci95": list(gain_interval),
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
