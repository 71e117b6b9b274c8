"""Cards as bits: card = 4 * rank + suit, so the four suits of a rank are one nibble of a 64-bit word.

Rank 0 is the deuce and 12 the ace; bits 52 and 53 are the jokers, where they are in play.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["ACE", "DECK", "JOKERS", "KING", "QUEEN", "card_name", "cards_of", "mask_of", "parse_cards"]

RANKS = "23456789TJQKA"
SUITS = "cdhs"
QUEEN, KING, ACE = 10, 11, 12
DECK = np.uint64((1 << 52) - 1)
JOKERS = np.uint64(3 << 52)


def card_name(card: int) -> str:
    """`As`, `Td`, `2c`; a joker is `Xa` or `Xb`."""
    return f"X{'ab'[card - 52]}" if card >= 52 else RANKS[card // 4] + SUITS[card % 4]


def parse_cards(text: str) -> list[int]:
    """Cards from names that may stand together: `AsKd 2c` gives three."""
    names = text.replace(" ", "")
    cards = []
    for name in (names[i : i + 2] for i in range(0, len(names), 2)):
        joker = name in ("Xa", "Xb")
        cards.append(52 + "ab".index(name[1]) if joker else RANKS.index(name[0]) * 4 + SUITS.index(name[1]))
    return cards


def mask_of(cards: Iterable[int] | str) -> np.uint64:
    """The set of these cards as bits."""
    word = 0
    for card in parse_cards(cards) if isinstance(cards, str) else cards:
        word |= 1 << int(card)
    return np.uint64(word)


def cards_of(mask: int | np.uint64) -> list[int]:
    """The cards of a set, in ascending order."""
    return [card for card in range(54) if int(mask) >> card & 1]
