"""Segments of replay against chains that are kept as lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.core.step import Outcome
from maple.learn.chains import Chains
from maple.learn.replay import Priorities, Replay
from tests.learn.test_replay import GAMMA, SlowReplay, _play


@dataclass
class SlowChains(SlowReplay):
    """Every seat's games as lists of tags, beside the outcomes of single decisions."""

    open: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    chains: list[tuple[list[int], list[int]]] = field(default_factory=list)  # decisions, and the last sight if any

    def add(self, table: int, seat: int, reward: float, tag: int) -> None:
        super().add(table, seat, reward, tag)
        self.open.setdefault((table, seat), []).append(tag)

    def end(self, table: int, outcome: Outcome, reward: list[float], last_view: list[int]) -> None:
        super().end(table, outcome, reward, last_view)
        for seat in range(len(reward)):
            sight = [last_view[seat]] if outcome == Outcome.TRUNCATED and last_view[seat] else []
            self.chains.append((self.open.pop((table, seat), []), sight))

    def segments(self, length: int, reach: int, burn_in: int) -> dict[int, tuple[list[int], int, list[int]]]:
        """By the first tag: all tags walked through, how many are learned from, those before."""
        found = {}
        for chain, sight in [*self.chains, *((chain, []) for chain in self.open.values())]:
            for begin in range(0, len(chain), length):
                mine = chain[begin : begin + length]
                if all(tag in self.done for tag in mine):
                    walk = [*chain, *sight][begin : begin + length + reach]
                    found[mine[0]] = (walk, len(mine), chain[max(0, begin - burn_in) : begin])
        return found


def _segments(replay: Replay) -> dict[int, tuple[list[int], int, list[int], int]]:
    """The same of a replay, with the tag that the first state carries."""
    assert replay.chains is not None
    heads, tag = np.flatnonzero(replay.ready), replay.view[:, 0].astype(np.int64)
    walked = replay.chains.walk(heads, replay.beyond, replay.count)
    found = {}
    for i, head in enumerate(heads):
        rows, before = walked.rows[i, : walked.total[i]], walked.before[i, : walked.before_size[i]]
        assert (walked.rows[i, walked.total[i] :] == -1).all()
        found[int(tag[head])] = (
            tag[rows].tolist(),
            int(walked.size[i]),
            tag[before].tolist(),
            int(walked.state[i, 0]),
        )
    return found


def _replay(capacity: int, n: int, length: int, burn_in: int, folder: Path | None = None) -> Replay:
    chains = Chains(capacity, length, burn_in, n, 2, folder)
    return Replay(capacity, 16, 3, 2, 1, n_step=n, gamma=GAMMA, priorities=Priorities(), chains=chains, folder=folder)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 6), st.integers(0, 10_000))
def test_segments_are_those_of_the_slow_one(n: int, length: int, burn_in: int, seed: int) -> None:
    replay, slow = _replay(2000, n, length, burn_in), SlowChains(n)
    _play(replay, slow, 200, seed)
    found, expected = _segments(replay), slow.segments(length, n, burn_in)
    assert found.keys() == expected.keys()
    for tag, (walk, size, before) in expected.items():
        assert found[tag] == (walk, size, before, before[0] if before else tag)
    assert replay.drawable == len(found)
    assert replay.tree is not None
    assert np.array_equal(replay.tree.priority > 0, replay.ready)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 5), st.integers(0, 10_000))
def test_a_ring_that_overwrites_keeps_whole_segments(n: int, length: int, burn_in: int, seed: int) -> None:
    replay, slow = _replay(150, n, length, burn_in), SlowChains(n)
    _play(replay, slow, 400, seed)
    found, expected = _segments(replay), slow.segments(length, n, burn_in)
    for tag, (walk, size, before, state) in found.items():
        assert (walk, size) == expected[tag][:2]
        left = expected[tag][2]
        assert before == left[len(left) - len(before) :]  # the oldest may be gone
        assert state == (before[0] if before else tag)
    assert set(sorted(expected)[-3:]) <= found.keys()
    assert replay.drawable == len(found)


def test_memories_in_a_file_are_the_same(tmp_path: Path) -> None:
    kept, filed = (_replay(150, 2, 3, 2, folder) for folder in (None, tmp_path / "here"))
    for replay in (kept, filed):
        _play(replay, SlowChains(2), 300, 4)
    assert kept.chains is not None
    assert filed.chains is not None
    assert isinstance(filed.chains.state, np.memmap)
    assert kept.chains.state.any()
    assert np.array_equal(kept.chains.state, filed.chains.state)
    assert _segments(kept) == _segments(filed)
    assert list((tmp_path / "here").iterdir()) == []
    assert Chains(10, 1, 0, 1, 0, tmp_path / "here").state.shape == (10, 0)  # one that attends and does not remember


def test_a_restored_replay_draws_the_same_segments() -> None:
    replay, slow, other = _replay(150, 2, 3, 2), SlowChains(2), _replay(150, 2, 3, 2)
    tag = _play(replay, slow, 300, 4)
    replay.carry()
    other.restore({name: array.copy() for name, array in replay.state().items()})
    for memory in (replay, other):
        _play(memory, SlowChains(2), 30, 5, tag)
    assert _segments(replay) == _segments(other)
    one, two = (memory.draw_segments(8, 2, 0.4, 1, 0) for memory in (replay, other))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[2].rows, two[2].rows)
