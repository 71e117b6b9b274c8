"""A view as text, for people who want to see what a seat sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maple.games.ofc.cards import card_name, cards_of
from maple.games.ofc.encode import DISCARDS, HAND, META, MINE, NEXT, NEXT_FANTASY, PREVIOUS, SEATS, STREET
from maple.games.ofc.rules import ROW_SIZE

__all__ = ["show_view"]


def _names(cards: np.uint64, places: int = 0) -> str:
    """Cards, highest first, and a dot for each place that is free."""
    names = [card_name(card) for card in reversed(cards_of(cards))]
    return " ".join(names + [". "] * (places - len(names)))


def _board(view: NDArray[np.uint64], first: int, fantasy_cards: int) -> str:
    if fantasy_cards:
        return f"in fantasyland, {fantasy_cards} cards face down"
    rows = (_names(view[first + row], int(places)) for row, places in enumerate(ROW_SIZE))
    return " | ".join(rows).rstrip()


def show_view(view: NDArray[np.uint64]) -> str:
    """The boards as top | middle | bottom, the hand to place, the own discards."""
    meta = int(view[META]).to_bytes(8, "little")
    lines = [f"street   {meta[STREET] + 1}", f"me       {_board(view, MINE, 0)}"]
    for other, (name, first) in enumerate((("next", NEXT), ("previous", PREVIOUS))[: max(0, meta[SEATS] - 1)]):
        lines.append(f"{name:8} {_board(view, first, meta[NEXT_FANTASY + other])}")
    lines.append(f"hand     {_names(view[HAND])}".rstrip())
    return "\n".join([*lines, f"discards {_names(view[DISCARDS])}".rstrip()])
