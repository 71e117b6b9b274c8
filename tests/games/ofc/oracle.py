"""Poker hands and OFC scores in plain Python: slow, obvious, and made without a look at the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

__all__ = [
    "Strength",
    "best_wild",
    "judge",
    "legal_actions",
    "next_fantasyland",
    "packed",
    "pair_points",
    "placement",
    "row_royalty",
    "strength",
]

Strength = tuple[int, ...]  # (category, five ranks in order of weight, 0 where there is none)
HIGH, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL, QUADS, STRAIGHT_FLUSH = range(9)
SIZES = (3, 5, 5)
ACE, KING, QUEEN = 14, 13, 12
MIDDLE_ROYALTY = {TRIPS: 2, STRAIGHT: 4, FLUSH: 8, FULL: 12, QUADS: 20, STRAIGHT_FLUSH: 30}
BOTTOM_ROYALTY = {STRAIGHT: 2, FLUSH: 4, FULL: 6, QUADS: 10, STRAIGHT_FLUSH: 15}
_BY_COUNTS = {(4,): QUADS, (3, 2): FULL, (3,): TRIPS, (2, 2): TWO_PAIR, (2,): PAIR, (): HIGH}


def strength(cards: Sequence[int]) -> Strength:
    """How strong these cards are, without jokers; straights and flushes need five."""
    counts = Counter(card // 4 + 2 for card in cards)
    ranks = sorted(counts, key=lambda rank: (-counts[rank], -rank))
    category = _BY_COUNTS[tuple(counts[rank] for rank in ranks if counts[rank] > 1)]
    if len(ranks) == 5:
        flush = len({card % 4 for card in cards}) == 1
        if ranks == [ACE, 5, 4, 3, 2]:
            ranks = [5]
        elif ranks[0] - ranks[4] == 4:
            ranks = ranks[:1]
        straight = len(ranks) == 1
        category = (STRAIGHT_FLUSH if straight else FLUSH) if flush else (STRAIGHT if straight else HIGH)
    return (category, *ranks, *[0] * (5 - len(ranks)))


def packed(value: Strength) -> int:
    """The same as one integer: the category above five nibbles."""
    key = 0
    for part in value:
        key = key * 16 + part
    return key


def best_wild(cards: Sequence[int], limit: Strength | None = None) -> Strength | None:
    """The best that a row's jokers can make of it with cards that are not in it, at or below `limit`."""
    naturals = [card for card in cards if card < 52]
    others = [card for card in range(52) if card not in naturals]
    made = (strength([*naturals, *wild]) for wild in combinations(others, len(cards) - len(naturals)))
    return max((value for value in made if limit is None or value <= limit), default=None)


def row_royalty(row: int, value: Strength) -> int:
    """What one row of a legal board pays."""
    category, rank = value[:2]
    if row == 0:
        return {PAIR: max(0, rank - 5), TRIPS: rank + 8}.get(category, 0)
    royal = category == STRAIGHT_FLUSH and rank == ACE
    if row == 1:
        return 50 if royal else MIDDLE_ROYALTY.get(category, 0)
    return 25 if royal else BOTTOM_ROYALTY.get(category, 0)


@dataclass(frozen=True)
class Judged:
    """A complete board at the showdown."""

    rows: tuple[Strength, ...]  # top, middle, bottom; meaningless after a foul
    foul: bool
    royalty: int


def judge(board: Sequence[Sequence[int]]) -> Judged:
    """Read a complete board from the bottom up; jokers are as good as the row below allows."""
    bottom = best_wild(board[2])
    middle = best_wild(board[1], bottom)
    top = best_wild(board[0], middle) if middle else None
    if bottom is None or middle is None or top is None:
        return Judged(((0,) * 6,) * 3, True, 0)
    rows = (top, middle, bottom)
    return Judged(rows, False, sum(row_royalty(row, value) for row, value in enumerate(rows)))


def pair_points(mine: Judged, theirs: Judged) -> int:
    """Points that one seat takes from another."""
    if mine.foul and theirs.foul:
        return 0
    if mine.foul:
        return -6 - theirs.royalty
    if theirs.foul:
        return 6 + mine.royalty
    won = sum(a > b for a, b in zip(mine.rows, theirs.rows))
    lost = sum(a < b for a, b in zip(mine.rows, theirs.rows))
    return won - lost + 3 * (won == 3) - 3 * (lost == 3) + mine.royalty - theirs.royalty


def next_fantasyland(judged: Judged, inside: bool, mode: str, pineapple: bool, stay_full: bool, by_top: bool) -> int:
    """Cards of the next hand in fantasyland, 0 for none."""
    if mode == "off" or judged.foul:
        return 0
    top, middle, bottom = judged.rows
    earned = 0
    if top[0] == TRIPS:
        earned = 17
    elif top[0] == PAIR and top[1] >= QUEEN:
        earned = {QUEEN: 14, KING: 15, ACE: 16}[top[1]]
    if earned and (mode == "fixed" or not pineapple):
        earned = 14
    if inside:
        stays = top[0] == TRIPS or bottom[0] >= QUADS or (stay_full and middle[0] >= FULL)
        earned = 0 if not stays else (max(earned, 14) if by_top else 14)
    return earned if pineapple else min(earned, 13)


def placement(action: int, hand: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """What an action does with a sorted hand: the cards for each row, and the discards."""
    rows: list[list[int]] = [[], [], []]
    if len(hand) == 5:
        assert 0 <= action < 243
        for i, card in enumerate(hand):
            rows[action // 3**i % 3].append(card)
        return rows, []
    if len(hand) == 1:
        assert 270 <= action < 273
        rows[action - 270].append(hand[0])
        return rows, []
    assert 243 <= action < 270
    discard, code = divmod(action - 243, 9)
    kept = [card for i, card in enumerate(hand) if i != discard]
    rows[code % 3].append(kept[0])
    rows[code // 3].append(kept[1])
    return rows, [hand[discard]]


def legal_actions(board: Sequence[Sequence[int]], hand: Sequence[int]) -> list[int]:
    """Every action whose cards fit into the rows."""
    span = {5: range(243), 3: range(243, 270), 1: range(270, 273)}[len(hand)]
    found = []
    for action in span:
        rows, _ = placement(action, hand)
        if all(len(board[row]) + len(rows[row]) <= SIZES[row] for row in range(3)):
            found.append(action)
    return found
