"""The game itself: dealing, placing, turns, showdowns and fantasyland sessions, for thousands of tables in one call.

A table is one record, so a batch of tables is one array: what the kernels play, what a checkpoint saves.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import ctz, kernel, popcount
from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.ofc.evaluate import (
    board_keys,
    fantasyland_entry,
    fantasyland_stay,
    is_foul,
    pair_score,
    royalties,
)
from maple.games.ofc.solver import solve

__all__ = [
    "ENDED",
    "FIRST_STREET_ACTIONS",
    "RULES",
    "SINGLE_CARD",
    "TABLE",
    "advance",
    "begin_game",
    "deal_hand",
    "draw",
    "free_places",
    "place_cards",
    "start",
]

MAX_SEATS = 3
SIGNALS = 2  # what a seat earns: the score, in units of the reward scale, and its fouls
FIRST_STREET_ACTIONS = 243  # base 3 over the sorted hand: the row of each of five cards
SINGLE_CARD = 270  # regular OFC's later streets: 270 + the row of the one card
ROW_SIZE = np.array([3, 5, 5], dtype=np.int64)
FANTASYLAND_OFF, FANTASYLAND_FIXED, FANTASYLAND_PROGRESSIVE = 0, 1, 2
PLAYING, TERMINATED, TRUNCATED = 0, 1, 2

_DEAL = int(Purpose.DEAL)
_1 = np.uint64(1)
_0 = np.uint64(0)

RULES = np.dtype(
    [
        ("seats", np.int64),
        ("pineapple", np.bool_),
        ("jokers", np.int64),
        ("fantasyland", np.int64),
        ("stay_full_house", np.bool_),
        ("stay_by_top", np.bool_),
        ("stay_value", np.float64),
        ("hand_cap", np.int64),
        ("reward_scale", np.float64),
    ],
    align=True,
)

TABLE = np.dtype(
    [
        ("deal", np.int64),  # with the hand number, the key of the deck
        ("game", np.int64),
        ("board", np.uint64, (MAX_SEATS, 3)),
        ("discards", np.uint64, (MAX_SEATS,)),
        ("hand", np.uint64),  # what the seat in turn has to place
        ("score", np.int32, (MAX_SEATS,)),  # points of this game so far
        ("reward", np.float32, (MAX_SEATS, SIGNALS)),  # score and fouls since the seat last acted
        ("decision", np.int16, (MAX_SEATS,)),  # how many decisions each seat has made in this game
        ("fouls", np.int16, (MAX_SEATS,)),
        ("royalty", np.int16, (MAX_SEATS,)),
        ("entries", np.int16, (MAX_SEATS,)),  # hands that earned fantasyland from outside
        ("stays", np.int16, (MAX_SEATS,)),
        ("fantasy_hands", np.int16, (MAX_SEATS,)),
        ("fantasy", np.int8, (MAX_SEATS,)),  # cards of this seat's fantasyland hand; 0 outside
        ("deck", np.uint8, (54,)),
        ("cursor", np.uint8),
        ("street", np.uint8),
        ("position", np.uint8),  # turns from the left of the button
        ("button", np.uint8),
        ("hands", np.uint8),  # hands begun in this game
    ],
    align=True,
)

ENDED = np.dtype(
    [
        ("how", np.int8),  # PLAYING while the game goes on
        ("hands", np.int16),
        ("winner", np.int8),  # the seat with the most points; -1 for a tie
        ("length", np.int32),
        ("reward", np.float32, (MAX_SEATS, SIGNALS)),
        ("score", np.int32, (MAX_SEATS,)),
        ("fouls", np.int16, (MAX_SEATS,)),
        ("royalty", np.int16, (MAX_SEATS,)),
        ("entries", np.int16, (MAX_SEATS,)),
        ("stays", np.int16, (MAX_SEATS,)),
        ("fantasy_hands", np.int16, (MAX_SEATS,)),
    ],
    align=True,
)


@kernel
def free_places(board_row, row):
    """How many cards still fit into this row."""
    return ROW_SIZE[row] - popcount(board_row)


@kernel
def seat_in_turn(t, seats):
    """The seat that has to act; the button acts last."""
    return (np.int64(t.button) + 1 + np.int64(t.position)) % seats


@kernel
def _shuffle(t, rules, seed, dead):
    """Fill the deck with the cards that are not in `dead`, in the order keyed by (deal, hand number)."""
    cards = 0
    for card in range(52 + rules.jokers):
        if not (dead >> np.uint64(card)) & _1:
            t.deck[cards] = card
            cards += 1
    state = key(seed, _DEAL, t.deal, 0, 0, t.hands, 0)
    for i in range(cards - 1):
        state = stream_next(state)
        j = i + bounded(scramble(state), cards - i)
        t.deck[i], t.deck[j] = t.deck[j], t.deck[i]
    t.cursor = 0


@kernel
def draw(t, count):
    """The next cards of the deck, as a set."""
    hand = _0
    for i in range(count):
        hand |= _1 << np.uint64(t.deck[t.cursor + i])
    t.cursor += count
    return hand


@kernel
def _set_fantasyland(t, rules, seat):
    """Deal a seat its whole fantasyland hand and set it, face down."""
    hand = draw(t, np.int64(t.fantasy[seat]))
    cards = np.empty(np.int64(t.fantasy[seat]), np.int64)
    for i in range(cards.shape[0]):
        cards[i] = ctz(hand)
        hand &= hand - _1
    top, middle, bottom = solve(cards, rules.stay_value, rules.stay_full_house)
    t.board[seat, 0], t.board[seat, 1], t.board[seat, 2] = top, middle, bottom


@kernel
def deal_hand(t, rules, seed):
    """Begin the next hand of the session."""
    for seat in range(MAX_SEATS):
        t.discards[seat] = _0
        for row in range(3):
            t.board[seat, row] = _0
    _shuffle(t, rules, seed, _0)
    t.hands += 1
    t.street, t.position = 0, 0
    for seat in range(rules.seats):
        if t.fantasy[seat]:
            t.fantasy_hands[seat] += 1
            _set_fantasyland(t, rules, seat)


@kernel
def _give_turn(t, rules):
    """Pass over seats that have nothing to decide, then deal to the one in turn. False when the hand is complete."""
    streets = 5 if rules.pineapple else 9
    while True:
        if t.position == rules.seats:
            t.position = 0
            t.street += 1
        if t.street == streets:
            return False
        if not t.fantasy[seat_in_turn(t, rules.seats)]:
            break
        t.position += 1
    t.hand = draw(t, 5 if t.street == 0 else (3 if rules.pineapple else 1))
    return True


@kernel
def place_cards(board, discards, hand, action):
    """Put the cards of a hand where `action` says. Writes board, discards[0]."""
    if action >= SINGLE_CARD:
        board[action - SINGLE_CARD] |= hand
    elif action < FIRST_STREET_ACTIONS:
        while hand:
            card = hand & (~hand + _1)
            board[action % 3] |= card
            action //= 3
            hand ^= card
    else:
        action -= FIRST_STREET_ACTIONS
        discard, rows = action // 9, action % 9
        for i in range(3):
            card = hand & (~hand + _1)
            hand ^= card
            if i == discard:
                discards[0] |= card
            else:
                board[rows % 3] |= card
                rows //= 3


@kernel
def _next_fantasyland(t, rules, seat, top, middle, bottom):
    """Cards of this seat's next hand in fantasyland after a legal board; 0 for none."""
    if rules.fantasyland == FANTASYLAND_OFF:
        return 0
    progressive = rules.fantasyland == FANTASYLAND_PROGRESSIVE and rules.pineapple
    cards = fantasyland_entry(top, progressive)
    if t.fantasy[seat]:
        if not fantasyland_stay(top, middle, bottom, rules.stay_full_house):
            return 0
        t.stays[seat] += 1
        cards = max(14, cards) if rules.stay_by_top else 14
    elif cards:
        t.entries[seat] += 1
    return cards if rules.pineapple else min(cards, 13)


@kernel
def _showdown(t, rules):
    """Score the hand and say who goes to fantasyland next."""
    keys = np.empty((MAX_SEATS, 3), np.int64)
    foul = np.zeros(MAX_SEATS, np.bool_)
    royalty = np.zeros(MAX_SEATS, np.int64)
    for seat in range(rules.seats):
        top, middle, bottom = board_keys(t.board[seat, 0], t.board[seat, 1], t.board[seat, 2])
        keys[seat, 0], keys[seat, 1], keys[seat, 2] = top, middle, bottom
        foul[seat] = is_foul(top, middle, bottom)
        cards = 0
        if foul[seat]:
            t.fouls[seat] += 1
            t.reward[seat, 1] += np.float32(1)
        else:
            royalty[seat] = royalties(top, middle, bottom)
            t.royalty[seat] += royalty[seat]
            cards = _next_fantasyland(t, rules, seat, top, middle, bottom)
        t.fantasy[seat] = cards
    for a in range(rules.seats):
        for b in range(a):
            points = pair_score(keys, foul, royalty, a, b)
            t.score[a] += points
            t.score[b] -= points
            t.reward[a, 0] += np.float32(points * rules.reward_scale)
            t.reward[b, 0] -= np.float32(points * rules.reward_scale)


@kernel
def _record_end(t, rules, how, end):
    """Copy the figures of a finished game. Writes end."""
    end.how, end.hands, end.length, end.winner = how, t.hands, 0, 0
    best, best_count = np.int64(t.score[0]), 0
    for seat in range(MAX_SEATS):
        end.reward[seat, 0], end.reward[seat, 1] = t.reward[seat, 0], t.reward[seat, 1]
        end.score[seat] = t.score[seat]
        end.fouls[seat], end.royalty[seat] = t.fouls[seat], t.royalty[seat]
        end.entries[seat], end.stays[seat] = t.entries[seat], t.stays[seat]
        end.fantasy_hands[seat] = t.fantasy_hands[seat]
        end.length += t.decision[seat]
        if seat < rules.seats and t.score[seat] > best:
            best, end.winner = np.int64(t.score[seat]), seat
    for seat in range(rules.seats):
        best_count += t.score[seat] == best
    if best_count > 1:
        end.winner = -1


@kernel
def begin_game(t, rules, seed, deal, game, button):
    """Clear a table and deal the first hand of a game."""
    t.deal, t.game, t.button, t.hands = deal, game, button, 0
    for seat in range(MAX_SEATS):
        t.score[seat], t.decision[seat], t.fantasy[seat] = 0, 0, 0
        t.reward[seat, 0], t.reward[seat, 1] = 0.0, 0.0
        t.fouls[seat], t.royalty[seat], t.entries[seat] = 0, 0, 0
        t.stays[seat], t.fantasy_hands[seat] = 0, 0
    deal_hand(t, rules, seed)
    _give_turn(t, rules)


@kernel
def advance(t, rules, seed, action, end):
    """Play one action of the seat in turn, up to the next decision or the end of the game. Writes t, end."""
    seat = seat_in_turn(t, rules.seats)
    place_cards(t.board[seat], t.discards[seat : seat + 1], t.hand, np.int64(action))
    t.decision[seat] += 1
    t.reward[seat, 0], t.reward[seat, 1] = 0.0, 0.0
    t.position += 1
    end.how = PLAYING
    while not _give_turn(t, rules):
        _showdown(t, rules)
        again = False
        for s in range(rules.seats):
            again = again or t.fantasy[s] > 0
        if not again or t.hands >= rules.hand_cap:
            _record_end(t, rules, TRUNCATED if again else TERMINATED, end)
            return
        t.button = (t.button + 1) % rules.seats
        deal_hand(t, rules, seed)


@kernel
def deal_number(table, game, tables_per_deal):
    """The deal of a game: its own in training; in duplicate play, `tables_per_deal` neighbours share one."""
    return (table // tables_per_deal) * (np.int64(1) << 32) + game


@kernel
def start(tables, rules, seed, first_table, tables_per_deal, lo, hi):
    """Begin game 0 at tables [lo, hi). Writes tables."""
    for i in range(lo, hi):
        deal = deal_number(first_table + i, 0, tables_per_deal)
        begin_game(tables[i], rules[0], seed, deal, 0, 0)
