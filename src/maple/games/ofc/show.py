"""A table or a view of it as text: what is there, what a seat sees, what an action does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.games.ofc.cards import card_name, cards_of
from maple.games.ofc.encode import DISCARDS, HAND, META, MINE, NEXT, NEXT_FANTASY, PREVIOUS, SEATS, STREET
from maple.games.ofc.rules import ROW_SIZE, place_cards, seat_in_turn

__all__ = ["action_text", "ending_text", "frame_text", "show_view"]

_ROWS = ("top", "middle", "bottom")


def _names(cards: np.uint64, places: int = 0) -> str:
    """Cards, highest first, and a dot for each place that is free."""
    names = [card_name(card) for card in reversed(cards_of(cards))]
    return " ".join(names + [". "] * (places - len(names)))


def _board(view: NDArray[np.uint64], first: int, fantasy_cards: int) -> str:
    if fantasy_cards:
        return f"in fantasyland, {fantasy_cards} cards face down"
    return _rows(view[first : first + 3])


def _rows(board: NDArray[np.uint64]) -> str:
    """A board as top | middle | bottom."""
    return " | ".join(_names(board[row], int(places)) for row, places in enumerate(ROW_SIZE)).rstrip()


def show_view(view: NDArray[np.uint64]) -> str:
    """The boards as top | middle | bottom, the hand to place, the own discards."""
    meta = int(view[META]).to_bytes(8, "little")
    lines = [f"street   {meta[STREET] + 1}", f"me       {_board(view, MINE, 0)}"]
    for other, (name, first) in enumerate((("next", NEXT), ("previous", PREVIOUS))[: max(0, meta[SEATS] - 1)]):
        lines.append(f"{name:8} {_board(view, first, meta[NEXT_FANTASY + other])}")
    lines.append(f"hand     {_names(view[HAND])}".rstrip())
    return "\n".join([*lines, f"discards {_names(view[DISCARDS])}".rstrip()])


def frame_text(table: Any, seats: int) -> str:
    """A table as people watch it: everybody's rows and points, the hand in turn and its seat's discards."""
    acts = int(seat_in_turn(table, seats))
    lines = [f"hand {int(table['hands'])}, street {int(table['street']) + 1}"]
    for seat in range(seats):
        fantasy = int(table["fantasy"][seat])
        board = f"in fantasyland with {fantasy} cards" if fantasy else _rows(table["board"][seat])
        lines.append(f"{'>' if seat == acts else ' '} seat {seat} {int(table['score'][seat]):+4d}  {board}")
    lines.append(f"to place {_names(table['hand'])}".rstrip())
    return "\n".join([*lines, f"discards {_names(table['discards'][acts])}".rstrip()])


def action_text(table: Any, action: int, seats: int) -> str:
    """Where the cards of the hand go."""
    board, gone = np.zeros(3, np.uint64), np.zeros(1, np.uint64)
    place_cards(board, gone, np.uint64(table["hand"]), action)
    moves = [f"{_names(cards)} {row}" for row, cards in zip(_ROWS, board, strict=True) if cards]
    moves += [f"{_names(gone[0])} discarded"] if gone[0] else []
    return f"seat {int(seat_in_turn(table, seats))}: {', '.join(moves)}"


def ending_text(end: dict[str, Any], seats: int) -> str:
    """Every seat's points, and what they are made of."""
    parts = [
        f"seat {seat} {end['score'][seat]:+d} (royalties {end['royalty'][seat]}, fouls {end['fouls'][seat]})"
        for seat in range(seats)
    ]
    return f"{', '.join(parts)}; hands {end['hands']}, decisions {end['length']}"
