"""Which number of tables, threads and workers is fastest on this machine, within a budget of seconds.

A race: a coarse grid is measured there and back, and then, slice by slice, whatever may still turn out fastest by what
is known of it and its neighbours (`surface.py`), in turns with the leader. A drift of the machine is told apart from
what settings differ by, because they keep taking turns. Whoever is surely behind drops out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import yaml

from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.surface import Surface
from maple.bench.train import PAIRS, MapleSide
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.errors import ConfigError, RunError
from maple.core.presets import user_presets
from maple.games import make_game
from maple.games.bridged import Bridged
from maple.games.external.game import ExternalGame
from maple.runs.store import write_atomically
from maple.training.build import AUTO_TABLES
from maple.training.fitting import least_replay

__all__ = ["Setting", "Slices", "Space", "Tried", "bench_tuner", "race", "tune", "write_preset"]

EAGER = 2.0  # standard deviations above what is expected: who promises that much is measured
SURE = 3.0  # standard deviations: whoever is so far behind the leader drops out
WORTH = 1.0  # standard deviations that the leader has to be ahead of what a run has anyway, to be taken instead
DUEL = 0.25  # share of the budget at the end for these two alone
CLEAR = 0.05  # so much faster than all others, and surely: the race is over before its time is up
FEW_SLICES = 3  # one may have been disturbed: with fewer nobody drops out, or leads whose rivals have them
SLICES = 120  # that a budget should have room for
FEW_MINIBATCHES = 2
STANDSTILL = 1e-9  # the learning rate of slices: who is measured more often must not play, and cost, otherwise for it


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

    @property
    def place(self) -> tuple[float, float, float]:
        """Where it lies among others: settings at a distance of one are about as fast, at three anything may be."""
        workers = 0.0 if self.workers is None else math.log2(1 + self.workers)
        return (math.log2(self.tables) / 2.5, math.log2(self.threads) / 1.2, workers / 1.2)

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
    """A setting and the speeds that it had; `level` is the logarithm of what it would make at one and the same time."""

    setting: Setting
    speeds: list[float] = field(default_factory=list)
    racing: bool = True
    level: float = 0.0

    @property
    def median(self) -> float:
        """Of its speeds."""
        return float(np.median(self.speeds)) if self.speeds else 0.0

    def ratio_to(self, leader: Tried) -> float:
        """Its speed over the leader's, with the machine as fast for both."""
        return float(np.exp(self.level - leader.level))


Measure = Callable[[Setting], float]


class _Race:
    """Who is in it, what is known of them, and whose turn it is."""

    def __init__(self, start: Sequence[Setting], grid: Sequence[Setting], untuned: Setting | None) -> None:
        self.rows = [Tried(setting) for setting in dict.fromkeys([*start, *grid])]
        self._untuned = next((n for n, row in enumerate(self.rows) if row.setting == untuned), None)
        self._surface = Surface(np.array([row.setting.place for row in self.rows]))
        self._mean = self._doubt = np.zeros(len(self.rows))  # of all, and of their differences to the leader
        self._last = self._leader = 0

    @property
    def tried(self) -> list[Tried]:
        return [row for row in self.rows if row.speeds]

    def enter(self, number: int, speed: float) -> None:
        self.rows[number].speeds.append(speed)
        self._surface.add(number, speed)
        self._last = number

    def judge(self) -> list[Setting]:
        """Bring up to date what is known; returns who drops out."""
        known = self._surface.known()
        self._mean = known.mean
        for row, level in zip(self.rows, known.mean, strict=True):
            row.level = float(level)
        racing = [n for n, row in enumerate(self.rows) if row.racing and row.speeds]
        often = [n for n in racing if len(self.rows[n].speeds) >= FEW_SLICES] or racing
        self._leader = max(often, key=lambda n: known.mean[n])
        self._doubt = known.doubt(self._leader)
        behind = known.mean + SURE * self._doubt < known.mean[self._leader]
        out = [self.rows[n] for n in often if behind[n]]
        for row in out:
            row.racing = False
        return [row.setting for row in out]

    @property
    def leader(self) -> Tried:
        """Who is fastest as far as is known, of those that were measured often enough if there are any."""
        return self.rows[self._leader]

    def winner(self) -> Tried:
        """The leader, unless what a run has anyway may well be as fast."""
        own = self._untuned
        if own is None or not self.rows[own].racing or not self.rows[own].speeds:
            return self.leader
        ahead = self._mean[self._leader] - self._mean[own]
        return self.rows[own] if ahead <= WORTH * self._doubt[own] else self.leader

    def next(self, left: float) -> int | None:
        """Who might be fastest, in turns with the leader, and in the end what a run has anyway; nobody once all others
        are surely slower."""
        racing = np.array([row.racing for row in self.rows])
        racing[self._leader] = False
        ahead = self._mean - self._mean[self._leader]
        if (ahead[racing] + SURE * self._doubt[racing] < -CLEAR).all():
            return self._leader if len(self.leader.speeds) < FEW_SLICES else None
        rival = int(np.argmax(np.where(racing, ahead + EAGER * self._doubt, -np.inf)))
        if left < DUEL and self._untuned is not None and racing[self._untuned]:
            rival = self._untuned
        return rival if self._last == self._leader else self._leader


def race(
    measure: Measure,
    start: Sequence[Setting],
    grid: Sequence[Setting],
    left: Callable[[], float],
    tell: Callable[[list[Tried]], None],
    drop: Callable[[Setting], None] = lambda _: None,
    untuned: Setting | None = None,
) -> list[Tried]:
    """Measure `start`, then what promises most of `grid`, until `left()`, a share of the budget that falls from 1 to 0,
    is used up or the winner is clear; the best comes first.

    `drop` is told of what falls behind, which never comes back. `untuned` is what a run has anyway: it is measured from
    the start, and stays unless another is faster as far as can be told, so that tuning never makes a run slower.
    """
    start = list(dict.fromkeys([*start, *([untuned] if untuned else [])]))
    found = _Race(start, grid, untuned)
    there = list(range(len(start)))
    beginning = [*there, *reversed(there)]  # there and back, so that who comes first has no advantage
    turn: int | None = beginning.pop(0)
    while turn is not None and (left() > 0 or not found.tried):
        found.enter(turn, measure(found.rows[turn].setting))
        tell(found.rows)
        if beginning:
            turn = beginning.pop(0)
            continue
        for setting in found.judge():
            drop(setting)
        turn = found.next(left())
    found.judge()
    winner = found.winner()
    rows = sorted(found.tried, key=lambda row: -row.level)
    return [winner, *(row for row in rows if row is not winner)]


class Slices:
    """Measures steps a second of a setting in a slice of whole updates; each setting keeps a run of its own.

    All of them play by the same weights for as long as they are measured: updates are made, and change next to nothing.

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
        optimizer = config.optimizer.model_copy(update={"learning_rate": STANDSTILL})
        return config.model_copy(update={config.algo: changed, "workers": workers, "optimizer": optimizer})

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
            space.grid(),
            lambda: 1 - (clock() - began) / seconds,
            tell,
            measure.drop,
            space.of_preset(config),
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
    rounds = max(FEW_SLICES, int(2 * seconds / (turn_s * len(grid))))
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
        "preset": untuned.within(config),
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
