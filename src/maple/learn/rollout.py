"""Decisions in order of arrival, each linked to the same seat's next one.

When the rollout is full, every row whose outcome is known is learned from. A row that still waits for its seat's next
decision is carried over to the front of the next rollout; meanwhile its value closes the row before it. So nothing is
thrown away, whatever the games' lengths, and nothing is learned twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.core.step import Ended, Outcome
from maple.learn.returns import DROPPED, ENDED, OPEN
from maple.nets.policy import Choice

__all__ = ["Batch", "Rollout"]

_LOST = int(Outcome.LOST)


@kernel
def _link(first, count, table, seat, reward, open_row, row_reward, following):
    """Close each seat's open row and open its new one. Writes open_row, row_reward, following."""
    for k in range(count):
        row = first + k
        before = open_row[table[k], seat[k]]
        if before >= 0:
            following[before] = row
            row_reward[before] = reward[k]
        open_row[table[k], seat[k]] = row
        following[row] = OPEN


@kernel
def _finish(table, outcome, reward, last_value, open_row, row_reward, following, bootstrap):
    """Close the open rows of ended games. Writes open_row, row_reward, following, bootstrap."""
    for g in range(len(table)):
        for seat in range(open_row.shape[1]):
            row = open_row[table[g], seat]
            if row >= 0:
                following[row] = DROPPED if outcome[g] == _LOST else ENDED
                row_reward[row] = reward[g, seat]
                bootstrap[row] = last_value[g, seat]
                open_row[table[g], seat] = -1


@dataclass(frozen=True, slots=True)
class Batch:
    """Views of a full rollout. `closed` are the rows to learn from."""

    view: NDArray[np.uint64]  # (n, V)
    action: NDArray[np.int16]  # (n,)
    log_prob: NDArray[np.float32]  # (n,)
    value: NDArray[np.float32]  # (n, C)
    reward: NDArray[np.float32]  # (n, C)
    explored: NDArray[np.bool_]  # (n,)
    state: NDArray[np.float32]  # (n, S) what the seat remembered before
    following: NDArray[np.int32]  # (n,)
    bootstrap: NDArray[np.float32]  # (n, C)
    closed: NDArray[np.int64]  # (m,)


class Rollout:
    """Storage for `capacity` decisions beside those carried over."""

    def __init__(
        self, capacity: int, tables: int, seats: int, view: int, value: int, signals: int, state: int = 0
    ) -> None:
        room = capacity + 2 * tables * seats
        self.capacity = capacity
        self.size = 0
        self.carried = 0
        self.open_row = np.full((tables, seats), -1, np.int32)
        self.view = np.zeros((room, view), np.uint64)
        self.action = np.zeros(room, np.int16)
        self.log_prob = np.zeros(room, np.float32)
        self.value = np.zeros((room, value), np.float32)
        self.reward = np.zeros((room, signals), np.float32)
        self.explored = np.zeros(room, np.bool_)
        self.state_before = np.zeros((room, state), np.float32)
        self.following = np.full(room, OPEN, np.int32)
        self.bootstrap = np.zeros((room, value), np.float32)

    @property
    def full(self) -> bool:
        """Whether `capacity` decisions came since the last take()."""
        return self.size - self.carried >= self.capacity

    def finish(self, ended: Ended, beyond: Callable[[Ended], NDArray[np.float32]]) -> None:
        """Close the rows of games that ended; `beyond` (K, seats, C) says what lay beyond where some were cut off."""
        last_value = np.zeros((len(ended.table), self.open_row.shape[1], self.bootstrap.shape[1]), np.float32)
        if len(ended.cut):
            last_value[ended.cut] = beyond(ended)
        links = (self.open_row, self.reward, self.following, self.bootstrap)
        _finish(ended.table, ended.outcome, ended.reward, last_value, *links)

    def add(
        self,
        table: NDArray[np.int32],
        seat: NDArray[np.int8],
        reward: NDArray[np.float32],
        view: NDArray[np.uint64],
        choice: Choice,
    ) -> None:
        """Append a decision a row; `reward` is what each seat earned since its decision before."""
        n, first = len(table), self.size
        rows = slice(first, first + n)
        self.view[rows], self.action[rows], self.log_prob[rows] = view, choice.action, choice.log_prob
        self.value[rows], self.explored[rows], self.bootstrap[rows] = choice.value, choice.explored, 0.0
        self.state_before[rows], self.reward[rows] = choice.state, 0.0
        _link(first, n, table, seat, reward, self.open_row, self.reward, self.following)
        self.size += n

    def batch(self) -> Batch:
        """What there is to learn from."""
        rows = slice(0, self.size)
        closed = np.flatnonzero((self.following[rows] >= 0) | (self.following[rows] == ENDED))
        return Batch(
            view=self.view[rows],
            action=self.action[rows],
            log_prob=self.log_prob[rows],
            value=self.value[rows],
            reward=self.reward[rows],
            explored=self.explored[rows],
            state=self.state_before[rows],
            following=self.following[rows],
            bootstrap=self.bootstrap[rows],
            closed=closed,
        )

    def carry(self) -> None:
        """Forget what was learned from; move the rows that are still open to the front."""
        at = self.open_row >= 0
        old = self.open_row[at]
        n = len(old)
        for field in self._columns().values():
            field[:n] = field[old]
        self.following[:n] = OPEN
        self.open_row[at] = np.arange(n, dtype=np.int32)
        self.size = self.carried = n

    def _columns(self) -> dict[str, NDArray[Any]]:
        """What is known of a row besides its links."""
        columns: dict[str, NDArray[Any]] = {
            "view": self.view,
            "action": self.action,
            "log_prob": self.log_prob,
            "value": self.value,
            "reward": self.reward,
            "explored": self.explored,
            "bootstrap": self.bootstrap,
        }
        return {**columns, "state": self.state_before} if self.state_before.shape[1] else columns

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that restore this rollout: for checkpoints, right after carry()."""
        rows = {name: column[: self.size] for name, column in self._columns().items()}
        return {**rows, "open_row": self.open_row}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""
        n = len(state["action"])
        for name, column in self._columns().items():
            column[:n] = state[name]
        self.open_row[:] = state["open_row"]
        self.following[:n] = OPEN
        self.size = self.carried = n
