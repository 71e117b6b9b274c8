"""Whether a speed-up is adopted: from pairs of slices and from games of several training seeds, by a sequential test.

Looks are few and counted beforehand, and each look has its share of the 5 %: so a clear case ends early, and looking
often makes no error more likely. The interval of the strength is one over training seeds, whose games are but a part of
what varies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maple.bench.measure import ratio_interval
from maple.core.spec import Metric

__all__ = ["Evidence", "Limits", "Paired", "Verdict", "decide", "paired_difference", "seed_interval", "t_quantile"]

Interval = tuple[float, float]
MIN_PAIRS = 4  # of slices, before the speed can decide
MIN_SEEDS = 3  # before the strength can decide
OF_BASE = 0.02  # the same as two percentage points are of a game that is always won


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Of Student's t, by its distribution under t = √freedom · tan(angle)."""
    angle = np.linspace(-math.pi / 2, math.pi / 2, 200_001)
    density = np.cos(angle) ** (freedom - 1)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(math.sqrt(freedom) * math.tan(float(np.interp(probability, below / below[-1], angle))))


def seed_interval(values: Sequence[float], level: float = 0.95, least_error: float = 0.0) -> tuple[float, Interval]:
    """Mean over training seeds and its interval by Student's t.

    `least_error` is the standard error by the games alone: the interval is never narrower, and of one seed it is all
    there is to know.
    """
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        half = t_quantile((1 + level) / 2, 10**6) * least_error if least_error else math.inf
        return mean, (mean - half, mean + half)
    error = max(float(np.std(values, ddof=1)) / math.sqrt(n), least_error)
    half = t_quantile((1 + level) / 2, n - 1) * error
    return mean, (mean - half, mean + half)


@dataclass(frozen=True, slots=True)
class Paired:
    """What one seed's games say: the difference of two means over the same deals, and its standard error."""

    difference: float
    error: float
    games: int


def paired_difference(
    score_a: NDArray[np.float64],
    weight_a: NDArray[np.float64],
    score_b: NDArray[np.float64],
    weight_b: NDArray[np.float64],
    games: int,
) -> Paired:
    """sum(score_b) / sum(weight_b) less the same of a; entry i of all four is of the same deal (delta method)."""
    a, b = score_a.sum() / weight_a.sum(), score_b.sum() / weight_b.sum()
    off = (score_b - b * weight_b) / weight_b.mean() - (score_a - a * weight_a) / weight_a.mean()
    error = float(np.std(off, ddof=1) / math.sqrt(len(off))) if len(off) > 1 else math.inf
    return Paired(float(b - a), error, games)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate has to reach."""

    speed_up: float = 1.10
    margin: float = 0.5  # of the game's own metric
    seeds: int = 6  # at most; also how many looks there are
    of_base: float = 0.0  # where it is not 0, the margin is this share of what the base makes

    @classmethod
    def of(cls, metric: Metric, margin: float | None = None, speed_up: float = 1.10, seeds: int = 6) -> Limits:
        """The margin as given, or the game's own; an env of the user's has none, and gets a share of its result."""
        if margin is None and metric.margin == 0.0:
            return cls(speed_up, 0.0, seeds, OF_BASE)
        return cls(speed_up, metric.margin if margin is None else margin, seeds)

    def beside(self, result: float) -> Limits:
        """The same for a base that makes `result`."""
        return replace(self, margin=self.of_base * abs(result)) if self.of_base else self

    @property
    def level(self) -> float:
        """Of the interval at each look."""
        return 1 - 0.05 / self.seeds


@dataclass(slots=True)
class Evidence:
    """All that was seen so far."""

    base_speeds: list[float] = field(default_factory=list)  # one a pair of slices
    candidate_speeds: list[float] = field(default_factory=list)
    duels: list[Paired] = field(default_factory=list)  # one a seed: candidate against base, both ways
    against: dict[str, list[Paired]] = field(default_factory=dict)  # the same against fixed opponents

    @property
    def games(self) -> int:
        """Played so far."""
        return sum(p.games for row in (self.duels, *self.against.values()) for p in row)

    def speed(self, level: float = 0.95) -> tuple[float, Interval]:
        """Throughput ratio, candidate over base."""
        if not self.base_speeds:
            return 1.0, (0.0, math.inf)
        return ratio_interval(self.candidate_speeds, self.base_speeds, level=level)

    def strength(self, level: float = 0.95) -> tuple[float, Interval]:
        """Strength difference, candidate less base."""
        return _over_seeds(self.duels, level)

    def opponents(self, level: float = 0.95) -> dict[str, tuple[float, Interval]]:
        """The same against each fixed opponent."""
        return {name: _over_seeds(row, level) for name, row in self.against.items()}


def _over_seeds(row: Sequence[Paired], level: float) -> tuple[float, Interval]:
    if not row:
        return 0.0, (-math.inf, math.inf)
    by_games = math.sqrt(sum(p.error**2 for p in row)) / len(row)
    return seed_interval([p.difference for p in row], level, by_games)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and which figure gave it."""

    verdict: Literal["adopt", "reject", "undecided"]
    reason: str
    more_games: int = 0

    @property
    def exit_code(self) -> int:
        """0, 1 or 3."""
        return {"adopt": 0, "reject": 1, "undecided": 3}[self.verdict]

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return {"verdict": self.verdict, "reason": self.reason, "needs_more_games": self.more_games}


def decide(seen: Evidence, limits: Limits) -> Verdict:
    """Adopt if both bounds hold for sure, reject if one is missed for sure, else undecided."""
    ratio, speed = seen.speed(limits.level)
    diff, strength = seen.strength(limits.level)
    if len(seen.base_speeds) >= MIN_PAIRS and speed[1] < limits.speed_up:
        bound = f"{ratio:.3f} times the base's throughput (at most {speed[1]:.3f}), {limits.speed_up:.2f} are asked for"
        return Verdict("reject", f"throughput failed: {bound}")
    enough = len(seen.duels) >= MIN_SEEDS
    if enough and strength[1] < -limits.margin:
        bound = f"{diff:+.3f} against the base (at most {strength[1]:+.3f}), {-limits.margin:+g} is allowed"
        return Verdict("reject", f"strength failed: {bound}")
    level = 1 - (1 - limits.level) / max(1, len(seen.against))
    for name, (mean, interval) in seen.opponents(level).items():
        if enough and interval[1] < -limits.margin:
            bound = f"{mean:+.3f} less the base's (at most {interval[1]:+.3f}), {-limits.margin:+g} is allowed"
            return Verdict("reject", f"strength against {name} failed: {bound}")
    fast, strong = len(seen.base_speeds) >= MIN_PAIRS and speed[0] >= limits.speed_up, strength[0] > -limits.margin
    if fast and enough and strong:
        reason = f"throughput at least {speed[0]:.3f} times the base's, strength at least {strength[0]:+.3f}"
        return Verdict("adopt", reason)
    return _undecided(seen, limits, fast, strong and enough)


def _undecided(seen: Evidence, limits: Limits, fast: bool, strong: bool) -> Verdict:
    """How many more games would settle it, if what was seen so far is how things are."""
    open_figures = [name for name, sure in (("throughput", fast), ("strength", strong)) if not sure]
    diff, (low, _) = seen.strength(limits.level)
    per_seed = seen.games / max(1, len(seen.duels))
    more = per_seed
    if not strong and math.isfinite(low):
        # The half-width shrinks with the root of the number of seeds.
        half = diff - low
        gap = max(abs(diff + limits.margin), 1e-3 * max(limits.margin, half))
        more = max(per_seed, seen.games * ((half / gap) ** 2 - 1)) if gap > 0 else per_seed
    return Verdict("undecided", f"{' and '.join(open_figures)} not clear yet", math.ceil(more))
