"""The sum tree against np.cumsum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.learn.sumtree import SumTree, draw_uniform, find_leaves


def _filled(capacity: int, seed: int, zeros: float = 0.3) -> SumTree:
    rng, tree = np.random.default_rng(seed), SumTree(capacity)
    priority = rng.random(capacity) ** 3 * (rng.random(capacity) > zeros)
    tree.write(np.arange(capacity), priority)
    return tree


def _found(tree: SumTree, point: np.ndarray) -> np.ndarray:
    leaf = np.empty(len(point), np.int64)
    find_leaves(tree.sums, tree.begin, point.copy(), leaf)
    return leaf


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 10_000))
def test_leaves_are_those_of_the_running_sum(capacity: int, seed: int) -> None:
    tree = _filled(capacity, seed)
    priority = tree.priority
    if not priority.any():
        return
    assert tree.total == pytest.approx(priority.sum(), rel=1e-12)
    assert tree.least == priority[priority > 0].min()
    running = np.cumsum(priority)
    point = np.random.default_rng(seed).random(300) * running[-1]
    leaf, expected = _found(tree, point), np.searchsorted(running, point, side="right")
    edge = np.abs(running[np.minimum(leaf, expected)] - point) < 1e-9 * running[-1]
    assert ((leaf == expected) | edge).all()
    assert (priority[leaf] > 0).all()


def test_a_point_beyond_the_sum_finds_the_last_row_that_counts() -> None:
    tree = SumTree(100)
    tree.write(np.array([3, 40]), np.array([0.1, 0.2]))
    assert list(_found(tree, np.array([0.0, 0.0999, 0.1001, 0.3, 1.0]))) == [3, 3, 40, 40, 40]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3000), st.integers(0, 10_000))
def test_sums_after_many_changes_equal_those_written_at_once(capacity: int, seed: int) -> None:
    rng, tree = np.random.default_rng(seed), SumTree(capacity)
    expected = np.zeros(capacity)
    for _ in range(40):
        row, priority = rng.integers(0, capacity, 64), rng.random(64) * (rng.random(64) > 0.2)
        tree.write(row, priority)
        for r, p in zip(row, priority, strict=True):
            expected[r] = p
    fresh = SumTree(capacity)
    fresh.write(np.arange(capacity), expected)
    assert np.array_equal(tree.sums, fresh.sums)
    assert np.array_equal(tree.mins, fresh.mins)


def test_draws_follow_the_priorities_and_weights_undo_them() -> None:
    tree = SumTree(20)
    priority = np.arange(20.0)
    tree.write(np.arange(20), priority)
    counts, batch = np.zeros(20), 32
    row, weight = np.empty(batch, np.int64), np.empty(batch, np.float32)
    for number in range(3000):
        tree.draw(7, number, 1.0, row, weight)
        np.add.at(counts, row, 1)
        assert weight == pytest.approx(1.0 / priority[row])  # the least priority that counts is 1
    assert counts / counts.sum() == pytest.approx(priority / priority.sum(), abs=2e-3)
    before = row.copy()
    tree.draw(7, 2999, 0.5, row, weight)
    assert np.array_equal(row, before)
    assert weight == pytest.approx(priority[row] ** -0.5)


def test_uniform_draws_are_uniform_over_what_is_ready() -> None:
    ready = np.zeros(50, np.bool_)
    ready[[3, 7, 20, 31]] = True
    counts, row = np.zeros(50), np.empty(64, np.int64)
    for number in range(1000):
        draw_uniform(ready, 32, np.uint64(1), number, row)
        np.add.at(counts, row, 1)
    assert counts[[3, 7, 20, 31]] / counts.sum() == pytest.approx(0.25, abs=0.01)
    assert counts.sum() == counts[ready].sum()
