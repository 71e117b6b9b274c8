"""What a seat may know: the view, and from it the observation and the mask.

A view is the seat's whole information in twelve words; observation, mask and options are functions of it. Opponents'
discards and fantasyland boards never enter a view, so nothing hidden can leak into what is made from one.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel, popcount
from maple.core.spec import EntityGroup
from maple.games.ofc.rules import (
    FIRST_STREET_ACTIONS,
    PLAYING,
    SIGNALS,
    SINGLE_CARD,
    TRUNCATED,
    advance,
    begin_game,
    deal_hand,
    deal_number,
    draw,
    free_places,
    seat_in_turn,
)

__all__ = [
    "LEGAL_ACTIONS",
    "LEGAL_COUNT",
    "LEGAL_MASK",
    "VIEW_WORDS",
    "entities",
    "observation_size",
    "observe",
    "observe_with_jokers",
    "play",
    "views",
]

# Words of a view. Rows come in the order top, middle, bottom; "next" acts after me, "previous" before me.
MINE, NEXT, PREVIOUS, HAND, DISCARDS, META = 0, 3, 6, 9, 10, 11
VIEW_WORDS = 12
# Bytes of the META word.
STREET, POSITION, SEATS, NEXT_FANTASY, PREVIOUS_FANTASY, FANTASYLAND, PINEAPPLE, JOKERS = range(8)

ACTIONS = 273
_1 = np.uint64(1)
_8 = np.uint64(8)
_15 = np.uint64(15)
_255 = np.uint64(255)
_QUEENS, _KINGS, _ACES = np.uint64(15 << 40), np.uint64(15 << 44), np.uint64(15 << 48)
_SPREAD = np.array([sum(((n >> s) & 1) << (8 * s) for s in range(4)) for n in range(16)], dtype=np.uint32)
FIRST, LATER, SINGLE = 0, 1, 2  # kinds of street


def _rows_of(kind: int, action: int) -> list[int]:
    """The rows that an action of this kind of street fills; empty if the index belongs to another kind."""
    if kind == FIRST and action < FIRST_STREET_ACTIONS:
        return [action // 3**i % 3 for i in range(5)]
    if kind == LATER and FIRST_STREET_ACTIONS <= action < SINGLE_CARD:
        return [(action - FIRST_STREET_ACTIONS) % 3, (action - FIRST_STREET_ACTIONS) // 3 % 3]
    return [action - SINGLE_CARD] if kind == SINGLE and action >= SINGLE_CARD else []


def _legal_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each (kind of street, free places per row): the mask, the legal actions in order, their number."""
    mask = np.zeros((3, 4, 6, 6, ACTIONS), np.uint8)
    for kind in range(3):
        for action in range(ACTIONS):
            rows = _rows_of(kind, action)
            if rows:
                top, middle, bottom = (rows.count(row) for row in range(3))
                mask[kind, top:, middle:, bottom:, action] = 1
    masks = mask.reshape(-1, ACTIONS)
    count = masks.sum(axis=1).astype(np.int64)
    actions = np.zeros((len(masks), FIRST_STREET_ACTIONS), np.int16)
    for i, row in enumerate(masks):
        actions[i, : count[i]] = np.flatnonzero(row)
    return masks, actions, count


LEGAL_MASK, LEGAL_ACTIONS, LEGAL_COUNT = _legal_tables()


@kernel
def meta(view, field):
    """One byte of a view's META word."""
    return np.int64((view[META] >> (_8 * np.uint64(field))) & _255)


@kernel
def legal_set(view):
    """Index into the LEGAL tables: which actions are open to this view."""
    cards = popcount(view[HAND])
    kind = FIRST if cards == 5 else (LATER if cards == 3 else SINGLE)
    top, middle, bottom = free_places(view[0], 0), free_places(view[1], 1), free_places(view[2], 2)
    return ((kind * 4 + top) * 6 + middle) * 6 + bottom


@kernel
def unseen(view):
    """Cards that the seat has not seen: the deck, opponents' discards and hidden boards."""
    seen = np.uint64(0)
    for word in range(META):
        seen |= view[word]
    return ((_1 << np.uint64(52 + meta(view, JOKERS))) - _1) & ~seen


@kernel
def write_view(t, rules, seat, view):
    """What `seat` may know at this table. Writes view."""
    seats = rules.seats
    words = np.uint64(0)
    for other in range(3):
        at = (seat + other) % seats
        hidden = other >= seats or (other > 0 and t.fantasy[at] > 0)
        for row in range(3):
            view[3 * other + row] = np.uint64(0) if hidden else t.board[at, row]
        if 0 < other < seats:
            words |= np.uint64(t.fantasy[at]) << np.uint64(8 * (NEXT_FANTASY + other - 1))
    acting = seat == seat_in_turn(t, seats)
    view[HAND] = t.hand if acting else np.uint64(0)
    view[DISCARDS] = t.discards[seat]
    position = (seat - np.int64(t.button) - 1) % seats
    words |= np.uint64(t.street) | np.uint64(position) << _8 | np.uint64(seats) << np.uint64(16)
    words |= np.uint64(rules.fantasyland) << np.uint64(8 * FANTASYLAND)
    words |= np.uint64(rules.pineapple) << np.uint64(8 * PINEAPPLE)
    view[META] = words | np.uint64(rules.jokers) << np.uint64(8 * JOKERS)


@kernel
def views(tables, rules, seat, reward, game, decision, view, lo, hi):
    """The waiting decision of each of tables [lo, hi). Writes seat, reward, game, decision, view."""
    for i in range(lo, hi):
        t = tables[i]
        who = seat_in_turn(t, rules[0].seats)
        seat[i], game[i], decision[i] = who, t.game, t.decision[who]
        for signal in range(SIGNALS):
            reward[i, signal] = t.reward[who, signal]
        write_view(t, rules[0], who, view[i])


@kernel
def _look_ahead(t, rules, seed, last_view):
    """Where a session is cut off: each seat's first decision in the hand that does not come. Writes t, last_view.

    A seat that would set that hand in fantasyland has nothing to decide; its view is all zeros.
    """
    t.button = (t.button + 1) % rules.seats
    deal_hand(t, rules, seed)
    for position in range(rules.seats):
        t.position = position
        seat = seat_in_turn(t, rules.seats)
        if t.fantasy[seat]:
            last_view[seat] = np.uint64(0)
        else:
            t.hand = draw(t, 5)
            write_view(t, rules, seat, last_view[seat])


@kernel
def play(tables, rules, seed, first_table, tables_per_deal, action, ended, last_view, lo, hi):
    """Play one action at each of tables [lo, hi); finished games start anew. Writes tables, ended, last_view."""
    for i in range(lo, hi):
        t = tables[i]
        advance(t, rules[0], seed, action[i], ended[i])
        if ended[i].how == PLAYING:
            continue
        if ended[i].how == TRUNCATED:
            _look_ahead(t, rules[0], seed, last_view[i])
        game = t.game + 1
        deal = deal_number(first_table + i, game, tables_per_deal)
        begin_game(t, rules[0], seed, deal, game, game % rules[0].seats)


def observation_size(jokers: int, pineapple: bool) -> int:
    """Bytes of an observation: twelve planes of the deck and the scalars."""
    return 12 * (52 + jokers) + (20 if pineapple else 24)


def entities(jokers: int, pineapple: bool) -> tuple[EntityGroup, ...]:
    """What the planes show: rows of cards, and cards in none. The three actions of a single card are about my rows."""
    cards = 52 + jokers
    mine = () if pineapple else (SINGLE_CARD,)
    return (
        EntityGroup("mine", 0, 3, cards, present=None, actions=mine, ordered=True),
        EntityGroup("theirs", NEXT * cards, 6, cards, present=None, ordered=True),
        EntityGroup("loose", HAND * cards, 3, cards, present=None, ordered=True),  # hand, discards, unseen
    )


@kernel
def _write_scalars(view, rest, out):
    """Street, position, free places, fantasyland, live high cards. Writes out."""
    out[:] = 0
    streets = out.shape[0] - 15
    out[min(meta(view, STREET), streets - 1)] = 1
    out[streets + meta(view, POSITION)] = 1
    for row in range(3):
        out[streets + 3 + row] = free_places(view[row], row)
    out[streets + 6] = meta(view, NEXT_FANTASY)
    out[streets + 7] = meta(view, PREVIOUS_FANTASY)
    out[streets + 8] = popcount(rest & _QUEENS)
    out[streets + 9] = popcount(rest & _KINGS)
    out[streets + 10] = popcount(rest & _ACES)
    out[streets + 11 + meta(view, FANTASYLAND)] = 1
    out[streets + 14] = meta(view, SEATS)


@kernel
def _write_rest(view, rest, scalars, mask):
    """What follows the planes. Writes scalars, mask."""
    _write_scalars(view, rest, scalars)
    legal = LEGAL_MASK[legal_set(view)]
    for action in range(mask.shape[0]):
        mask[action] = legal[action]


@kernel
def observe(view, observation, quads, mask, lo, hi):
    """Planes, scalars and mask of rows [lo, hi); `quads` is observation by fours. Writes observation, quads, mask."""
    for i in range(lo, hi):
        rest = unseen(view[i])
        at = 0
        for plane in range(12):
            word = view[i, plane] if plane < META else rest
            for _ in range(13):  # a nibble is a rank: four bytes in one store
                quads[i, at] = _SPREAD[word & _15]
                word >>= np.uint64(4)
                at += 1
        _write_rest(view[i], rest, observation[i, 12 * 52 :], mask[i])


@kernel
def observe_with_jokers(view, observation, mask, lo, hi):
    """The same over 54 cards. Writes observation, mask."""
    for i in range(lo, hi):
        rest = unseen(view[i])
        for plane in range(12):
            word = view[i, plane] if plane < META else rest
            for card in range(54):
                observation[i, plane * 54 + card] = (word >> np.uint64(card)) & _1
        _write_rest(view[i], rest, observation[i, 12 * 54 :], mask[i])
