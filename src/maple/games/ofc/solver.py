"""Set a fantasyland hand exactly: the legal board with the most royalties plus the value of staying.

Branch and bound over (bottom, middle, top), each list of candidates sorted by strength. Ties go to the stronger rows,
so the answer is a pure function of the cards. A test compares it with every arrangement there is.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.ofc.evaluate import (
    BOTTOM,
    FULL,
    MIDDLE,
    QUADS,
    TOP,
    TRIPS,
    best_key,
    key_at_most,
    row_royalty,
)

__all__ = ["solve"]

_1 = np.uint64(1)
# A value is 16ths of a point above bit 26; the sum of the three keys, below 2**26, breaks ties.
_UNIT = np.int64(1 << 26)


@kernel
def _value(row, key, stay):
    """What a row pays by itself; `stay` is the value of staying if this row earns it."""
    return (16 * row_royalty(row, key) + stay) * _UNIT + key


@kernel
def _earns_stay(row, key, full_house_stays):
    category = key >> 20
    if row == TOP:
        return category == TRIPS
    if row == BOTTOM:
        return category >= QUADS
    return full_house_stays and category >= FULL


@kernel
def _candidates(cards, size):
    """Every subset of `size` cards: its bits by position in the hand, its cards, its key."""
    n = cards.shape[0]
    total = 1
    for i in range(size):
        total = total * (n - i) // (i + 1)
    where = np.empty(total, np.int64)
    mask = np.empty(total, np.uint64)
    key = np.empty(total, np.int64)
    at = np.empty(size, np.int64)  # positions in the hand, ascending
    below = np.empty((size + 1, 2), np.uint64)  # position bits and cards of the first so many
    below[0] = 0
    depth, found = 0, 0
    at[0] = 0
    while depth >= 0:
        place = at[depth]
        if place > n - size + depth:
            depth -= 1
            if depth >= 0:
                at[depth] += 1
            continue
        below[depth + 1, 0] = below[depth, 0] | (_1 << np.uint64(place))
        below[depth + 1, 1] = below[depth, 1] | (_1 << np.uint64(cards[place]))
        if depth == size - 1:
            where[found], mask[found] = below[size, 0], below[size, 1]
            key[found] = best_key(mask[found])
            found += 1
            at[depth] += 1
        else:
            depth += 1
            at[depth] = place + 1
    return where, mask, key


@kernel
def _by_strength(where, mask, key):
    """The candidates in order of their keys, strongest first: a radix sort, twelve bits at a time."""
    n = key.shape[0]
    order, other = np.arange(n), np.empty(n, np.int64)
    start = np.empty(4097, np.int64)
    for shift in (0, 12):
        start[:] = 0
        for i in range(n):
            start[4096 - ((key[i] >> shift) & 4095)] += 1
        for digit in range(1, 4097):
            start[digit] += start[digit - 1]
        for i in range(n):
            digit = 4095 - ((key[order[i]] >> shift) & 4095)
            other[start[digit]] = order[i]
            start[digit] += 1
        order, other = other, order
    return where[order], mask[order], key[order]


@kernel
def _values(row, key, stay, full_house_stays):
    """What each candidate pays by itself in `row`; falls with its place, since a stronger row never pays less."""
    value = np.empty(key.shape[0], np.int64)
    for i in range(key.shape[0]):
        value[i] = _value(row, key[i], stay if _earns_stay(row, key[i], full_house_stays) else 0)
    return value


@kernel
def _first_free(where, place, taken):
    """The first candidate from `place` on that shares no card with `taken`."""
    while place < where.shape[0] and where[place] & taken:
        place += 1
    return place


@kernel
def solve(cards, stay_value, full_house_stays):
    """The best board from 13 to 17 cards, as (top, middle, bottom) card sets; the rest is discarded."""
    stay = np.int64(16 * stay_value)
    jokers = cards[-1] >= 52
    where5, mask5, key5 = _by_strength(*_candidates(cards, 5))
    where3, mask3, key3 = _by_strength(*_candidates(cards, 3))
    bottom_value = _values(BOTTOM, key5, stay, full_house_stays)
    middle_value = _values(MIDDLE, key5, stay, full_house_stays)
    top_value = _values(TOP, key3, stay, full_house_stays)
    best = np.int64(-1)
    top, middle, bottom = np.uint64(0), np.uint64(0), np.uint64(0)
    top_limit = 0
    for b in range(key5.shape[0]):
        # A stronger row above is a foul, so each search starts where the one below stands; but jokers may step down.
        if not jokers:
            while top_limit < key3.shape[0] - 1 and key3[top_limit] > key5[b]:
                top_limit += 1
            if bottom_value[b] + middle_value[b] + top_value[top_limit] <= best:
                break
        m = _first_free(where5, 0 if jokers else b + 1, where5[b])
        t_from = _first_free(where3, top_limit, where5[b])
        bottom_stays = _earns_stay(BOTTOM, key5[b], full_house_stays)
        while m < key5.shape[0]:
            while not jokers and t_from < key3.shape[0] and key3[t_from] > key5[m]:
                t_from = _first_free(where3, t_from + 1, where5[b])
            if t_from == key3.shape[0] or bottom_value[b] + middle_value[m] + top_value[t_from] <= best:
                break
            middle_key = key_at_most(mask5[m], key5[m], key5[b])
            if middle_key >= 0:
                taken = where5[b] | where5[m]
                stays = bottom_stays or _earns_stay(MIDDLE, middle_key, full_house_stays)
                paid = bottom_value[b] + _value(MIDDLE, middle_key, stay if stays and not bottom_stays else 0)
                t = _first_free(where3, t_from, taken)
                while t < key3.shape[0] and paid + top_value[t] > best:
                    top_key = key_at_most(mask3[t], key3[t], middle_key)
                    if top_key >= 0:
                        top_stays = _earns_stay(TOP, top_key, full_house_stays) and not stays
                        value = paid + _value(TOP, top_key, stay if top_stays else 0)
                        if value > best:
                            best = value
                            top, middle, bottom = mask3[t], mask5[m], mask5[b]
                    t = _first_free(where3, t + 1, taken)
            m = _first_free(where5, m + 1, where5[b])
    return top, middle, bottom
