"""Replay against a slow one that keeps every stream as a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.core.errors import RunError
from maple.core.step import Outcome
from maple.core.threads import Team
from maple.learn.replay import Priorities, Replay
from tests.learn.streams import add, end

GAMMA = 0.9


@dataclass
class SlowReplay:
    """Transitions (tag → return, discount, tag beyond or None), worked out from whole streams."""

    n: int
    streams: dict[tuple[int, int], list[tuple[int, list[float]]]] = field(default_factory=dict)
    done: dict[int, tuple[float, float, int | None]] = field(default_factory=dict)

    def add(self, table: int, seat: int, reward: float, tag: int) -> None:
        stream = self.streams.setdefault((table, seat), [])
        self._earn(stream, reward)
        if len(stream) == self.n:
            first, rewards = stream.pop(0)
            self.done[first] = self._outcome(rewards, GAMMA**self.n, tag)
        stream.append((tag, []))

    def end(self, table: int, outcome: Outcome, reward: list[float], last_view: list[int]) -> None:
        for seat, earned in enumerate(reward):
            stream = self.streams.pop((table, seat), [])
            if outcome == Outcome.LOST:
                continue
            self._earn(stream, earned)
            beyond = last_view[seat] if outcome == Outcome.TRUNCATED and last_view[seat] else None
            for tag, rewards in stream:
                self.done[tag] = self._outcome(rewards, GAMMA ** len(rewards) if beyond else 0.0, beyond)

    @staticmethod
    def _earn(stream: list[tuple[int, list[float]]], reward: float) -> None:
        for _, rewards in stream:
            rewards.append(reward)

    @staticmethod
    def _outcome(rewards: list[float], discount: float, beyond: int | None) -> tuple[float, float, int | None]:
        return sum(GAMMA**k * r for k, r in enumerate(rewards)), discount, beyond


def _replay(capacity: int, n: int, tables: int = 3, prioritized: bool = True) -> Replay:
    priorities = Priorities() if prioritized else None
    return Replay(capacity, 16, tables, 2, 1, n_step=n, gamma=GAMMA, priorities=priorities)


def _contents(replay: Replay) -> dict[int, tuple[float, float, int | None]]:
    found = {}
    for row in np.flatnonzero(replay.ready):
        beyond = int(replay.view[replay.beyond[row], 0])
        gone = replay.discount[row] == 0
        tag = int(replay.view[row, 0])
        assert replay.action[row] == tag
        found[tag] = (float(replay.reward[row]), float(replay.discount[row]), None if gone else beyond)
    return found


def _play(replay: Replay, slow: SlowReplay, moves: int, seed: int, first_tag: int = 1) -> int:
    """Interleaved streams with games that end in all ways; returns the next tag."""
    rng, tag = np.random.default_rng(seed), first_tag
    for _ in range(moves):
        table = int(rng.integers(3))
        kind = rng.random()
        if kind < 0.15:
            outcome = Outcome(int(rng.choice([Outcome.TERMINATED, Outcome.TRUNCATED, Outcome.LOST])))
            reward = rng.integers(-3, 4, 2).astype(float).tolist()
            last_view = [20_000 + tag, 0 if rng.random() < 0.3 else 25_000 + tag]
            end(replay, table, outcome, reward, last_view=last_view)
            slow.end(table, outcome, reward, last_view)
            continue
        tables = sorted({table, int(rng.integers(3))})
        seats = rng.integers(0, 2, len(tables)).tolist()
        rewards = rng.integers(-3, 4, len(tables)).astype(float).tolist()
        tags = list(range(tag, tag + len(tables)))
        tag += len(tables)
        add(replay, tables, seats, rewards, tags)
        for row in zip(tables, seats, rewards, tags, strict=True):
            slow.add(*row)
    return tag


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10_000), st.booleans())
def test_transitions_are_those_of_the_slow_one(n: int, seed: int, prioritized: bool) -> None:
    replay, slow = _replay(2000, n, prioritized=prioritized), SlowReplay(n)
    _play(replay, slow, 200, seed)
    found = _contents(replay)
    assert found.keys() == slow.done.keys()
    for tag, expected in slow.done.items():
        assert found[tag][:2] == pytest.approx(expected[:2], abs=1e-4)
        assert found[tag][2] == expected[2]
    assert replay.drawable == len(found)
    if replay.tree is not None:
        assert np.array_equal(replay.tree.priority > 0, replay.ready)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 10_000), st.integers(40, 80))
def test_a_ring_that_overwrites_keeps_whole_transitions_of_the_newest(n: int, seed: int, capacity: int) -> None:
    replay, slow = _replay(capacity, n), SlowReplay(n)
    _play(replay, slow, 300, seed)
    found = _contents(replay)
    for tag, transition in found.items():
        assert transition[:2] == pytest.approx(slow.done[tag][:2], abs=1e-4)
        assert transition[2] == slow.done[tag][2]
    assert len(found) == replay.drawable > 0
    newest = sorted(slow.done)[-3:]
    assert set(newest) <= found.keys()
    assert replay.tree is not None
    assert np.array_equal(replay.tree.priority > 0, replay.ready)


def test_drawn_rows_hold_what_was_stored(team: Team) -> None:
    replay, slow = _replay(4000, 3), SlowReplay(3)
    _play(replay, slow, 1500, 1)
    alone, shared = (replay.draw(256, 4, 0.4, 5, 0, threads) for threads in (None, team))
    for name in ("row", "weight", "view", "beyond_view", "action", "reward", "discount"):
        assert np.array_equal(getattr(alone, name), getattr(shared, name)), name
    assert replay.ready[alone.row].all()
    for i in range(len(alone.row)):
        reward, discount, beyond = slow.done[int(alone.view[i, 0])]
        assert (alone.reward[i], alone.discount[i]) == pytest.approx((reward, discount), abs=1e-4)
        assert int(alone.beyond_view[i, 0]) == (beyond or int(alone.view[i, 0]))


def test_errors_become_priorities_and_new_rows_get_the_highest() -> None:
    replay, slow = _replay(500, 1), SlowReplay(1)
    tag = _play(replay, slow, 100, 2)
    assert replay.tree is not None
    rows = np.flatnonzero(replay.ready)[:3]
    replay.reweigh(rows, np.array([-8.0, 0.0, 1.0], np.float32))
    assert replay.tree.priority[rows] == pytest.approx([8.01**0.6, 0.01**0.6, 1.01**0.6], rel=1e-5)
    before = replay.ready.copy()
    _play(replay, slow, 30, 3, tag)
    fresh = replay.ready & ~before
    assert replay.tree.priority[fresh] == pytest.approx(8.01**0.6, rel=1e-5)


@pytest.mark.parametrize("prioritized", [True, False])
def test_state_restores_everything(prioritized: bool) -> None:
    first, slow = _replay(200, 3, prioritized=prioritized), SlowReplay(3)
    tag = _play(first, slow, 260, 4)
    first.carry()
    second = _replay(200, 3, prioritized=prioritized)
    second.restore({name: array.copy() for name, array in first.state().items()})
    for replay in (first, second):
        _play(replay, SlowReplay(3), 80, 5, tag)
    a, b = first.draw(64, 2, 0.7, 1, 9), second.draw(64, 2, 0.7, 1, 9)
    for name in ("row", "weight", "view", "beyond_view", "action", "reward", "discount"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert (first.count, first.fresh, first.drawable) == (second.count, second.fresh, second.drawable)


def test_without_saving_a_replay_starts_empty() -> None:
    replay = Replay(50, 4, 1, 1, 1, n_step=1, gamma=1.0, saved=False)
    add(replay, [0], [0], [0.0], [1])
    assert replay.state() == {}
    replay.restore({})
    assert replay.count == 1


def test_views_in_a_file_are_the_same(tmp_path: Path) -> None:
    kept, filed = (Replay(90, 8, 3, 2, 1, n_step=2, gamma=GAMMA, folder=folder) for folder in (None, tmp_path / "here"))
    for replay in (kept, filed):
        _play(replay, SlowReplay(2), 200, 6)
    assert np.array_equal(kept.view, filed.view)
    assert isinstance(filed.view, np.memmap)
    assert list((tmp_path / "here").iterdir()) == []  # nothing is left behind, whatever happens
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot keep the replay"):
        Replay(90, 8, 3, 2, 1, n_step=2, gamma=GAMMA, folder=tmp_path / "file")
