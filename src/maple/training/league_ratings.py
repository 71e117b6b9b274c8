"""What a league's records say: ratings, and whether strength goes round in circles.

Ratings are Bradley and Terry's in Elo's unit, worked out anew from all results there are, so they do not depend on the
order of the games. Every player also has one win and one loss against a player of rating 0, which keeps those who
always won finite. Since snapshots were taken one after the other, their ratings are the run's strength over time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cycle", "Ratings", "beats", "cyclic_share", "find_cycles", "rate"]

ELO = 400.0 / np.log(10.0)
SWEEPS = 100
CLOSE = 1e-10


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings in Elo's unit, the mean player at 0, and how sure they are."""

    rating: NDArray[np.float64]  # (n,)
    error: NDArray[np.float64]  # (n,) one standard error


@dataclass(frozen=True, slots=True)
class Cycle:
    """Three players of whom each beats the next and the last beats the first."""

    players: tuple[int, int, int]
    win_rates: tuple[float, float, float]


def rate(games: NDArray[Any], wins: NDArray[Any]) -> Ratings:
    """The most likely ratings, by Newton's method; the log-likelihood is concave, so there is one best."""
    n = len(games)
    strength = np.zeros(n)
    won = wins.sum(axis=1) + 1.0
    for _ in range(SWEEPS):
        expected = 1.0 / (1.0 + np.exp(strength[None, :] - strength[:, None]))
        anchor = 1.0 / (1.0 + np.exp(-strength))
        gradient = won - (games * expected).sum(axis=1) - 2.0 * anchor
        step = np.linalg.solve(_information(games, expected, anchor), gradient)
        strength += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < CLOSE:
            break
    expected = 1.0 / (1.0 + np.exp(strength[None, :] - strength[:, None]))
    covariance = np.linalg.inv(_information(games, expected, 1.0 / (1.0 + np.exp(-strength))))
    return Ratings(ELO * (strength - strength.mean()), ELO * np.sqrt(np.diag(covariance)))


def _information(games: NDArray[Any], expected: NDArray[Any], anchor: NDArray[Any]) -> NDArray[Any]:
    """The negative second derivative of the log-likelihood."""
    off = games * expected * (1.0 - expected)
    return np.asarray(np.diag(off.sum(axis=1) + 2.0 * anchor * (1.0 - anchor)) - off)


def beats(games: NDArray[Any], wins: NDArray[Any]) -> NDArray[np.bool_]:
    """(n, n) whether the row surely wins more than half against the column: Wilson's 95 % interval is above it."""
    z = 1.96
    n = np.maximum(games, 1e-9)
    share = wins / n
    middle = share + z * z / (2 * n)
    spread = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.asarray((games > 0) & ((middle - spread) / (1 + z * z / n) > 0.5))


def find_cycles(games: NDArray[Any], wins: NDArray[Any]) -> list[Cycle]:
    """Every three players that surely go round in a circle, the clearest first."""
    sure = beats(games, wins)
    share = wins / np.maximum(games, 1e-9)
    cycles = []
    for a, b, c in combinations(range(len(games)), 3):
        for x, y, z in ((a, b, c), (a, c, b)):
            if sure[x, y] and sure[y, z] and sure[z, x]:
                rates = float(share[x, y]), float(share[y, z]), float(share[z, x])
                cycles.append(Cycle((x, y, z), rates))
    return sorted(cycles, key=lambda cycle: -min(cycle.win_rates))


def cyclic_share(games: NDArray[Any], wins: NDArray[Any]) -> float:
    """How much of what results differ from even no order of strength explains, from 0 to 1.

    Log-odds between players, weighed by their results, are split into differences of strengths and the rest.
    """
    a, b = np.nonzero(np.triu(games, 1) > 0)
    odds = np.log((wins[a, b] + 0.5) / (wins[b, a] + 0.5))
    weight = np.sqrt(games[a, b])
    total = float(((weight * odds) ** 2).sum())
    if total == 0.0:
        return 0.0
    order = np.zeros((len(a), len(games)))
    order[np.arange(len(a)), a], order[np.arange(len(a)), b] = weight, -weight
    strength = np.linalg.lstsq(order, weight * odds, rcond=None)[0]
    return float(((weight * odds - order @ strength) ** 2).sum()) / total
