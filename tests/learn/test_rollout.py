"""The rollout links each seat's decisions, loses none and learns from none twice."""

from __future__ import annotations

import numpy as np

from maple.core.step import Outcome
from maple.learn.returns import DROPPED, ENDED, OPEN
from maple.learn.rollout import Rollout
from tests.learn.streams import add, end


def test_rewards_close_the_decision_before_and_gamesend() -> None:
    rollout = Rollout(4, tables=2, seats=2, view=1, value=1, signals=1)
    add(rollout, [0, 1], [0, 0], [0, 0], [10, 11])
    add(rollout, [0, 1], [1, 1], [0, 0], [12, 13])
    assert rollout.full
    end(rollout, 0, Outcome.TERMINATED, [5.0, -5.0])
    add(rollout, [1], [0], [0.5], [14])
    batch = rollout.batch()
    assert list(batch.following) == [ENDED, 4, ENDED, OPEN, OPEN]
    assert list(batch.reward[:3, 0]) == [5.0, 0.5, -5.0]
    assert list(batch.closed) == [0, 1, 2]


def test_open_rows_are_carried_and_closed_later() -> None:
    rollout = Rollout(2, tables=2, seats=2, view=1, value=1, signals=1)
    add(rollout, [0, 1], [0, 0], [0, 0], [10, 11])
    add(rollout, [0], [0], [1.0], [12])
    assert list(rollout.batch().action[rollout.batch().closed]) == [10]
    rollout.carry()
    assert rollout.size == 2
    assert not rollout.full
    add(rollout, [1, 0], [0, 0], [2.0, 3.0], [13, 14])
    batch = rollout.batch()
    rewards = dict(zip(batch.action[batch.closed], batch.reward[batch.closed, 0], strict=True))
    assert rewards == {11: 2.0, 12: 3.0}


def test_lost_games_are_dropped_and_truncated_ones_bootstrap() -> None:
    rollout = Rollout(2, tables=2, seats=2, view=1, value=1, signals=1)
    add(rollout, [0, 1], [0, 1], [0, 0], [10, 11])
    end(rollout, 0, Outcome.LOST, [9.0, 9.0])
    end(rollout, 1, Outcome.TRUNCATED, [1.0, 2.0], beyond=7.0)
    batch = rollout.batch()
    assert list(batch.following) == [DROPPED, ENDED]
    assert list(batch.closed) == [1]
    assert batch.bootstrap[1, 0] == 7.0


def test_every_decision_is_learned_exactly_once() -> None:
    rng = np.random.default_rng(0)
    rollout = Rollout(16, tables=3, seats=2, view=1, value=1, signals=1)
    learned: list[int] = []
    tag = 0
    for _ in range(300):
        table, seat = int(rng.integers(3)), int(rng.integers(2))
        if rng.random() < 0.2:
            end(rollout, table, Outcome.TERMINATED, [0.0, 0.0])
        add(rollout, [table], [seat], [0.0], [tag])
        tag += 1
        if rollout.full:
            batch = rollout.batch()
            learned += [int(a) for a in batch.action[batch.closed]]
            rollout.carry()
    still_open = {int(a) for a in rollout.action[: rollout.size]}
    assert len(learned) == len(set(learned))
    assert set(learned) | still_open == set(range(tag))


def test_state_restores_what_carry_left() -> None:
    first = Rollout(2, tables=2, seats=2, view=1, value=1, signals=1)
    add(first, [0, 1], [0, 0], [0, 0], [10, 11])
    first.carry()
    second = Rollout(2, tables=2, seats=2, view=1, value=1, signals=1)
    second.restore({name: array.copy() for name, array in first.state().items()})
    for rollout in (first, second):
        add(rollout, [0, 1], [0, 0], [4.0, 5.0], [12, 13])
    a, b = first.batch(), second.batch()
    assert list(a.following) == list(b.following) == [2, 3, OPEN, OPEN]
    assert np.array_equal(a.reward[a.closed], b.reward[b.closed])
    assert np.array_equal(a.view, b.view)
