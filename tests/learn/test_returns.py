"""Returns against answers computed by hand and by a slow recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.learn.returns import DROPPED, ENDED, OPEN, gae, lambda_targets


def test_gae_by_hand() -> None:
    # Two seats, interleaved: rows 0 → 2 → 4 (ends), 1 → 3 (3 is open: its value closes row 1).
    reward = np.array([[1.0], [0.0], [0.0], [0.0], [10.0]], np.float32)
    value = np.array([[2.0], [5.0], [3.0], [7.0], [4.0]], np.float32)
    following = np.array([2, 3, 4, OPEN, ENDED], np.int32)
    advantage = np.empty(5, np.float32)
    gae(reward, value, following, np.zeros((5, 1), np.float32), 0.9, 0.5, advantage)
    last = 10 - 4
    middle = 0 + 0.9 * 4 - 3 + 0.45 * last
    first = 1 + 0.9 * 3 - 2 + 0.45 * middle
    assert advantage == pytest.approx([first, 0.9 * 7 - 5, middle, 0.0, last])


def test_a_truncated_game_bootstraps_and_a_terminated_one_does_not() -> None:
    reward, value = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)
    bootstrap = np.array([[5.0], [0.0]], np.float32)
    advantage = np.empty(2, np.float32)
    gae(reward, value, np.array([ENDED, ENDED], np.int32), bootstrap, 0.5, 1.0, advantage)
    assert advantage == pytest.approx([1 + 0.5 * 5, 1.0])


def test_lambda_targets_are_cut_where_the_seat_explored() -> None:
    reward = np.array([[0.0], [0.0], [8.0]], np.float32)
    value = np.array([[1.0], [2.0], [4.0]], np.float32)
    following = np.array([1, 2, ENDED], np.int32)
    target = np.empty((3, 1), np.float32)
    nothing = np.zeros((3, 1), np.float32)
    lambda_targets(reward, value, np.zeros(3, np.bool_), following, nothing, 1.0, 0.5, target)
    assert target[:, 0] == pytest.approx([2 + 0.5 * (6 - 2), 4 + 0.5 * (8 - 4), 8])
    lambda_targets(reward, value, np.array([False, True, False]), following, nothing, 1.0, 0.5, target)
    assert target[:, 0] == pytest.approx([2.0, 6.0, 8.0])


def _slow(i: int, reward: list[float], value: list[float], following: list[int], gamma: float, lam: float) -> float:
    j = following[i]
    if j == ENDED:
        return reward[i]
    beyond = value[j]
    if following[j] not in (OPEN, DROPPED):
        beyond = (1 - lam) * value[j] + lam * _slow(j, reward, value, following, gamma, lam)
    return reward[i] + gamma * beyond


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lambda_targets_equal_the_recursion(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    following = [data.draw(st.sampled_from([*range(i + 1, n), ENDED, OPEN, DROPPED])) for i in range(n)]
    numbers = st.floats(-5, 5, width=32)
    reward, value = (data.draw(st.lists(numbers, min_size=n, max_size=n)) for _ in range(2))
    gamma, lam = data.draw(st.floats(0.1, 1)), data.draw(st.floats(0, 1))
    target = np.empty((n, 1), np.float32)
    columns = (np.array(x, np.float32)[:, None] for x in (reward, value))
    links = np.array(following, np.int32)
    lambda_targets(*columns, np.zeros(n, np.bool_), links, np.zeros((n, 1), np.float32), gamma, lam, target)
    for i in range(n):
        if following[i] not in (OPEN, DROPPED):
            assert target[i, 0] == pytest.approx(_slow(i, reward, value, following, gamma, lam), abs=1e-3)
