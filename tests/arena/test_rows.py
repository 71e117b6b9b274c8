"""Rows of many envs that are written at once: as one by one, and nothing that does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from maple.arena.rows import Range, finite, together

LIKE = np.zeros((2, 4), np.float32)


def _range(masked: bool) -> Range:
    mask_rows = np.zeros((2, 3), np.bool_) if masked else None
    return Range([], [], np.zeros(2, np.int32), np.zeros(2, np.float32), np.zeros(2), LIKE.copy(), mask_rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_rows_of_any_type_follow_one_another_in_one_array(dtype: type) -> None:
    rows = [np.arange(4, dtype=dtype), np.arange(4, 8, dtype=dtype)]
    found = together(rows, LIKE)
    assert found.dtype == np.float32
    assert found.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("widths", [(3, 5), (5, 3), (5, 5), (2, 2)])
def test_rows_of_another_width_are_never_taken_for_others(widths: tuple[int, int]) -> None:
    """Three and five numbers are as many as four and four."""
    with pytest.raises(ValueError, match=r"shape|inhomogeneous"):
        together([np.zeros(width, np.float32) for width in widths], LIKE)
    with pytest.raises(ValueError, match="shape"):
        together([np.zeros((2, 2), np.float32)] * 2, LIKE)


def test_a_row_that_is_not_finite_or_leaves_nothing_open_is_not_written_as_if_nothing_were() -> None:
    seen = [np.full(4, 0.5, np.float32), np.full(4, 2.0, np.float32)]
    plain, masked = _range(masked=False), _range(masked=True)
    assert plain.write(seen, ())
    assert plain.rows.tolist() == [row.tolist() for row in seen]
    assert not plain.write([seen[0], np.array([0, np.nan, 0, 0], np.float32)], ())
    open_ = np.array([False, True, False])
    assert masked.write(seen, [open_, ~open_])
    assert masked.mask_rows is not None
    assert masked.mask_rows.tolist() == [open_.tolist(), (~open_).tolist()]
    assert masked.write(seen, [np.array([True, False, False]), np.array([False, False, True])])  # zeros across two rows
    assert not masked.write(seen, [open_, np.zeros(3, np.bool_)])


def test_rewards_are_numbers_or_looked_at_one_by_one() -> None:
    found = finite([1, 2.5, np.float32(0.5)])
    assert found is not None
    assert found.tolist() == [1.0, 2.5, 0.5]
    for odd in ([1.0, float("nan")], [1.0, "x"], [1.0, None], [[1.0], [2.0]], [float("inf"), 1.0]):
        assert finite(odd) is None
