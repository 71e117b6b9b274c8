"""Wild cards against every substitution there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.games.ofc.cards import mask_of, parse_cards
from maple.games.ofc.evaluate import NO_LIMIT, best_key, board_keys, is_foul, key_at_most, royalties, wild_key
from tests.games.ofc.oracle import best_wild, judge, packed, strength

NATURALS = st.lists(st.integers(0, 51), min_size=5, max_size=5, unique=True)
CLOSE_NATURALS = st.lists(st.integers(16, 35), min_size=5, max_size=5, unique=True)  # sixes to tens: many draws
SUITED_NATURALS = st.lists(st.integers(0, 12).map(lambda rank: 4 * rank + 2), min_size=5, max_size=5, unique=True)


@settings(max_examples=120, deadline=None)
@given(
    naturals=st.one_of(NATURALS, CLOSE_NATURALS, SUITED_NATURALS),
    size=st.sampled_from([3, 5]),
    jokers=st.integers(1, 2),
    limiting=st.one_of(st.none(), NATURALS, CLOSE_NATURALS, SUITED_NATURALS),
)
def test_wild_key_matches_every_substitution(
    naturals: list[int], size: int, jokers: int, limiting: list[int] | None
) -> None:
    row = [*naturals[: size - jokers], *range(52, 52 + jokers)]
    limit = strength(limiting) if limiting else None
    expected = best_wild(row, limit)
    key = wild_key(mask_of(row), NO_LIMIT if limit is None else packed(limit))
    assert int(key) == (-1 if expected is None else packed(expected))
    if limit is None:
        assert int(best_key(mask_of(row))) == key
    else:
        assert int(key_at_most(mask_of(row), best_key(mask_of(row)), packed(limit))) == key


@settings(max_examples=60, deadline=None)
@given(naturals=NATURALS, size=st.integers(1, 4))
def test_best_key_of_partial_rows(naturals: list[int], size: int) -> None:
    row = [*naturals[: size - 1], 52]
    expected = best_wild(row)
    assert expected is not None
    assert int(best_key(mask_of(row))) == packed(expected)


@settings(max_examples=60, deadline=None)
@given(cards=st.permutations(range(52)), places=st.lists(st.integers(0, 12), min_size=1, max_size=2, unique=True))
def test_boards_with_jokers_match_the_oracle(cards: list[int], places: list[int]) -> None:
    dealt = list(cards[:13])
    for joker, place in enumerate(places):
        dealt[place] = 52 + joker
    board = [dealt[:3], dealt[3:8], dealt[8:]]
    board.sort(key=lambda row: (len(row), sum(row)))
    keys = board_keys(*(mask_of(row) for row in board))
    judged = judge(board)
    assert bool(is_foul(*keys)) is judged.foul
    if not judged.foul:
        assert [int(key) for key in keys] == [packed(row) for row in judged.rows]
        assert royalties(*keys) == judged.royalty


@pytest.mark.parametrize(
    ("row", "same_as"),
    [
        ("Xa Ac Kd", "Ac Ad Kd"),
        ("Xa Xb 2c", "2c 2d 2h"),
        ("Xa 2c 2d 2h 2s", "2c 2d 2h 2s Ac"),  # never five of a kind
        ("Xa Tc Jc Qc Kc", "Tc Jc Qc Kc Ac"),
        ("Xa Xb Tc Jc Qc", "Tc Jc Qc Kc Ac"),
        ("Xa 2c 3c 4c 5d", "2c 3c 4c 5d 6d"),
        ("Xa Ac 2d 3h 4s", "Ac 2d 3h 4s 5c"),
        ("Xa 2c 2d 9h 9s", "2c 9c 9d 9h 2d"),
        ("Xa 2c 9c Jc Kc", "2c 9c Jc Kc Ac"),
    ],
)
def test_known_wild_rows(row: str, same_as: str) -> None:
    assert int(best_key(mask_of(row))) == packed(strength(parse_cards(same_as)))


def test_a_joker_steps_down_to_keep_the_board_legal() -> None:
    """A joker with two kings above a pair of aces in the middle: trips would foul, so it is a kicker instead."""
    keys = board_keys(mask_of("Kc Kd Xa"), mask_of("Ac Ad 9h 8s 3c"), mask_of("5c 5d 5h 5s 2c"))
    assert not is_foul(*keys)
    assert int(keys[0]) == packed(strength(parse_cards("Kc Kd Ah")))


def test_a_joker_cannot_mend_a_natural_foul() -> None:
    keys = board_keys(mask_of("Ac Ad Xa"), mask_of("Kc Kd 9h 8s 3c"), mask_of("5c 5d 5h 5s 2c"))
    assert is_foul(*keys)
    keys = board_keys(mask_of("2c 3d Xa"), mask_of("7c 7d 7h 8s 3c"), mask_of("5c 5d 6h 6s 2c"))
    assert is_foul(*keys)


def test_no_joker_no_change() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        row = mask_of(rng.choice(52, 5, replace=False).tolist())
        other = packed(strength(rng.choice(52, 5, replace=False).tolist()))
        best = best_key(row)
        assert wild_key(row, other) == (best if best <= other else -1) == key_at_most(row, best, other)
