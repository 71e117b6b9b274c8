"""What a row is worth: strength keys, royalties, fouls, the score of a pair of boards.

A key is one integer that compares rows of three and of five cards: the category in the high bits, then five nibbles
with the ranks in order of weight (2 = deuce … 14 = ace), missing kickers 0. So a top of KK-A beats a middle of KK-Q73,
and a top of AAA beats a middle of 222.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import clz, ctz, kernel, popcount

__all__ = [
    "BOTTOM",
    "MIDDLE",
    "TOP",
    "best_key",
    "board_keys",
    "fantasyland_entry",
    "fantasyland_stay",
    "is_foul",
    "key_at_most",
    "pair_score",
    "row_key",
    "royalties",
]

TOP, MIDDLE, BOTTOM = 0, 1, 2
HIGH, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL, QUADS, STRAIGHT_FLUSH = range(9)
NO_LIMIT = np.int64(1 << 40)

_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)
_4, _8, _16, _12 = np.uint64(4), np.uint64(8), np.uint64(16), np.uint64(12)
_FIVES = np.uint64(0x5555555555555)
_THREES = np.uint64(0x3333333333333)
_ONES = np.uint64(0x1111111111111)
_WHEEL = np.uint64(0x1000000001111)
_DECK = np.uint64((1 << 52) - 1)
_52 = np.uint64(52)

# By category; the last entry is the royal flush.
_ROYALTY = np.array([[0] * 10, [0, 0, 0, 2, 4, 8, 12, 20, 30, 50], [0, 0, 0, 0, 2, 4, 6, 10, 15, 25]], dtype=np.int64)


@kernel
def _ranks(word, key, room):
    """Append the ranks of `word` (a bit per nibble), highest first, to the nibbles of `key`."""
    while word:
        high = 63 - clz(word)
        room -= 4
        key |= ((high >> 2) + 2) << room
        word ^= _1 << np.uint64(high)
    return key, room


@kernel
def row_key(cards):
    """Strength of a row without jokers; straights and flushes need five cards. Partial rows compare by their ranks."""
    pairs = cards - ((cards >> _1) & _FIVES)
    count = (pairs & _THREES) + ((pairs >> _2) & _THREES)  # how many of each rank, a nibble each
    four = (count >> _2) & _ONES
    low, high = count & _ONES, (count >> _1) & _ONES
    three, two, one = low & high, high & ~low, low & ~high
    if popcount(cards) == 5 and not (two | three | four):
        flush = not (cards & ~(_ONES << np.uint64(ctz(cards) & 3)))
        run = one & (one >> _4) & (one >> _8)
        run &= (one >> _12) & (one >> _16)
        wheel = one == _WHEEL
        if run or wheel:
            top = 5 if wheel else (ctz(run) >> 2) + 6
            return ((STRAIGHT_FLUSH if flush else STRAIGHT) << 20) | (top << 16)
        return _ranks(one, (FLUSH if flush else HIGH) << 20, 20)[0]
    category = HIGH
    if four:
        category = QUADS
    elif three:
        category = FULL if two else TRIPS
    elif two:
        category = TWO_PAIR if two & (two - _1) else PAIR
    key, room = _ranks(four | three, category << 20, 20)
    key, room = _ranks(two, key, room)
    return _ranks(one, key, room)[0]


@kernel
def wild_key(cards, limit):
    """Strength of a complete row whose jokers are the best cards that keep it at or below `limit`; -1 if none do."""
    naturals = cards & _DECK
    jokers = popcount(cards >> _52)
    if jokers == 0:
        key = row_key(naturals)
        return key if key <= limit else -1
    suited = naturals != np.uint64(0) and not (naturals & ~(_ONES << np.uint64(ctz(naturals) & 3)))
    best = np.int64(-1)
    for first in range(13):
        for second in range(first + 1 if jokers == 2 else 1):
            for same_suit in range(2 if suited or naturals == np.uint64(0) else 1):
                filled = _fill(naturals, first, same_suit)
                if jokers == 2:
                    filled = _fill(filled, second, same_suit)
                if popcount(filled) == popcount(naturals) + jokers:
                    key = row_key(filled)
                    if best < key <= limit:
                        best = key
    return best


@kernel
def _fill(cards, rank, same_suit):
    """Add a card of `rank` that is not there yet, of the row's own suit or of another; unchanged if there is none."""
    own = np.uint64(ctz(cards) & 3) if cards else np.uint64(0)
    for step in range(4):
        suit = (own + np.uint64(step if same_suit else 3 - step)) & _3
        card = _1 << (np.uint64(4 * rank) + suit)
        if not cards & card:
            return cards | card
        if same_suit:
            return cards
    return cards


@kernel
def best_key(cards):
    """Strength of a row, complete or not, whose jokers are the best cards that are not in it."""
    return wild_key(cards, NO_LIMIT) if cards >> _52 else row_key(cards)


@kernel
def key_at_most(cards, best, limit):
    """The key of a row that may not beat `limit`, from its best key: jokers step down; -1 if it stays too strong."""
    if best <= limit:
        return best
    return wild_key(cards, limit) if cards >> _52 else np.int64(-1)


@kernel
def board_keys(top, middle, bottom):
    """Keys of the three complete rows; jokers are the best cards that keep the board legal, from the bottom up."""
    if not (top | middle | bottom) >> _52:
        return row_key(top), row_key(middle), row_key(bottom)
    key2 = wild_key(bottom, NO_LIMIT)
    key1 = wild_key(middle, key2)
    if key1 < 0:
        return wild_key(top, NO_LIMIT), wild_key(middle, NO_LIMIT), key2
    key0 = wild_key(top, key1)
    return (key0 if key0 >= 0 else wild_key(top, NO_LIMIT)), key1, key2


@kernel
def is_foul(top_key, middle_key, bottom_key):
    """Whether a complete board breaks bottom >= middle >= top."""
    return top_key > middle_key or middle_key > bottom_key


@kernel
def row_royalty(row, key):
    """Royalty of one complete row."""
    category = key >> 20
    lead = ((key >> 16) & 15) - 2
    if row == TOP:
        if category == TRIPS:
            return 10 + lead
        return max(0, lead - 3) if category == PAIR else 0
    if category == STRAIGHT_FLUSH and lead == 12:
        category = 9
    return _ROYALTY[row, category]


@kernel
def royalties(top_key, middle_key, bottom_key):
    """Royalties of a complete legal board."""
    return row_royalty(TOP, top_key) + row_royalty(MIDDLE, middle_key) + row_royalty(BOTTOM, bottom_key)


@kernel
def fantasyland_entry(top_key, progressive):
    """Cards of the next hand in fantasyland that a legal board with this top earns; 0 for none."""
    category, lead = top_key >> 20, ((top_key >> 16) & 15) - 2
    if category == TRIPS:
        return 17 if progressive else 14
    if category == PAIR and lead >= 10:
        return 14 + (lead - 10 if progressive else 0)
    return 0


@kernel
def fantasyland_stay(top_key, middle_key, bottom_key, full_house_stays):
    """Whether a legal board set in fantasyland stays there."""
    if top_key >> 20 == TRIPS or bottom_key >> 20 >= QUADS:
        return True
    return full_house_stays and middle_key >> 20 >= FULL


@kernel
def pair_score(keys, foul, royalty, a, b):
    """Points that seat `a` takes from seat `b`: rows, scoop and royalties, or what a foul pays."""
    if foul[a]:
        return 0 if foul[b] else -(6 + royalty[b])
    if foul[b]:
        return 6 + royalty[a]
    rows = 0
    for row in range(3):
        rows += (keys[a, row] > keys[b, row]) - (keys[a, row] < keys[b, row])
    scoop = 3 if rows == 3 else (-3 if rows == -3 else 0)
    return rows + scoop + royalty[a] - royalty[b]
