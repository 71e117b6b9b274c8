"""Every legal placement, described by the board it leads to.

A board after a placement is the sum of three rows, and each row is one of few: the hand's five cards give at most 32
subsets a row, against 232 placements. So the encoder describes **parts** (a row after it takes some of the hand) once,
what all options **share** (opponents, unseen cards, street) once, and an option is just the three parts it puts
together, plus one that says whether the board is now certain to foul.

A description is a list of binary features; a feature is an index into the first layer's weights.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import ctz, kernel, popcount
from maple.games.ofc.encode import (
    FANTASYLAND,
    HAND,
    LEGAL_ACTIONS,
    LEGAL_COUNT,
    NEXT,
    NEXT_FANTASY,
    POSITION,
    SEATS,
    STREET,
    legal_set,
    meta,
    unseen,
)
from maple.games.ofc.evaluate import NO_LIMIT, best_key, key_at_most
from maple.games.ofc.rules import FIRST_STREET_ACTIONS, SINGLE_CARD, free_places

__all__ = [
    "FEATURES",
    "MAX_PARTS",
    "OPTION_PARTS",
    "PART_WIDTH",
    "SHARED_WIDTH",
    "STATE_WIDTH",
    "count_options",
    "describe",
    "describe_choice",
    "describe_state",
]

OPTION_PARTS = 4  # three rows and the foul flag
MAX_PARTS = 3 * 32 + 2
PART_WIDTH = 12
SHARED_WIDTH = 72
STATE_WIDTH = SHARED_WIDTH + 3 * PART_WIDTH + 5

# Features of one of my rows.
_RANKS = 0  # 13 ranks × 10: how many in the row (1 to 4) and how many unseen
_FREE = 130  # free places
_FLUSH = 136  # one suit so far: cards of it × unseen of it; the last is "no flush any more"
_STRAIGHT = _FLUSH + 71  # straight still possible: cards × scarcest missing rank; the last is "no straight any more"
_MADE = _STRAIGHT + 26  # category of what is there
_STRENGTH = _MADE + 9  # strength of a complete row on a scale common to all rows
MY_ROW = _STRENGTH + 18  # as many as _SCALE has
# Features of an opponent's row.
THEIR_ROW = 52 + 6 + 6 + 9
# Features of the decision.
_THEIRS = 3 * MY_ROW
_UNSEEN_RANK = _THEIRS + 6 * THEIR_ROW
_UNSEEN_SUIT = _UNSEEN_RANK + 13 * 5
_STREET = _UNSEEN_SUIT + 4 * 14
_POSITION = _STREET + 9
_FANTASY = _POSITION + 3
_RULE = _FANTASY + 2 * 5
_SEATS = _RULE + 3
_FOUL = _SEATS + 2
_HAND = _FOUL + 2
_JOKERS = _HAND + 54  # jokers in a row, one or two: my three rows, then the opponents' six
FEATURES = _JOKERS + 9 * 2

_1 = np.uint64(1)
_52 = np.uint64(52)
_DECK = np.uint64((1 << 52) - 1)
_ONES = np.uint64(0x1111111111111)
_WINDOWS = np.array([sum(1 << 4 * ((low + i) % 13) for i in range(5)) for low in range(-1, 9)], dtype=np.uint64)
_COUNT_BASE = np.array([0, 0, 4, 7, 9], dtype=np.int64)  # (count, unseen) packed: 4 + 3 + 2 + 1 pairs
_SCALE = np.array(
    [0]
    + [(1 << 20) | (lead << 16) for lead in (2, 6, 10, 12, 13, 14)]
    + [(2 << 20) | (lead << 16) for lead in (3, 9, 12)]
    + [(3 << 20) | (lead << 16) for lead in (2, 8, 12)]
    + [(4 << 20) | (lead << 16) for lead in (5, 10)]
    + [category << 20 for category in (5, 6, 7)],
    dtype=np.int64,
)


@kernel
def _suit_of(cards):
    """The one suit of these cards, or -1."""
    suit = ctz(cards) & 3
    return -1 if cards & ~(_ONES << np.uint64(suit)) else suit


@kernel
def _scarcest_for_straight(ranks, rest):
    """The best window's scarcest missing rank, by unseen cards (0 to 4); -1 if no window holds these ranks."""
    best = -1
    for window in _WINDOWS:
        if ranks & ~window:
            continue
        scarcest = 4
        missing = window & ~ranks
        while missing:
            place = np.uint64(ctz(missing))
            missing &= missing - _1
            scarcest = min(scarcest, popcount((rest >> place) & np.uint64(15)))
        best = max(best, scarcest)
    return best


@kernel
def _describe_jokers(place, cards, out, n):
    """How many jokers a row holds, if any. Writes out from n on; returns the new length."""
    jokers = popcount(cards >> _52)
    if jokers:
        out[n] = _JOKERS + 2 * place + jokers - 1
        n += 1
    return n


@kernel
def _describe_mine(row, cards, rest, out):
    """Features of my row. Writes out; returns how many."""
    base, ranks = row * MY_ROW, np.uint64(0)
    n = _describe_jokers(row, cards, out, 0)
    naturals = cards & _DECK
    left = naturals
    while left:
        rank = ctz(left) >> 2
        nibble = (cards >> np.uint64(4 * rank)) & np.uint64(15)
        left &= ~(nibble << np.uint64(4 * rank))
        ranks |= _1 << np.uint64(4 * rank)
        count = popcount(nibble)
        live = popcount((rest >> np.uint64(4 * rank)) & np.uint64(15))
        out[n] = base + _RANKS + 10 * rank + _COUNT_BASE[count] + min(live, 4 - count)
        n += 1
    placed, free = popcount(cards), free_places(cards, row)
    out[n] = base + _FREE + free
    n += 1
    key = best_key(cards)
    if naturals and row > 0:
        suit = _suit_of(naturals)
        live = popcount(rest & (_ONES << np.uint64(suit))) if suit >= 0 else 0
        out[n] = base + _FLUSH + ((placed - 1) * 14 + live if suit >= 0 else 70)
        scarcest = _scarcest_for_straight(ranks, rest) if popcount(ranks) == popcount(naturals) else -1
        out[n + 1] = base + _STRAIGHT + ((placed - 1) * 5 + scarcest if scarcest >= 0 else 25)
        n += 2
    out[n] = base + _MADE + (key >> 20)
    n += 1
    if free == 0:
        level = 0
        while level + 1 < _SCALE.shape[0] and key >= _SCALE[level + 1]:
            level += 1
        out[n] = base + _STRENGTH + level
        n += 1
    return n


@kernel
def _describe_theirs(place, cards, out, n):
    """Features of an opponent's row. Writes out from n on; returns the new length."""
    base, row = _THEIRS + place * THEIR_ROW, place % 3
    n = _describe_jokers(3 + place, cards, out, n)
    naturals = cards & _DECK
    left = naturals
    while left:
        rank = ctz(left) >> 2
        nibble = (cards >> np.uint64(4 * rank)) & np.uint64(15)
        left &= ~(nibble << np.uint64(4 * rank))
        out[n] = base + 4 * rank + popcount(nibble) - 1
        n += 1
    out[n] = base + 52 + free_places(cards, row)
    n += 1
    if cards:
        suit = _suit_of(naturals)
        out[n] = base + 58 + (popcount(cards) if suit >= 0 else 0)
        out[n + 1] = base + 64 + (best_key(cards) >> 20)
        n += 2
    return n


@kernel
def _describe_shared(view, rest, out):
    """Features that all options of a decision have in common. Writes out; returns how many."""
    n = 0
    for place in range(6):
        n = _describe_theirs(place, view[NEXT + place], out, n)
    for rank in range(13):
        out[n] = _UNSEEN_RANK + 5 * rank + popcount((rest >> np.uint64(4 * rank)) & np.uint64(15))
        n += 1
    for suit in range(4):
        out[n] = _UNSEEN_SUIT + 14 * suit + popcount(rest & (_ONES << np.uint64(suit)))
        n += 1
    out[n] = _STREET + meta(view, STREET)
    out[n + 1] = _POSITION + meta(view, POSITION)
    out[n + 2] = _RULE + meta(view, FANTASYLAND)
    out[n + 3] = _SEATS + meta(view, SEATS) - 2
    n += 4
    for other in range(2):
        cards = meta(view, NEXT_FANTASY + other)
        out[n] = _FANTASY + 5 * other + (max(14, cards) - 13 if cards else 0)  # regular OFC deals 13
        n += 1
    return n


@kernel
def subsets_of(action, cards):
    """Which of the hand's cards an action puts into each row, as bits over the sorted hand."""
    top, middle, bottom = 0, 0, 0
    code, discard = action, -1
    if action >= SINGLE_CARD:
        code = action - SINGLE_CARD
    elif action >= FIRST_STREET_ACTIONS:
        code = (action - FIRST_STREET_ACTIONS) % 9
        discard = (action - FIRST_STREET_ACTIONS) // 9
    for i in range(cards):
        if i != discard:
            row = code % 3
            code //= 3
            top |= (row == 0) << i
            middle |= (row == 1) << i
            bottom |= (row == 2) << i
    return top, middle, bottom


@kernel
def count_options(view, options, lo, hi):
    """How many options each of rows [lo, hi) has. Writes options."""
    for i in range(lo, hi):
        options[i] = LEGAL_COUNT[legal_set(view[i])]


@kernel
def _hand_bits(view, hand):
    """The hand's cards in ascending order, a word each. Writes hand; returns how many."""
    cards, left = 0, view[HAND]
    while left:
        hand[cards] = left & (~left + _1)
        left &= left - _1
        cards += 1
    return cards


@kernel
def _with_subset(cards, subset, hand):
    """A row after it takes a subset of the hand."""
    at = 0
    while subset:
        if subset & 1:
            cards |= hand[at]
        subset >>= 1
        at += 1
    return cards


@kernel
def _complete_key(row, cards):
    """The strength of a row that is complete, jokers at their best; -1 otherwise."""
    return best_key(cards) if free_places(cards, row) == 0 else np.int64(-1)


@kernel
def _certain_foul(top, middle, top_key, middle_key, bottom_key):
    """Whether two complete rows already stand in the wrong order, whatever their jokers stand for."""
    limit = bottom_key if bottom_key >= 0 else NO_LIMIT
    if middle_key >= 0:
        limit = key_at_most(middle, middle_key, limit)
    return 1 if limit < 0 or (top_key >= 0 and key_at_most(top, top_key, limit) < 0) else 0


@kernel
def describe(view, offset, shared, shared_length, part, part_length, option_part, action, lo, hi):
    """Describe the options of rows [lo, hi); row i has its parts from i * MAX_PARTS on. Writes all but view, offset."""
    known = np.empty((3, 32), np.int64)
    rows, keys = np.empty((3, 32), np.uint64), np.empty((3, 32), np.int64)
    hand = np.empty(5, np.uint64)
    for i in range(lo, hi):
        rest = unseen(view[i])
        shared_length[i] = _describe_shared(view[i], rest, shared[i])
        cards = _hand_bits(view[i], hand)
        base = i * MAX_PARTS
        for foul in range(2):
            part[base + foul, 0], part_length[base + foul] = _FOUL + foul, 1
        parts = base + 2
        known[:] = -1
        legal = legal_set(view[i])
        for o in range(LEGAL_COUNT[legal]):
            n = offset[i] + o
            action[n] = LEGAL_ACTIONS[legal, o]
            subsets = subsets_of(np.int64(action[n]), cards)
            for row in range(3):
                subset = subsets[row]
                if known[row, subset] < 0:
                    after = _with_subset(view[i, row], subset, hand)
                    known[row, subset], rows[row, subset], keys[row, subset] = parts, after, _complete_key(row, after)
                    part_length[parts] = _describe_mine(row, after, rest, part[parts])
                    parts += 1
                option_part[n, row] = known[row, subset]
            t, m, b = subsets
            option_part[n, 3] = base + _certain_foul(rows[0, t], rows[1, m], keys[0, t], keys[1, m], keys[2, b])


@kernel
def describe_choice(view, action, feature, length, lo, hi):
    """All features of the one option taken in each of rows [lo, hi). Writes feature, length."""
    hand = np.empty(5, np.uint64)
    board, key = np.empty(3, np.uint64), np.empty(3, np.int64)
    for i in range(lo, hi):
        rest = unseen(view[i])
        n = _describe_shared(view[i], rest, feature[i])
        subsets = subsets_of(np.int64(action[i]), _hand_bits(view[i], hand))
        for row in range(3):
            board[row] = _with_subset(view[i, row], subsets[row], hand)
            key[row] = _complete_key(row, board[row])
            n += _describe_mine(row, board[row], rest, feature[i, n:])
        feature[i, n] = _FOUL + _certain_foul(board[0], board[1], key[0], key[1], key[2])
        length[i] = n + 1


@kernel
def describe_state(view, feature, length, lo, hi):
    """The decision before any option is taken: my rows as they stand and the hand. Writes feature, length."""
    for i in range(lo, hi):
        rest = unseen(view[i])
        n = _describe_shared(view[i], rest, feature[i])
        for row in range(3):
            n += _describe_mine(row, view[i, row], rest, feature[i, n:])
        left = view[i, HAND]
        while left:
            feature[i, n] = _HAND + ctz(left)
            left &= left - _1
            n += 1
        length[i] = n
