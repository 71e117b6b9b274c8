"""Rows of many tables with one seat each, that are written at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Range", "together"]


@dataclass(frozen=True, slots=True)
class Range:
    """A range of tables with one seat each: what is called of their envs, and their rows."""

    steps: list[Callable[[Any], Any]]
    masks: list[Callable[[], Any]]
    action: NDArray[np.int32]
    reward: NDArray[np.float32]
    score: NDArray[np.float64]
    length: NDArray[np.int64]
    rows: NDArray[Any]
    mask_rows: NDArray[np.bool_] | None


def together(rows: Sequence[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Arrays as the rows of one, which has the type and width of `like`; raises where one of them has not."""
    dtype = like.dtype
    for row in rows:
        if row.dtype is not dtype:
            return np.array(rows, dtype)  # a number of another type is one all the same
    return np.frombuffer(b"".join(rows), dtype).reshape(len(rows), like.shape[1])
