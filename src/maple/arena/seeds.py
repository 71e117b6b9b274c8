"""Which seed a game of an env of the user's own begins with.

The hash of `maple.core.rng`, in plain numbers: workers do without Numba, and NumPy's takes ten times as long.
"""

from __future__ import annotations

__all__ = ["deal_word", "env_seed", "game_seed"]

_64 = (1 << 64) - 1


def env_seed(seed: int, deal: int, game: int) -> int:
    """What an env is reset with: a function of the run's seed, the table's deal and the game's number alone."""
    return game_seed(deal_word(seed, deal), game)


def deal_word(seed: int, deal: int) -> int:
    """What all games of a deal share."""
    return _mixed(seed, deal)


def game_seed(word: int, game: int) -> int:
    """The seed of one of them."""
    return _mixed(word, game) >> 33


def _mixed(word: int, value: int) -> int:
    word = ((word ^ value) + 0x9E3779B97F4A7C15) & _64
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _64
    return word ^ (word >> 31)
