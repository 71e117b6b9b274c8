"""The random numbers of `maple.core.rng` in plain Python integers."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["slow_key", "slow_scramble", "slow_shuffle"]

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def slow_scramble(word: int) -> int:
    """SplitMix64's finisher."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def slow_key(seed: int, *fields: int) -> int:
    """The word that belongs to (seed, purpose, table, game, seat, decision, draw)."""
    state = seed
    for field in fields:
        state = slow_scramble(((state ^ field) + _GOLDEN) & _WORD)
    return state


def slow_shuffle(cards: Sequence[int], state: int) -> list[int]:
    """Fisher-Yates from the front, one word of the stream a swap."""
    deck = list(cards)
    for i in range(len(deck) - 1):
        state = (state + _GOLDEN) & _WORD
        j = i + ((slow_scramble(state) >> 32) * (len(deck) - i) >> 32)
        deck[i], deck[j] = deck[j], deck[i]
    return deck
