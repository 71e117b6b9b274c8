"""A table as a picture: every seat's three rows, the hand of the one in turn, what was discarded."""

from __future__ import annotations

from typing import Any

from maple.core.svg import INK, words
from maple.games.ofc.cards import RANKS, cards_of
from maple.games.ofc.rules import ROW_SIZE, seat_in_turn

__all__ = ["picture"]

CARD = (46, 64)  # width and height in pixels
_GAP, _EDGE, _HEAD = 6, 20, 56
_PANEL = (5 * (CARD[0] + _GAP) + 2 * _EDGE, 3 * (CARD[1] + _GAP) + 70)
_FELT, _PLACE, _PAPER, _TURN = "#2f5d50", "#3b6d5f", "#fdfbf5", "#e0b13a"
_SUITS = (("♣", "#2f6b3a"), ("♦", "#2563a8"), ("♥", "#b8322c"), ("♠", INK))  # four colours, as players like it


def _place(x: float, y: float, fill: str, stroke: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{CARD[0]}" height="{CARD[1]}" rx="6" fill="{fill}" stroke="{stroke}"/>'


def _card(card: int, x: float, y: float) -> str:
    """One card, face up."""
    if card >= 52:
        middle = words(x + CARD[0] / 2, y + 42, 28, "★", "#7a3d9a", "middle")
        return _place(x, y, _PAPER, "#00000033") + middle
    suit, colour = _SUITS[card % 4]
    rank = "10" if RANKS[card // 4] == "T" else RANKS[card // 4]
    corner = words(x + 7, y + 24, 20, rank, colour, weight="bold")
    return _place(x, y, _PAPER, "#00000033") + corner + words(x + CARD[0] / 2 + 4, y + 54, 28, suit, colour, "middle")


def _row(cards: list[int], places: int, x: float, y: float) -> list[str]:
    """Cards from the left, highest first, then the places that are free."""
    step = CARD[0] + _GAP
    parts = [_place(x + i * step, y, _PLACE, "#00000022") for i in range(len(cards), places)]
    return parts + [_card(card, x + i * step, y) for i, card in enumerate(reversed(cards))]


def _seat(table: Any, seat: int, acts: bool, x: float, y: float) -> list[str]:
    """A seat's panel: who it is, its points, its rows."""
    ring = f'stroke="{_TURN}" stroke-width="4"' if acts else 'stroke="none"'
    parts = [f'<rect x="{x:g}" y="{y:g}" width="{_PANEL[0]}" height="{_PANEL[1]}" rx="14" fill="{_FELT}" {ring}/>']
    button = "  (button)" if int(table["button"]) == seat else ""
    parts.append(words(x + _EDGE, y + 34, 18, f"Seat {seat}{button}", _PAPER, weight="bold"))
    parts.append(words(x + _PANEL[0] - _EDGE, y + 34, 18, f"{int(table['score'][seat]):+d}", _PAPER, "end"))
    if fantasy := int(table["fantasy"][seat]):
        away = f"in fantasyland with {fantasy} cards"
        return [*parts, words(x + _PANEL[0] / 2, y + _PANEL[1] / 2, 17, away, _PAPER, "middle")]
    for row, places in enumerate(ROW_SIZE.tolist()):
        left = x + _EDGE + (5 - places) * (CARD[0] + _GAP) / 2
        parts += _row(cards_of(table["board"][seat, row]), places, left, y + 52 + row * (CARD[1] + _GAP))
    return parts


def picture(table: Any, seats: int) -> str:
    """An SVG of a table."""
    acts = int(seat_in_turn(table, seats))
    width = 2 * _EDGE + seats * _PANEL[0] + (seats - 1) * _EDGE
    below = _HEAD + _PANEL[1] + 44
    height = below + CARD[1] + _EDGE
    head = f"Hand {int(table['hands'])}, street {int(table['street']) + 1}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#f3efe4"/>',
        words(_EDGE, 38, 26, head, weight="bold"),
    ]
    for seat in range(seats):
        parts += _seat(table, seat, seat == acts, _EDGE + seat * (_PANEL[0] + _EDGE), _HEAD)
    hand, gone = cards_of(table["hand"]), cards_of(table["discards"][acts])
    parts.append(words(_EDGE, below - 14, 17, f"Seat {acts} has to place"))
    parts += _row(hand, len(hand), _EDGE, below)
    if gone:
        right = width - _EDGE - len(gone) * (CARD[0] + _GAP) + _GAP
        parts.append(words(width - _EDGE, below - 14, 17, "has discarded", anchor="end"))
        parts.append(f'<g opacity="0.55">{"".join(_row(gone, len(gone), right, below))}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"
