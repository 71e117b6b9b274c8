"""Suits mean nothing by themselves: any renaming of them gives an equivalent decision."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from maple.core.kernels import kernel, popcount
from maple.core.rng import bounded
from maple.games.ofc.encode import HAND, META
from maple.games.ofc.rules import FIRST_STREET_ACTIONS, SINGLE_CARD

__all__ = ["permute_suits"]

_1 = np.uint64(1)
_15 = np.uint64(15)
_ORDERS = np.array(list(permutations(range(4))), dtype=np.int64)
# For each order of suits, the nibble that each nibble becomes.
_NIBBLES = np.array(
    [[sum(1 << order[s] for s in range(4) if nibble >> s & 1) for nibble in range(16)] for order in _ORDERS],
    dtype=np.uint64,
)


@kernel
def _rename(cards, nibbles):
    """The same cards under other suits; jokers stay."""
    out = cards & ~((_1 << np.uint64(52)) - _1)
    for rank in range(13):
        shift = np.uint64(4 * rank)
        out |= nibbles[(cards >> shift) & _15] << shift
    return out


@kernel
def _reorder(action, place, cards):
    """The index of the same placement when card i of the hand has become card place[i]."""
    if action >= SINGLE_CARD:
        return action
    row = np.empty(5, np.int64)
    if action < FIRST_STREET_ACTIONS:
        for i in range(cards):
            row[place[i]] = action % 3
            action //= 3
        code = 0
        for i in range(cards - 1, -1, -1):
            code = 3 * code + row[i]
        return code
    code = action - FIRST_STREET_ACTIONS
    discard, rows = code // 9, code % 9
    for i in range(3):
        row[place[i]] = -1
        if i != discard:
            row[place[i]] = rows % 3
            rows //= 3
    new_discard, new_rows, weight = 0, 0, 1
    for i in range(3):
        if row[i] < 0:
            new_discard = i
        else:
            new_rows += row[i] * weight
            weight *= 3
    return FIRST_STREET_ACTIONS + 9 * new_discard + new_rows


@kernel
def permute_suits(view, action, random, lo, hi):
    """Rename the suits of rows [lo, hi) by an order that `random` chooses. Writes view, action."""
    place = np.empty(5, np.int64)
    for i in range(lo, hi):
        nibbles = _NIBBLES[bounded(random[i], 24)]
        hand = view[i, HAND]
        for word in range(META):
            view[i, word] = _rename(view[i, word], nibbles)
        cards, left = 0, hand
        while left:
            card = left & (~left + _1)
            left ^= card
            place[cards] = popcount(view[i, HAND] & (_rename(card, nibbles) - _1))
            cards += 1
        action[i] = _reorder(np.int64(action[i]), place, cards)
