from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.core.rng import Purpose, absorb, bounded, key, permutation, scramble, uniform, uniforms, words
from tests.core.splitmix import slow_key, slow_scramble

WORD = st.integers(0, 2**64 - 1)
COUNT = st.integers(0, 2**40)


@settings(max_examples=60, deadline=None)
@given(seed=WORD, purpose=st.sampled_from(list(Purpose)), fields=st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT))
def test_key_matches_plain_python(seed: int, purpose: Purpose, fields: tuple[int, ...]) -> None:
    assert int(key(np.uint64(seed), int(purpose), *fields)) == slow_key(seed, int(purpose), *fields)


@settings(max_examples=30, deadline=None)
@given(word=WORD)
def test_scramble_matches_plain_python(word: int) -> None:
    assert int(scramble(np.uint64(word))) == slow_scramble(word)


@pytest.mark.parametrize("field", range(7))
def test_key_differs_in_each_field(field: int) -> None:
    seen = set()
    for value in range(200):
        fields = [1, 1, 2, 3, 1, 2, 0]
        fields[field] = value
        seen.add(int(key(np.uint64(fields[0]), *fields[1:])))
    assert len(seen) == 200


def test_key_tells_fields_apart() -> None:
    """The same number in another field is another draw."""
    drawn = {int(key(np.uint64(7), 1, *(5 if place == i else 0 for i in range(5)))) for place in range(5)}
    assert len(drawn) == 5


def test_absorb_depends_on_order() -> None:
    first = absorb(np.uint64(absorb(np.uint64(1), 2)), 3)
    second = absorb(np.uint64(absorb(np.uint64(1), 3)), 2)
    assert first != second


def test_every_input_bit_moves_half_of_the_output() -> None:
    base = int(key(np.uint64(0), 1, 0, 0, 0, 0, 0))
    for bit in range(40):
        flipped = int(key(np.uint64(0), 1, 1 << bit, 0, 0, 0, 0))
        assert 12 <= (base ^ flipped).bit_count() <= 52


def _uniform_of(seed: int, rows: int, draw: int = 0) -> np.ndarray:
    table, zero = np.arange(rows, dtype=np.int32), np.zeros(rows, np.int64)
    out = np.empty(rows)
    uniforms(np.uint64(seed), int(Purpose.ACT), table, zero, zero, zero, draw, out)
    return out


def test_uniforms_are_uniform() -> None:
    draws = _uniform_of(3, 50_000)
    assert draws.min() >= 0
    assert draws.max() < 1
    observed, _ = np.histogram(draws, bins=20, range=(0, 1))
    chi2 = float(((observed - 2500.0) ** 2 / 2500.0).sum())
    assert chi2 < 45  # 19 degrees of freedom: beyond 45 once in 1,400 seeds, and the seed is fixed


def test_neighbouring_draws_are_independent() -> None:
    """Neighbours by table, by draw and by seed do not correlate: 5 standard errors of 50,000 pairs are 0.022."""
    draws = _uniform_of(3, 50_000)
    for other in (np.roll(draws, 1), _uniform_of(3, 50_000, draw=1), _uniform_of(4, 50_000)):
        assert abs(np.corrcoef(draws, other)[0, 1]) < 0.022


def test_uniforms_are_keyed_by_the_row_and_not_by_its_place() -> None:
    draws = _uniform_of(9, 64)
    table, zero = np.array([40, 7], np.int32), np.zeros(2, np.int64)
    out = np.empty(2)
    uniforms(np.uint64(9), int(Purpose.ACT), table, zero, zero, zero, 0, out)
    np.testing.assert_array_equal(out, draws[[40, 7]])


@settings(max_examples=50, deadline=None)
@given(word=WORD, n=st.integers(1, 1000))
def test_bounded_stays_below(word: int, n: int) -> None:
    assert bounded(np.uint64(word), n) == (word >> 32) * n >> 32
    assert 0 <= bounded(np.uint64(word), n) < n


def test_uniform_reaches_both_ends() -> None:
    assert uniform(np.uint64(0)) == 0.0
    assert uniform(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53


def test_words_and_permutation_are_functions_of_their_arguments() -> None:
    first = words(32, 5, Purpose.SHUFFLE, 1)
    np.testing.assert_array_equal(first, words(32, 5, Purpose.SHUFFLE, 1))
    np.testing.assert_array_equal(first[:8], words(8, 5, Purpose.SHUFFLE, 1))
    for other in (words(32, 6, Purpose.SHUFFLE, 1), words(32, 5, Purpose.ACT, 1), words(32, 5, Purpose.SHUFFLE, 2)):
        assert not (first == other).any()
    order = permutation(100, 5, Purpose.SHUFFLE, 1)
    np.testing.assert_array_equal(order, permutation(100, 5, Purpose.SHUFFLE, 1))
    np.testing.assert_array_equal(np.sort(order), np.arange(100))
    assert (order != permutation(100, 5, Purpose.SHUFFLE, 2)).any()
