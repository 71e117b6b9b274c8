"""Chains of decisions cut into segments that a recurrent network is unrolled over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.learn.returns import ENDED

__all__ = ["NO_ROW", "Segments", "cut_segments"]

NO_ROW = -1


@kernel
def _count_places(following, place):
    """How many decisions of its chain came before each row; returns how many rows are closed. Writes place."""
    known = 0
    place[:] = 0
    for i in range(len(following)):
        if following[i] >= 0:
            place[following[i]] = place[i] + 1
        known += following[i] >= 0 or following[i] == ENDED
    return known


@kernel
def _cut(following, place, length, rows, size, before, before_size):
    """Fill in the segments; returns how many. Writes rows, size, before, before_size."""
    burn_in = before.shape[1]
    previous = np.full(len(following), -1, np.int64)
    for i in range(len(following)):
        if following[i] >= 0:
            previous[following[i]] = i
    n = 0
    for i in range(len(following)):
        if place[i] % length == 0 and (following[i] >= 0 or following[i] == ENDED):
            j, k = i, 0
            while k < length and j >= 0 and (following[j] >= 0 or following[j] == ENDED):
                rows[n, k] = j
                j, k = following[j], k + 1
            size[n] = k
            before_size[n] = min(burn_in, place[i])
            j = i
            for b in range(before_size[n] - 1, -1, -1):
                j = previous[j]
                before[n, b] = j
            n += 1
    return n


@dataclass(frozen=True, slots=True)
class Segments:
    """A segment a row, in the order of their first decisions."""

    rows: NDArray[np.int64]  # (n, length) of a rollout, NO_ROW behind the last
    size: NDArray[np.int64]  # (n,)
    before: NDArray[np.int64]  # (n, burn_in) the decisions before the first, NO_ROW behind the last
    before_size: NDArray[np.int64]  # (n,)


def cut_segments(following: NDArray[np.int32], length: int, burn_in: int) -> Segments:
    """Cut every chain into segments of `length`; rows whose outcome is not known belong to none."""
    place = np.empty(len(following), np.int64)
    known = _count_places(following, place)
    rows, size = np.full((known, length), NO_ROW, np.int64), np.zeros(known, np.int64)
    before, before_size = np.full((known, burn_in), NO_ROW, np.int64), np.zeros(known, np.int64)
    n = _cut(following, place, length, rows, size, before, before_size)
    return Segments(rows[:n], size[:n], before[:n], before_size[:n])
