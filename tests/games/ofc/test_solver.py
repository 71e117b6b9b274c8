"""The fantasyland solver against every arrangement of the hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.core.kernels import kernel, popcount
from maple.games.ofc.cards import cards_of, parse_cards
from maple.games.ofc.evaluate import board_keys, fantasyland_stay, is_foul, row_royalty, royalties
from maple.games.ofc.solver import solve

_1 = np.uint64(1)


@kernel
def worth(top, middle, bottom, stay_value, full_house_stays):
    """(royalties and stay in 16ths, strength of the rows) of a board; (-1, 0) for a foul."""
    keys = board_keys(top, middle, bottom)
    if is_foul(keys[0], keys[1], keys[2]):
        return np.int64(-1), np.int64(0)
    points = royalties(keys[0], keys[1], keys[2]) * 16
    if fantasyland_stay(keys[0], keys[1], keys[2], full_house_stays):
        points += np.int64(16 * stay_value)
    return np.int64(points), np.int64(keys[0] + keys[1] + keys[2])


@kernel
def subset_cards(cards, subset):
    """The cards at the set bits of `subset`."""
    word = np.uint64(0)
    for i in range(cards.shape[0]):
        if subset >> i & 1:
            word |= _1 << np.uint64(cards[i])
    return word


@kernel
def best_arrangement(cards, stay_value, full_house_stays):
    """The best worth over all boards that these cards make, by trying each."""
    n = cards.shape[0]
    fives, threes = np.empty(6188, np.int64), np.empty(680, np.int64)
    five_count, three_count = 0, 0
    for subset in range(1 << n):
        if popcount(np.uint64(subset)) == 5:
            fives[five_count] = subset
            five_count += 1
        elif popcount(np.uint64(subset)) == 3:
            threes[three_count] = subset
            three_count += 1
    best, best_strength = np.int64(-1), np.int64(0)
    for bottom in fives[:five_count]:
        bottom_cards = subset_cards(cards, bottom)
        for middle in fives[:five_count]:
            if middle & bottom:
                continue
            middle_cards = subset_cards(cards, middle)
            for top in threes[:three_count]:
                if top & (bottom | middle) == 0:
                    points, strength = worth(
                        subset_cards(cards, top), middle_cards, bottom_cards, stay_value, full_house_stays
                    )
                    if points > best or (points == best and strength > best_strength):
                        best, best_strength = points, strength
    return best, best_strength


def _hands(count: int, size: int, deck: int, seed: int) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return [np.sort(rng.choice(deck, size, replace=False)).astype(np.int64) for _ in range(count)]


def _check(cards: NDArray[np.int64], stay_value: float, full_house_stays: bool) -> None:
    top, middle, bottom = solve(cards, stay_value, full_house_stays)
    rows = [cards_of(row) for row in (top, middle, bottom)]
    assert [len(row) for row in rows] == [3, 5, 5]
    placed = [card for row in rows for card in row]
    assert len(set(placed)) == 13
    assert set(placed) <= set(cards.tolist())
    found = worth(np.uint64(top), np.uint64(middle), np.uint64(bottom), stay_value, full_house_stays)
    assert found[0] >= 0
    assert found == best_arrangement(cards, stay_value, full_house_stays)


@pytest.mark.parametrize(("stay_value", "full_house_stays"), [(0.0, False), (15.0, False), (7.5, True), (40.0, True)])
def test_thirteen_cards(stay_value: float, full_house_stays: bool) -> None:
    for cards in _hands(40, 13, 52, int(stay_value)):
        _check(cards, stay_value, full_house_stays)


@pytest.mark.parametrize(("stay_value", "full_house_stays"), [(0.0, False), (15.0, False), (15.0, True)])
def test_fourteen_cards(stay_value: float, full_house_stays: bool) -> None:
    for cards in _hands(6, 14, 52, 100 + int(stay_value)):
        _check(cards, stay_value, full_house_stays)


@pytest.mark.parametrize("full_house_stays", [False, True])
def test_short_decks_have_strong_hands(full_house_stays: bool) -> None:
    """Twenty-four cards of six ranks: quads, full houses and straight flushes meet each other."""
    for cards in _hands(25, 13, 24, 7):
        _check(cards, 15.0, full_house_stays)


@pytest.mark.parametrize("jokers", [1, 2])
@pytest.mark.parametrize("full_house_stays", [False, True])
def test_thirteen_cards_with_jokers(jokers: int, full_house_stays: bool) -> None:
    for naturals in _hands(3, 13 - jokers, 52, 20 + jokers):
        cards = np.concatenate([naturals, np.arange(52, 52 + jokers)])
        _check(cards, 15.0, full_house_stays)


def test_staying_is_worth_its_value_and_no_more() -> None:
    """Quads below stay for 10 points; breaking them pays 6 + 12 for two full houses: the value decides."""
    cards = np.array(sorted(parse_cards("8c 8d 8h 8s Kc Kd Kh Qc Qd 2c 2d 3h 4s")), np.int64)
    stays = solve(cards, 40.0, False)
    assert bool(fantasyland_stay(*board_keys(*(np.uint64(row) for row in stays)), False))
    for stay_value in (0.0, 15.0, 40.0):
        _check(cards, stay_value, False)


def test_result_is_a_function_of_the_cards() -> None:
    for cards in _hands(5, 15, 52, 3):
        assert solve(cards, 15.0, False) == solve(cards.copy(), 15.0, False)


@kernel
def sample_solutions(hands, stay_value, out):
    """Royalties and stay of each solved hand. Writes out."""
    for i in range(hands.shape[0]):
        top, middle, bottom = solve(hands[i], stay_value, False)
        keys = board_keys(top, middle, bottom)
        out[i, 0] = royalties(keys[0], keys[1], keys[2])
        out[i, 1] = fantasyland_stay(keys[0], keys[1], keys[2], False)


@pytest.mark.parametrize(("size", "royalty", "stay"), [(14, 12.4, 0.11), (15, 15.6, 0.18)])
def test_average_fantasyland(size: int, royalty: float, stay: float) -> None:
    """Known averages with value 15; 2,500 hands have standard errors of about 0.15 points and 0.7 %."""
    out = np.empty((2500, 2))
    sample_solutions(np.array(_hands(2500, size, 52, size)), 15.0, out)
    assert out[:, 0].mean() == pytest.approx(royalty, abs=0.6)
    assert out[:, 1].mean() == pytest.approx(stay, abs=0.025)


def test_a_stronger_row_never_pays_less() -> None:
    """What the solver's bound rests on."""
    keys = [(category << 20) | (rank << 16) for category in range(9) for rank in range(2, 15)]
    for row in (1, 2):
        paid = [int(row_royalty(row, key)) for key in keys]
        assert paid == sorted(paid)
    top = [int(row_royalty(0, key)) for key in keys if key >> 20 in (0, 1, 3)]
    assert top == sorted(top)
