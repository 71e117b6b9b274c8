"""A tree of sums: drawing rows in proportion to their priorities, and changing these, in O(log N) for each row.

A node has eight children, which fill one cache line, so a million rows are seven levels deep. A level is settled for a
whole batch before the next, which lets the processor wait for many memory reads at once. Nodes are always added up anew
from their children, never changed by a difference: sums do not drift, and depend on the leaves alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.core.rng import Purpose, key, uniform

__all__ = ["SumTree", "draw_uniform", "find_leaves", "write_leaves"]

FAN, _SHIFT = 8, 3
_REPLAY = int(Purpose.REPLAY)
_NEVER = np.inf


@kernel
def write_leaves(sums, mins, begin, leaf, priority):
    """Give leaves their priorities, 0 for never; of one that is named twice the last counts. Writes sums, mins."""
    for i in range(len(leaf)):
        sums[leaf[i]] = priority[i]
        mins[leaf[i]] = priority[i] if priority[i] > 0.0 else _NEVER
    for level in range(1, len(begin) - 1):
        below, here, settled = begin[level - 1], begin[level], -1
        for i in range(len(leaf)):
            node = leaf[i] >> (_SHIFT * level)
            if node == settled:  # neighbours share most of their ancestors
                continue
            settled = node
            at = below + FAN * node
            total, least = 0.0, _NEVER
            for k in range(FAN):
                total += sums[at + k]
                least = min(least, mins[at + k])
            sums[here + node], mins[here + node] = total, least


@kernel
def find_leaves(sums, begin, point, leaf):
    """The leaf in whose stretch of the running sum each point lies; never one of priority 0. Writes point, leaf."""
    for i in range(len(leaf)):
        leaf[i] = 0
    for level in range(len(begin) - 3, -1, -1):
        for i in range(len(leaf)):
            at = begin[level] + FAN * leaf[i]
            child, before, total = 0, 0.0, 0.0
            for k in range(FAN - 1):
                total += sums[at + k]
                beyond = point[i] >= total
                child += beyond
                before = total if beyond else before
            while sums[at + child] <= 0.0 and child > 0:  # rounding led past the last one
                child -= 1
            point[i] -= before
            leaf[i] = FAN * leaf[i] + child


@kernel
def draw_strata(sums, mins, begin, seed, number, beta, leaf, weight):
    """Draw a leaf from each of len(leaf) equal shares of the sum, and weigh it by (p / least p) ** -beta.

    That is its importance weight over the largest there is. `number` names the batch. Writes leaf, weight.
    """
    n, root = len(leaf), begin[len(begin) - 2]
    share, least = sums[root] / n, mins[root]
    point = np.empty(n, np.float64)
    for i in range(n):
        point[i] = (i + uniform(key(seed, _REPLAY, number, 0, 0, 0, i))) * share
    find_leaves(sums, begin, point, leaf)
    for i in range(n):
        weight[i] = (sums[leaf[i]] / least) ** -beta


@kernel
def draw_uniform(ready, size, seed, number, leaf):
    """Draw rows below `size` that are ready, all alike. Writes leaf."""
    for i in range(len(leaf)):
        tries = 0
        row = int(uniform(key(seed, _REPLAY, number, 0, 0, tries, i)) * size)
        while not ready[row]:
            tries += 1
            row = int(uniform(key(seed, _REPLAY, number, 0, 0, tries, i)) * size)
        leaf[i] = row


class SumTree:
    """Priorities of `capacity` rows, all 0 at first."""

    def __init__(self, capacity: int) -> None:
        sizes = [_padded(capacity)]
        while sizes[-1] > FAN:
            sizes.append(_padded(sizes[-1] // FAN))
        sizes.append(FAN)  # the root, alone in its line
        self.capacity = capacity
        self.begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)  # where each level begins, leaves first
        self.sums = np.zeros(self.begin[-1], np.float64)
        self.mins = np.full(self.begin[-1], _NEVER)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self.sums[self.begin[-2]])

    @property
    def least(self) -> float:
        """The smallest priority that is not 0; infinite where there is none."""
        return float(self.mins[self.begin[-2]])

    @property
    def priority(self) -> NDArray[np.float64]:
        """(capacity,) of every row."""
        return self.sums[: self.capacity]

    def write(self, row: NDArray[np.int64], priority: NDArray[np.float64]) -> None:
        """Give rows their priorities."""
        write_leaves(self.sums, self.mins, self.begin, row, priority)

    def draw(self, seed: int, number: int, beta: float, row: NDArray[np.int64], weight: NDArray[np.float32]) -> None:
        """Draw a batch by priority with importance weights; `number` names it. Writes row, weight."""
        draw_strata(self.sums, self.mins, self.begin, np.uint64(seed), number, beta, row, weight)


def _padded(size: int) -> int:
    return -(-size // FAN) * FAN
