"""Replay: the decisions of the past, each with what its seat earned over its next n and where that led.

A ring of rows in the order of arrival. A decision is drawn from once its n-step outcome is known: the seat's own n-th
next decision, or the end of its game. Seats of all tables arrive interleaved, so each (table, seat) remembers its
rows that still wait. What a decision led to is another row of the same ring, always a later one, so it is never
overwritten first, and nothing is stored twice; the last sight of a truncated game gets a row that is only looked at.

With chains, whole segments of decisions are drawn instead: then `ready`, priorities and what is drawn are about
the segments' first rows.

A row keeps the view, which for a game in kernels is a few words and for an env its packed observation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.core.step import Ended, Outcome
from maple.core.threads import Team
from maple.learn.chains import Chains, Walked
from maple.learn.filed import zeros
from maple.learn.segments import NO_ROW
from maple.learn.sumtree import SumTree, draw_uniform
from maple.nets.policy import Choice

__all__ = ["Drawn", "Priorities", "Replay"]

_LOST = int(Outcome.LOST)
_COLUMNS = ("view", "action", "reward", "discount", "beyond", "ready", "shown")


@kernel
def _pay(earned, gamma, waiting, newest, reward, discount):
    """Add what a seat earned to those of its waiting decisions that are still there. Writes reward, discount."""
    capacity = len(reward)
    for number in waiting:
        if number >= 0 and newest - number < capacity:
            row = number % capacity
            reward[row] += discount[row] * earned
            discount[row] *= gamma


@kernel
def _append(first, table, seat, earned, gamma, waiting, columns, closed):
    """Store decisions; each closes its seat's decision of n before. Writes waiting, columns, closed; how many closed.

    `waiting` (tables, seats, n) holds the numbers of decisions, the newest last, -1 for none.
    """
    _, action, reward, discount, beyond = columns
    capacity, n, found, newest = len(action), waiting.shape[2], 0, first + len(table)
    for i in range(len(table)):
        mine, number = waiting[table[i], seat[i]], first + i
        row = number % capacity
        _pay(earned[i, 0], gamma, mine, newest, reward, discount)
        oldest = mine[0]
        if oldest >= 0 and newest - oldest < capacity:
            beyond[oldest % capacity] = row
            closed[found] = oldest % capacity
            found += 1
        for k in range(n - 1):
            mine[k] = mine[k + 1]
        mine[n - 1] = number
        reward[row], discount[row], beyond[row] = 0.0, 1.0, row
    return found


@kernel
def _finish(first, table, outcome, earned, cut, last_view, gamma, waiting, columns, closed):
    """Close the decisions of ended games. Writes waiting, columns, closed; how many were closed, and last sights.

    The last sight of a seat whose game was truncated takes a row of its own, if it has decisions that lead there.
    """
    view, action, reward, discount, beyond = columns
    capacity, found, sights, at = len(action), 0, 0, 0
    newest = first + len(cut) * waiting.shape[1]
    for g in range(len(table)):
        is_cut = at < len(cut) and cut[at] == g
        for seat in range(waiting.shape[1]):
            mine = waiting[table[g], seat]
            if mine[-1] >= 0 and outcome[g] != _LOST:
                seen = is_cut and last_view[at, seat].any()
                sight = (first + sights) % capacity
                if seen:
                    view[sight] = last_view[at, seat]
                    sights += 1
                _pay(earned[g, seat, 0], gamma, mine, newest, reward, discount)
                for number in mine:
                    if number >= 0 and newest - number < capacity:
                        row = number % capacity
                        beyond[row] = sight if seen else row
                        discount[row] = discount[row] if seen else 0.0
                        closed[found] = row
                        found += 1
            mine[:] = -1
        at += is_cut
    return found, sights


@kernel
def _gather(row, columns, view, beyond_view, action, reward, discount, lo, hi):
    """Copy drawn rows [lo, hi) out of the ring. Writes view, beyond_view, action, reward, discount."""
    from_view, from_action, from_reward, from_discount, from_beyond = columns
    for i in range(lo, hi):
        r = row[i]
        view[i], beyond_view[i] = from_view[r], from_view[from_beyond[r]]
        action[i], reward[i], discount[i] = from_action[r], from_reward[r], from_discount[r]


@kernel
def _to_priority(error, alpha, least, priority):
    """(|error| + least) ** alpha; returns the largest. Writes priority."""
    largest = 0.0
    for i in range(len(error)):
        priority[i] = (abs(error[i]) + least) ** alpha
        largest = max(largest, priority[i])
    return largest


@dataclass(frozen=True, slots=True)
class Drawn:
    """Batches that were drawn, one after the other."""

    row: NDArray[np.int64]  # (n,) of the ring
    weight: NDArray[np.float32]  # (n,) importance weights, 1 at most
    view: NDArray[np.uint64]  # (n, V)
    beyond_view: NDArray[np.uint64]  # (n, V) what the decision led to; the same view where the game ended
    action: NDArray[np.int16]  # (n,)
    reward: NDArray[np.float32]  # (n,) discounted, over up to n decisions
    discount: NDArray[np.float32]  # (n,) of what lies beyond; 0 where the game ended
    shown: NDArray[np.bool_]  # (n,) whether somebody else decided, to be learned from

    def pinned(self, pin: Callable[[NDArray[Any]], NDArray[Any]]) -> Drawn:
        """The same with what networks are told of rows where `pin` puts it; views and rows stay."""
        told = ("weight", "action", "reward", "discount")
        return replace(self, **{name: pin(getattr(self, name)) for name in told})


@dataclass(frozen=True, slots=True)
class Priorities:
    """How rows are drawn: in proportion to (|error| + least) ** alpha."""

    alpha: float = 0.6
    least: float = 1e-2


class Replay:
    """Room for `capacity` decisions; `horizon` new ones make it full, which is when learning is due.

    Without `priorities`, all rows are drawn alike. With `folder`, views are kept in a file there that disappears with
    the process, for buffers larger than memory. With `saved`, checkpoints hold everything.
    """

    def __init__(
        self,
        capacity: int,
        horizon: int,
        tables: int,
        seats: int,
        view: int,
        *,
        n_step: int,
        gamma: float,
        priorities: Priorities | None = None,
        folder: Path | None = None,
        saved: bool = True,
        chains: Chains | None = None,
    ) -> None:
        self.capacity, self.horizon, self.gamma = capacity, horizon, gamma
        self.count = self.fresh = self.drawable = 0  # rows ever stored; decisions since carry(); rows to draw from
        self.view = zeros((capacity, view), np.uint64, folder)
        self.action = np.zeros(capacity, np.int16)
        self.reward = np.zeros(capacity, np.float32)
        self.discount = np.zeros(capacity, np.float32)
        self.beyond = np.zeros(capacity, np.int64)
        self.ready = np.zeros(capacity, np.bool_)
        self.shown = np.zeros(capacity, np.bool_)
        self.waiting = np.full((tables, seats, n_step), -1, np.int64)
        self.tree = SumTree(capacity) if priorities else None
        self.chains = chains
        self.highest = 1.0  # priority so far: what a new row gets, so that it is soon learned from
        self._priorities = priorities or Priorities()
        self._saved = saved

    @property
    def full(self) -> bool:
        """Whether `horizon` decisions came since the last carry()."""
        return self.fresh >= self.horizon

    @property
    def size(self) -> int:
        """Rows in use."""
        return min(self.count, self.capacity)

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.view, self.action, self.reward, self.discount, self.beyond

    def add(
        self,
        table: NDArray[np.int32],
        seat: NDArray[np.int8],
        reward: NDArray[np.float32],
        view: NDArray[np.uint64],
        choice: Choice,
    ) -> None:
        """Append a decision a row; `reward` is what each seat earned since its decision before."""
        row = (self.count + np.arange(len(table))) % self.capacity
        self._withdraw(row)
        self.view[row], self.action[row], self.shown[row] = view, choice.action, choice.shown
        if self.chains is not None:
            self.chains.link(self.count, self.waiting[table, seat, -1], choice.state)
        closed = np.empty(len(table), np.int64)
        gamma = np.float32(self.gamma)
        found = _append(self.count, table, seat, reward, gamma, self.waiting, self._columns(), closed)
        self.count += len(table)
        self.fresh += len(table)
        self._offer(closed[:found])

    def finish(self, ended: Ended, beyond: Callable[[Ended], NDArray[np.float32]]) -> None:
        """Close the decisions of games that ended; what lies beyond a cut is judged when it is learned from."""
        if not len(ended.table):
            return
        sights = (self.count + np.arange(len(ended.cut) * self.waiting.shape[1])) % self.capacity
        self._withdraw(sights)
        closed = np.empty(len(ended.table) * self.waiting[0].size, np.int64)
        games = (ended.table, ended.outcome, ended.reward, ended.cut, ended.last_view)
        found, looked = _finish(self.count, *games, np.float32(self.gamma), self.waiting, self._columns(), closed)
        self.count += looked
        self._offer(closed[:found])

    def _withdraw(self, row: NDArray[np.int64]) -> None:
        """No longer draw from rows that are about to be overwritten."""
        gone = row[self.ready[row]]
        if len(gone):
            self.ready[gone] = False
            self.drawable -= len(gone)
            if self.tree is not None:
                self.tree.write(gone, np.zeros(len(gone)))

    def _offer(self, row: NDArray[np.int64]) -> None:
        """Draw from closed rows from now on, or from the segments that they complete."""
        row = row if self.chains is None else self.chains.whole(row, self.count)
        self.ready[row] = True
        self.drawable += len(row)
        if self.tree is not None and len(row):
            self.tree.write(row, np.full(len(row), self.highest))

    def draw(self, batch: int, batches: int, beta: float, seed: int, number: int, team: Team | None = None) -> Drawn:
        """Draw `batches` batches, the first of which is called `number`, and copy them out."""
        n, view = batch * batches, self.view.shape[1]
        row, weight = self._pick(batch, batches, beta, seed, number, team)
        drawn = Drawn(
            row=row,
            weight=weight,
            view=np.empty((n, view), np.uint64),
            beyond_view=np.empty((n, view), np.uint64),
            action=np.empty(n, np.int16),
            reward=np.empty(n, np.float32),
            discount=np.empty(n, np.float32),
            shown=self.shown[row],
        )
        out = (drawn.view, drawn.beyond_view, drawn.action, drawn.reward, drawn.discount)
        if team is None:
            _gather(row, self._columns(), *out, 0, n)
        else:
            team.run(_gather, n, row, self._columns(), *out, grain=512)
        return drawn

    def _pick(
        self, batch: int, batches: int, beta: float, seed: int, number: int, team: Team | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows, batch after batch, and their importance weights."""
        row, weight = np.empty(batch * batches, np.int64), np.ones(batch * batches, np.float32)

        def pick(k: int) -> None:
            part = slice(k * batch, (k + 1) * batch)
            if self.tree is not None:
                self.tree.draw(seed, number + k, beta, row[part], weight[part])
            else:
                draw_uniform(self.ready, self.size, np.uint64(seed), number + k, row[part])

        if team is None:
            for k in range(batches):
                pick(k)
        else:
            team.each(pick, batches)
        return row, weight

    def draw_segments(
        self, batch: int, batches: int, beta: float, seed: int, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], Walked, NDArray[np.int64]]:
        """Draw batches of segments: their first rows, weights, how they go, and all rows that they go through.

        What is walked is numbered by those rows.
        """
        assert self.chains is not None
        head, weight = self._pick(batch, batches, beta, seed, number, None)
        walked = self.chains.walk(head, self.beyond, self.count)
        rows, at = np.unique(np.concatenate([walked.rows, walked.before], axis=1), return_inverse=True)
        at = at.reshape(len(head), -1)
        if len(rows) and rows[0] == NO_ROW:
            rows, at = rows[1:], at - 1
        columns = walked.rows.shape[1]
        return head, weight, replace(walked, rows=at[:, :columns], before=at[:, columns:]), rows

    def reweigh(self, row: NDArray[np.int64], error: NDArray[np.float32]) -> None:
        """Give drawn rows the priorities that their errors of now deserve."""
        if self.tree is not None:
            priority = np.empty(len(row), np.float64)
            largest = _to_priority(error, self._priorities.alpha, self._priorities.least, priority)
            self.highest = max(self.highest, largest)
            self.tree.write(row, priority)

    def carry(self) -> None:
        """Begin to wait for the next `horizon` decisions; nothing is forgotten."""
        self.fresh = 0

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that restore this replay, if it is to be saved: for checkpoints, right after carry()."""
        if not self._saved:
            return {}
        state = {name: getattr(self, name)[: self.size] for name in _COLUMNS}
        if self.tree is not None:
            state["priority"] = self.tree.priority[: self.size]
        if self.chains is not None:
            state |= {f"chains_{name}": column for name, column in self.chains.columns(self.size).items()}
        numbers = np.array([self.count, self.drawable], np.int64)
        return {**state, "waiting": self.waiting, "numbers": numbers, "highest": np.array([self.highest])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave; nothing, if it was not saved."""
        if not state:
            return
        n = len(state["action"])
        for name in _COLUMNS:
            getattr(self, name)[:n] = state.get(
                name, False
            )  # `shown` is not in files of before there was anything to show
        self.waiting[:] = state["waiting"]
        self.count, self.drawable = (int(number) for number in state["numbers"])
        self.highest = float(state["highest"][0])
        if self.tree is not None:
            self.tree.write(np.arange(n), state["priority"])
        if self.chains is not None:
            self.chains.restore({k.removeprefix("chains_"): v for k, v in state.items() if k.startswith("chains_")})
