"""The description of options in plain Python. Features have names here; their numbers follow from one list of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from tests.games.ofc.oracle import SIZES, Strength, best_wild, placement
from tests.games.ofc.sight import Sight

__all__ = ["feature_numbers", "option_features", "shared_features", "state_features"]

Feature = tuple[object, ...]
STEPS: list[Strength] = [
    *[(1, rank, 0, 0, 0, 0) for rank in (2, 6, 10, 12, 13, 14)],
    *[(2, rank, 0, 0, 0, 0) for rank in (3, 9, 12)],
    *[(3, rank, 0, 0, 0, 0) for rank in (2, 8, 12)],
    *[(4, rank, 0, 0, 0, 0) for rank in (5, 10)],
    *[(category, 0, 0, 0, 0, 0) for category in (5, 6, 7)],
]
WINDOWS = [{12, 0, 1, 2, 3}, *({low + i for i in range(5)} for low in range(9))]


def _names() -> Iterator[Feature]:
    for row in range(3):
        yield from (
            ("rank", row, rank, count, live) for rank in range(13) for count in range(1, 5) for live in range(5 - count)
        )
        yield from (("free", row, places) for places in range(6))
        yield from (("flush", row, cards, live) for cards in range(1, 6) for live in range(14))
        yield ("no flush", row)
        yield from (("straight", row, cards, scarcest) for cards in range(1, 6) for scarcest in range(5))
        yield ("no straight", row)
        yield from (("made", row, category) for category in range(9))
        yield from (("strength", row, step) for step in range(len(STEPS) + 1))
    for place in range(6):
        yield from (("their rank", place, rank, count) for rank in range(13) for count in range(1, 5))
        yield from (("their free", place, places) for places in range(6))
        yield from (("their suit", place, cards) for cards in range(6))
        yield from (("their made", place, category) for category in range(9))
    yield from (("unseen rank", rank, count) for rank in range(13) for count in range(5))
    yield from (("unseen suit", suit, count) for suit in range(4) for count in range(14))
    yield from (("street", street) for street in range(9))
    yield from (("position", position) for position in range(3))
    yield from (("fantasy", other, level) for other in range(2) for level in range(5))
    yield from (("mode", mode) for mode in range(3))
    yield from (("seats", seats) for seats in (2, 3))
    yield from (("foul", certain) for certain in (False, True))
    yield from (("hand", card) for card in range(54))
    yield from (("jokers", place, count) for place in range(9) for count in (1, 2))


@cache
def feature_numbers() -> dict[Feature, int]:
    """The number of each feature; no two share one."""
    return {name: number for number, name in enumerate(_names())}


def _live(unseen: list[int], rank: int) -> int:
    return sum(card < 52 and card // 4 == rank for card in unseen)


def _one_suit(cards: list[int]) -> int | None:
    suits = {card % 4 for card in cards}
    return suits.pop() if len(suits) == 1 else None


def _straight(row: int, cards: list[int], naturals: list[int], unseen: list[int]) -> Feature:
    ranks = {card // 4 for card in naturals}
    chances = [min([4, *(_live(unseen, rank) for rank in window - ranks)]) for window in WINDOWS if ranks <= window]
    if not chances or len(ranks) < len(naturals):
        return ("no straight", row)
    return ("straight", row, len(cards), max(chances))


def _my_row(row: int, cards: list[int], unseen: list[int]) -> Iterator[Feature]:
    naturals = [card for card in cards if card < 52]
    if len(cards) > len(naturals):
        yield ("jokers", row, len(cards) - len(naturals))
    for rank, count in Counter(card // 4 for card in naturals).items():
        yield ("rank", row, rank, count, _live(unseen, rank))
    yield ("free", row, SIZES[row] - len(cards))
    if naturals and row > 0:
        suit = _one_suit(naturals)
        live = sum(card < 52 and card % 4 == suit for card in unseen)
        yield ("no flush", row) if suit is None else ("flush", row, len(cards), live)
        yield _straight(row, cards, naturals, unseen)
    best = best_wild(cards) or (0,) * 6
    yield ("made", row, best[0])
    if len(cards) == SIZES[row]:
        yield ("strength", row, sum(best >= step for step in STEPS))


def shared_features(sight: Sight) -> list[Feature]:
    """What all options have in common."""
    found: list[Feature] = []
    for place, cards in enumerate([*sight.boards[1], *sight.boards[2]]):
        naturals = [card for card in cards if card < 52]
        if len(cards) > len(naturals):
            found.append(("jokers", 3 + place, len(cards) - len(naturals)))
        for rank, count in Counter(card // 4 for card in naturals).items():
            found.append(("their rank", place, rank, count))
        found.append(("their free", place, SIZES[place % 3] - len(cards)))
        if cards:
            one_suit = _one_suit(naturals) is not None or not naturals
            found.append(("their suit", place, len(cards) if one_suit else 0))
            found.append(("their made", place, (best_wild(cards) or (0,))[0]))
    unseen = sight.unseen
    found += [("unseen rank", rank, _live(unseen, rank)) for rank in range(13)]
    found += [("unseen suit", suit, sum(card < 52 and card % 4 == suit for card in unseen)) for suit in range(4)]
    found += [("street", sight.street), ("position", sight.position), ("mode", sight.mode), ("seats", sight.seats)]
    for other, cards_of_hand in enumerate(sight.fantasy):
        found.append(("fantasy", other, max(14, cards_of_hand) - 13 if cards_of_hand else 0))
    return found


def _certain_foul(board: list[list[int]]) -> bool:
    """Whether the complete rows alone already make a foul."""
    limit: Strength | None = None
    for row in (2, 1, 0):
        if len(board[row]) == SIZES[row]:
            limit = best_wild(board[row], limit)
            if limit is None:
                return True
    return False


def option_features(sight: Sight, action: int) -> list[list[Feature]]:
    """The parts of one option: its three rows, and whether the board is now certain to foul."""
    placed, _ = placement(action, sight.hand)
    board = [sight.boards[0][row] + placed[row] for row in range(3)]
    unseen = sight.unseen
    return [*(list(_my_row(row, board[row], unseen)) for row in range(3)), [("foul", _certain_foul(board))]]


def state_features(sight: Sight) -> list[Feature]:
    """The decision before any option is taken."""
    found = shared_features(sight)
    for row in range(3):
        found += _my_row(row, sight.boards[0][row], sight.unseen)
    return [*found, *(("hand", card) for card in sight.hand)]
