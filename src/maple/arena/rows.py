"""Rows of many tables with one seat each, that are written at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Range", "finite", "together"]


@dataclass(frozen=True, slots=True)
class Range:
    """A range of tables with one seat each: what is called of their envs, and their rows."""

    steps: list[Callable[[Any], Any]]
    masks: list[Callable[[], Any]]
    action: NDArray[np.int32]
    reward: NDArray[np.float32]
    score: NDArray[np.float64]
    rows: NDArray[Any]
    mask_rows: NDArray[np.bool_] | None

    def write(self, seen: Sequence[Any], masks: Sequence[Any]) -> bool:
        """Write all rows at once, a third of what it costs one by one; False where something is not as it should be.

        Raises whatever comes of rows that do not fit.
        """
        numbers = together(seen, self.rows)
        if numbers.dtype.kind == "f" and not isfinite(numbers.dot(numbers)):
            return False
        self.rows[:] = numbers.reshape(self.rows.shape)
        if self.mask_rows is None:
            return True
        open_ = together(masks, self.mask_rows)
        self.mask_rows[:] = open_.reshape(self.mask_rows.shape)
        if bytes(self.mask_rows.shape[1]) not in open_.tobytes():
            return True  # no row can be all zeros
        return 0 not in np.logical_or.reduce(self.mask_rows, axis=1).tobytes()


def together(rows: Sequence[Any], like: NDArray[Any]) -> NDArray[Any]:
    """The numbers of arrays, one after the other, in the type of `like`; raises where one of them has not its width."""
    dtype, width = like.dtype, like.shape[1]
    for row in rows:
        if row.dtype is not dtype or len(row) != width:
            found = np.array(rows, dtype)  # a number of another type is one all the same
            if found.shape[1:] != (width,):
                raise ValueError(f"rows of shape {found.shape[1:]} where {(width,)} was declared")
            return found.reshape(-1)
    return np.frombuffer(b"".join(rows), dtype)


def finite(rewards: Sequence[Any]) -> NDArray[np.float64] | None:
    """Rewards as an array; None where one of them is no number, or none that is finite."""
    try:
        earned = np.array(rewards, np.float64)
        return earned if earned.ndim == 1 and isfinite(sum(rewards)) else None
    except (TypeError, ValueError, OverflowError):
        return None
