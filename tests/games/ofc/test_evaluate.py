from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.core.kernels import kernel
from maple.games.ofc.cards import mask_of, parse_cards
from maple.games.ofc.evaluate import (
    board_keys,
    fantasyland_entry,
    fantasyland_stay,
    is_foul,
    pair_score,
    row_key,
    row_royalty,
    royalties,
)
from tests.games.ofc.oracle import Judged, judge, packed, pair_points, strength
from tests.games.ofc.oracle import row_royalty as slow_royalty

_1 = np.uint64(1)
# High card, pair, two pair, trips, straight, flush, full house, quads, straight flush, of which royal.
STANDARD_COUNTS = [1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 40, 4]


def key_of(text: str) -> int:
    return int(row_key(mask_of(text)))


@kernel
def count_categories(counts):
    """Categories of all five-card hands; the last entry counts royal flushes. Writes counts."""
    for a in range(52):
        for b in range(a):
            for c in range(b):
                for d in range(c):
                    low = (_1 << np.uint64(a)) | (_1 << np.uint64(b)) | (_1 << np.uint64(c)) | (_1 << np.uint64(d))
                    for e in range(d):
                        key = row_key(low | (_1 << np.uint64(e)))
                        counts[key >> 20] += 1
                        counts[9] += key >> 16 == (8 << 4 | 14)


def test_all_hands_have_the_standard_counts() -> None:
    counts = np.zeros(10, np.int64)
    count_categories(counts)
    assert counts.tolist() == STANDARD_COUNTS
    assert counts[:9].sum() == 2_598_960


@settings(max_examples=400, deadline=None)
@given(cards=st.lists(st.integers(0, 51), min_size=1, max_size=5, unique=True))
def test_key_matches_the_oracle(cards: list[int]) -> None:
    assert int(row_key(mask_of(cards))) == packed(strength(cards))


@settings(max_examples=200, deadline=None)
@given(ranks=st.lists(st.integers(0, 3), min_size=5, max_size=5), data=st.data())
def test_key_of_paired_rows_matches_the_oracle(ranks: list[int], data: st.DataObject) -> None:
    """Few ranks, so that pairs, trips, full houses and quads are common."""
    high = data.draw(st.permutations(range(13)))
    seen: dict[int, int] = {}
    cards = []
    for rank in ranks:
        suit = seen.get(rank, 0)
        seen[rank] = suit + 1
        if suit < 4:
            cards.append(4 * high[rank] + suit)
    assert int(row_key(mask_of(cards))) == packed(strength(cards))


@settings(max_examples=100, deadline=None)
@given(low=st.integers(0, 8), suits=st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_key_of_straights_matches_the_oracle(low: int, suits: list[int]) -> None:
    cards = [4 * (low + i) + suit for i, suit in enumerate(suits)]
    assert int(row_key(mask_of(cards))) == packed(strength(cards))


def test_empty_row_is_the_weakest() -> None:
    assert row_key(np.uint64(0)) == 0
    assert row_key(np.uint64(0)) < key_of("2c")


def test_aces_are_high() -> None:
    assert key_of("As Kd 9c 5h 3s") > key_of("Ks Qd 9c 5h 3s")
    assert key_of("As Ad 2c") > key_of("Ks Kd Qc")
    assert key_of("Ac Ad Ah") > key_of("Kc Kd Kh")
    assert key_of("As Kd Qc Jh Ts") > key_of("Ks Qd Jc Th 9s")


def test_wheel_is_the_lowest_straight() -> None:
    wheel, six_high = key_of("As 2d 3c 4h 5s"), key_of("2d 3c 4h 5s 6d")
    assert wheel >> 20 == six_high >> 20 == 4
    assert key_of("Ac Ad Ah Kc Qd") < wheel < six_high
    assert key_of("As 2s 3s 4s 5s") < key_of("2d 3d 4d 5d 6d")
    assert key_of("Qs Kd Ac 2h 3s") >> 20 == 0  # no straight around the corner


def test_suits_never_break_ties() -> None:
    assert key_of("As Kd 9c 5h 3s") == key_of("Ac Kh 9s 5d 3h")
    assert key_of("As Ks 9s 5s 3s") == key_of("Ac Kc 9c 5c 3c")


def test_three_cards_make_no_straight_and_no_flush() -> None:
    assert key_of("As Ks Qs") >> 20 == 0
    assert key_of("2c 3d 4h") < key_of("2c 3d 5h")


@pytest.mark.parametrize(
    ("top", "middle", "bottom", "foul"),
    [
        ("Kc Kd Ac", "Kh Ks Qc 7d 3h", "5c 5d 5h 5s 2c", True),  # the ace kicker beats the queen
        ("Kc Kd 2c", "Kh Ks Qc 7d 3h", "5c 5d 5h 5s 2c", False),
        ("Ac Ad Ah", "2c 2d 2h 7s 9d", "5c 5d 5h 5s 3c", True),  # trips compare by rank
        ("2c 2d 2h", "Ac Ad Ah 7s 9d", "5c 5d 5h 5s 3c", False),
        ("Ac Ad Ah", "3c 4d 5h 6s 7d", "9c 9d 9h 9s 2c", False),  # a straight beats trips
        ("Ac Kd Qh", "Ad Kh Qs 3c 2d", "As Ks Qd 3d 2h", False),  # equal rows are legal
        ("Ac Kd Qh", "Ad Kh Qs 3c 2d", "Ks Qd Jd 8d 2h", True),
        ("2c 3d 4h", "6c 6d 7h 7s 9d", "6h 6s 7c 7d 8d", True),  # two pair by the kicker
        ("2c 3d 4h", "6c 6d 7h 7s 8c", "6h 6s 7c 7d 9d", False),
    ],
)
def test_foul(top: str, middle: str, bottom: str, foul: bool) -> None:
    keys = board_keys(mask_of(top), mask_of(middle), mask_of(bottom))
    assert bool(is_foul(*keys)) is foul
    assert judge([parse_cards(top), parse_cards(middle), parse_cards(bottom)]).foul is foul


def test_a_three_card_row_loses_to_the_same_ranks_with_more_kickers() -> None:
    assert key_of("Ac Kd Qh") < key_of("Ad Kh Qs 3c 2d")
    assert key_of("9c 9d 2h") < key_of("9h 9s 2c 3d 4h")


TOP_PAIRS = {rank: max(0, rank - 5) for rank in range(2, 15)}  # 66 pays 1, AA pays 9
LOWER_ROWS = [
    ("Ac Ad Kh Ks 2c", 0, 0),
    ("2c 2d 2h 5s 7d", 2, 0),
    ("Ac 2d 3h 4s 5d", 4, 2),
    ("2c 5c 7c 9c Kc", 8, 4),
    ("2c 2d 2h 5s 5d", 12, 6),
    ("2c 2d 2h 2s 5d", 20, 10),
    ("5h 6h 7h 8h 9h", 30, 15),
    ("Th Jh Qh Kh Ah", 50, 25),
]


@pytest.mark.parametrize("rank", range(2, 15))
def test_top_royalties(rank: int) -> None:
    name = "23456789TJQKA"[rank - 2]
    kicker = "2h" if rank != 2 else "3h"
    assert row_royalty(0, key_of(f"{name}c{name}d{kicker}")) == TOP_PAIRS[rank]
    assert row_royalty(0, key_of(f"{name}c{name}d{name}h")) == rank + 8  # 222 pays 10, AAA pays 22


@pytest.mark.parametrize(("cards", "middle", "bottom"), LOWER_ROWS)
def test_lower_royalties(cards: str, middle: int, bottom: int) -> None:
    assert row_royalty(1, key_of(cards)) == middle
    assert row_royalty(2, key_of(cards)) == bottom


def test_royalties_add_up() -> None:
    keys = [key_of("Qc Qd 2h"), key_of("Ac 2d 3h 4s 5d"), key_of("2c 5c 7c 9c Kc")]
    assert royalties(*keys) == 7 + 4 + 4


@pytest.mark.parametrize(
    ("top", "fixed", "progressive"),
    [
        ("Jc Jd Ah", 0, 0),
        ("Ac Kd Qh", 0, 0),
        ("Qc Qd 2h", 14, 14),
        ("Kc Kd 2h", 14, 15),
        ("Ac Ad 2h", 14, 16),
        ("2c 2d 2h", 14, 17),
        ("Ac Ad Ah", 14, 17),
    ],
)
def test_fantasyland_entry(top: str, fixed: int, progressive: int) -> None:
    assert fantasyland_entry(key_of(top), False) == fixed
    assert fantasyland_entry(key_of(top), True) == progressive


@pytest.mark.parametrize(
    ("top", "middle", "bottom", "stays", "stays_by_full_house"),
    [
        ("Ac Ad Kh", "2c 3c 4c 5c 7c", "8c 8d 8h 9c 9d", False, False),  # never by QQ+
        ("2c 2d 2h", "3c 4c 5c 6c 8c", "8d 8h 8s 9c 9d", True, True),
        ("2c 3d 4h", "5c 5d 6h 7h 8h", "9c 9d 9h 9s 2d", True, True),
        ("2c 3d 4h", "5c 5d 6h 7h 8h", "9c Tc Jc Qc Kc", True, True),
        ("2c 3d 4h", "5c 5d 5h 7h 7s", "9c 9d 9h Ks Kd", False, True),
        ("2c 3d 4h", "5c 6d 7h 8h 9s", "9c 9d 9h Ks Kd", False, False),
    ],
)
def test_fantasyland_stay(top: str, middle: str, bottom: str, stays: bool, stays_by_full_house: bool) -> None:
    keys = key_of(top), key_of(middle), key_of(bottom)
    assert bool(fantasyland_stay(*keys, False)) is stays
    assert bool(fantasyland_stay(*keys, True)) is stays_by_full_house


def _judged(keys: tuple[int, int, int], foul: bool, royalty: int) -> Judged:
    return Judged(tuple((key,) for key in keys), foul, royalty)


SMALL_KEY = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=200, deadline=None)
@given(
    a=SMALL_KEY, b=SMALL_KEY, fouls=st.tuples(st.booleans(), st.booleans()), pay=st.tuples(*[st.integers(0, 30)] * 2)
)
def test_pair_score_is_zero_sum_and_matches_the_oracle(
    a: tuple[int, int, int], b: tuple[int, int, int], fouls: tuple[bool, bool], pay: tuple[int, int]
) -> None:
    keys, foul = np.array([a, b], np.int64), np.array(fouls)
    royalty = np.where(foul, 0, np.array(pay, np.int64))
    points = pair_score(keys, foul, royalty, 0, 1)
    assert points == -pair_score(keys, foul, royalty, 1, 0)
    assert points == pair_points(_judged(a, fouls[0], int(royalty[0])), _judged(b, fouls[1], int(royalty[1])))


@pytest.mark.parametrize(
    ("rows", "points"),
    [((1, 1, 1), 6), ((1, 1, 0), 2), ((1, 1, -1), 1), ((1, 0, -1), 0), ((0, 0, 0), 0), ((-1, -1, -1), -6)],
)
def test_rows_and_scoop(rows: tuple[int, int, int], points: int) -> None:
    keys = np.array([[5 + row for row in rows], [5, 5, 5]], np.int64)
    assert pair_score(keys, np.zeros(2, np.bool_), np.zeros(2, np.int64), 0, 1) == points


def test_fouls_pay_six_and_the_other_sides_royalties() -> None:
    keys, royalty = np.full((2, 3), 9, np.int64), np.array([0, 11])
    for fouls, points in {(True, False): -17, (True, True): 0}.items():
        assert pair_score(keys, np.array(fouls), royalty, 0, 1) == points
    assert pair_score(keys, np.array((False, True)), np.array([4, 0]), 0, 1) == 10


@pytest.mark.parametrize(("row", "size"), [(0, 3), (1, 5), (2, 5)])
def test_royalties_of_random_rows_match_the_oracle(row: int, size: int) -> None:
    rng = np.random.default_rng(size + row)
    for _ in range(300):
        cards = rng.choice(52 if row == 0 else 24, size, replace=False).tolist()
        assert row_royalty(row, row_key(mask_of(cards))) == slow_royalty(row, strength(cards))
