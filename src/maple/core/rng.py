"""Counter-based randomness: a number is a pure function of what it is for.

Every draw is keyed (seed, purpose, table, game, seat, decision, draw). Nothing has a state, so nothing depends on the
order of evaluation: the same seed gives the same games for any batch split, thread count or backend, and a
resumed run needs no generator to be restored.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel

__all__ = ["Purpose", "bounded", "key", "permutation", "stream_next", "uniform", "uniforms", "words"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32), np.uint64(11)
_TO_UNIT = 1.0 / (1 << 53)


class Purpose(IntEnum):
    """What a random number is for: draws for one purpose never meet those of another."""

    DEAL = 1
    ACT = 2
    BOT = 3
    SEATING = 4
    SHUFFLE = 5
    WEIGHTS = 6
    EXPLORE = 7
    AUGMENT = 8
    BANK = 9
    REPLAY = 10
    NOISE = 11


@kernel
def scramble(word):
    """A bijection of 64 bits in which every input bit moves every output bit."""
    word = (word ^ (word >> _S30)) * _MIX_A
    word = (word ^ (word >> _S27)) * _MIX_B
    return word ^ (word >> _S31)


@kernel
def absorb(state, value):
    """Take one more field of a key into `state`."""
    return scramble((state ^ np.uint64(value)) + _GOLDEN)


@kernel
def key(seed, purpose, table, game, seat, decision, draw):
    """The 64 random bits that belong to this very draw."""
    state = absorb(np.uint64(seed), purpose)
    state = absorb(state, table)
    state = absorb(state, game)
    state = absorb(state, seat)
    state = absorb(state, decision)
    return absorb(state, draw)


@kernel
def stream_next(state):
    """Advance a local stream that was started from a key; scramble() the result before use."""
    return state + _GOLDEN


@kernel
def bounded(word, n):
    """An integer below `n` from the high 32 bits of `word`; the bias is below n / 2**32."""
    return np.int64(((word >> _S32) * np.uint64(n)) >> _S32)


@kernel
def uniform(word):
    """A float in [0, 1) from 64 random bits."""
    return np.float64(word >> _S11) * _TO_UNIT


@kernel
def uniforms(seed, purpose, table, game, seat, decision, draw, out):
    """One uniform number for each row, keyed by the row. Writes out."""
    for i in range(out.shape[0]):
        out[i] = uniform(key(seed, purpose, table[i], game[i], seat[i], decision[i], draw))


@kernel
def fill_words(seed, purpose, counter, out):
    """64 random bits for each place of `out`. Writes out."""
    for i in range(out.shape[0]):
        out[i] = key(seed, purpose, counter, 0, 0, 0, i)


def words(n: int, seed: int, purpose: Purpose, counter: int) -> NDArray[np.uint64]:
    """`n` random words, a function of the arguments alone."""
    out = np.empty(n, np.uint64)
    fill_words(np.uint64(seed), int(purpose), counter, out)
    return out


def permutation(n: int, seed: int, purpose: Purpose, counter: int) -> NDArray[np.int64]:
    """A random order of range(n), a function of its arguments alone."""
    state = int(key(np.uint64(seed), int(purpose), counter, 0, 0, 0, 0))
    return np.random.Generator(np.random.Philox(key=state)).permutation(n)
