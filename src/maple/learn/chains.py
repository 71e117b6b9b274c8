"""Rows of a replay linked into chains, one for each seat and game, and cut into segments that are drawn whole.

A segment is `length` consecutive decisions of a seat, counted from its game's first. Its head stands for it: the head
is its oldest row, so when the ring overwrites it the segment is gone, and as long as it is there all others are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.learn.filed import zeros
from maple.learn.segments import NO_ROW

__all__ = ["Chains", "Walked"]

_COLUMNS = ("following", "previous", "place", "head", "state")


@dataclass(frozen=True, slots=True)
class Walked:
    """Rows of a replay, a segment a row."""

    rows: NDArray[np.int64]  # (n, length + reach) the segment and what follows it, NO_ROW behind the last
    size: NDArray[np.int64]  # (n,) decisions of the segment
    total: NDArray[np.int64]  # (n,) rows of both
    before: NDArray[np.int64]  # (n, burn_in) the decisions before the segment, NO_ROW behind the last
    before_size: NDArray[np.int64]  # (n,)
    state: NDArray[np.float32]  # (n, S) what the seat remembered before the first of all these


class Chains:
    """Links between the rows of a ring of `capacity`; decisions are numbered as they come, a row is the remainder.

    A segment is walked through from `burn_in` decisions before it to `reach` after it. With `folder`, what seats
    remembered is kept in a file there.
    """

    def __init__(
        self, capacity: int, length: int, burn_in: int, reach: int, state: int, folder: Path | None = None
    ) -> None:
        self.capacity, self.length, self.burn_in, self.reach = capacity, length, burn_in, reach
        self.following = np.full(capacity, NO_ROW, np.int64)  # the row of the seat's next decision
        self.previous = np.full(capacity, NO_ROW, np.int64)  # the number of its last one
        self.place = np.zeros(capacity, np.int32)  # decisions of the chain before this one
        self.head = np.zeros(capacity, np.int64)  # the number of the segment's first decision
        self.state = zeros((capacity, state), np.float32, folder)

    def link(self, first: int, before: NDArray[np.int64], state: NDArray[np.float32]) -> None:
        """Decisions first, first + 1, … each follow the number `before`, or begin a chain where that is below 0."""
        number = first + np.arange(len(before))
        row, there = number % self.capacity, (before >= 0) & (first + len(before) - before < self.capacity)
        last = before[there] % self.capacity
        self.following[last] = row[there]
        self.previous[row], self.place[row], self.head[row] = np.where(there, before, NO_ROW), 0, number
        self.place[row[there]] = self.place[last] + 1
        goes_on = self.place[row[there]] % self.length != 0
        self.head[row[there][goes_on]] = self.head[last[goes_on]]
        self.following[row], self.state[row] = NO_ROW, state

    def whole(self, closed: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """The heads' rows of segments whose last decision is among rows `closed`; `count` decisions were stored."""
        last = (self.place[closed] % self.length == self.length - 1) | (self.following[closed] == NO_ROW)
        head = np.unique(self.head[closed[last]])
        return head[head >= count - self.capacity] % self.capacity

    def walk(self, head: NDArray[np.int64], beyond: NDArray[np.int64], count: int) -> Walked:
        """Go through the segments of these heads' rows; `beyond` says where a truncated game's last sight is."""
        n = len(head)
        rows, before = np.full((n, self.length + self.reach), NO_ROW), np.full((n, self.burn_in), NO_ROW)
        size = np.zeros(n, np.int64)
        here, is_sight = head.copy(), np.zeros(n, np.bool_)
        for k in range(rows.shape[1]):
            there = here != NO_ROW
            rows[there, k] = here[there]
            size += there & ~is_sight & (k < self.length)
            following = np.where(there & ~is_sight, self.following[here], NO_ROW)
            is_sight = there & ~is_sight & (following == NO_ROW) & (beyond[here] != here)
            here = np.where(is_sight, beyond[here], following)
        begin, back = head.copy(), self.previous[head]
        steps = np.zeros(n, np.int64)
        for _ in range(self.burn_in):
            there = (back >= 0) & (back >= count - self.capacity)
            before[there] = np.roll(before[there], 1, axis=1)
            begin = np.where(there, back % self.capacity, begin)
            before[there, 0] = begin[there]
            steps += there
            back = np.where(there, self.previous[begin], NO_ROW)
        return Walked(rows, size, (rows != NO_ROW).sum(1), before, steps, self.state[begin])

    def columns(self, rows: int) -> dict[str, NDArray[Any]]:
        """The first `rows` rows, by name: for checkpoints."""
        return {name: getattr(self, name)[:rows] for name in _COLUMNS}

    def restore(self, columns: dict[str, NDArray[Any]]) -> None:
        """Take over what columns() gave."""
        for name in _COLUMNS:
            getattr(self, name)[: len(columns[name])] = columns[name]
