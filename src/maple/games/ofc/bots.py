"""The opponents in the box: pure functions of a view and of a random key."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import ctz, kernel, popcount
from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.ofc.encode import HAND, LEGAL_ACTIONS, LEGAL_COUNT, legal_set, unseen
from maple.games.ofc.evaluate import board_keys, is_foul, pair_score, row_key, royalties
from maple.games.ofc.rules import ROW_SIZE, free_places, place_cards

__all__ = ["play_random", "play_rollout", "play_safe"]

_BOT = int(Purpose.BOT)
_1 = np.uint64(1)
_DECK = np.uint64((1 << 52) - 1)
_FIRST_STREET_SAMPLES, _LATER_SAMPLES = 64, 192


@kernel
def play_random(view, seed, table, game, seat, decision, action, lo, hi):
    """Any legal placement. Writes action."""
    for i in range(lo, hi):
        legal = legal_set(view[i])
        draw = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        action[i] = LEGAL_ACTIONS[legal, bounded(draw, LEGAL_COUNT[legal])]


@kernel
def _rank_sum(cards):
    total = 0
    while cards:
        total += ctz(cards) >> 2
        cards &= cards - _1
    return total


@kernel
def _safety(board):
    """How far a board is from a foul: rows in order first, then made hands and high cards low down."""
    worth = 0.0
    strength = np.empty(3, np.float64)
    for row in range(3):
        cards = board[row] & _DECK
        made = row_key(cards)
        category, lead = made >> 20, (made >> 16) & 15
        strength[row] = 14.0 * category + lead if cards else 0.0
        worth += (0.05 + 0.35 * row) * category * 14.0 + (0.1 * row - 0.15) * _rank_sum(cards)
    for row in range(2):
        gap = strength[row] - strength[row + 1]
        waiting = free_places(board[row + 1], row + 1)
        if gap > 0:
            worth -= 3.0 * gap / (1.0 + 0.5 * waiting) + (200.0 if waiting == 0 else 0.0)
    return worth


@kernel
def play_safe(view, seed, table, game, seat, decision, action, lo, hi):
    """A rule player that keeps its rows in order. Writes action."""
    board, discards = np.empty(3, np.uint64), np.empty(1, np.uint64)
    for i in range(lo, hi):
        legal, best = legal_set(view[i]), -1e9
        for option in range(LEGAL_COUNT[legal]):
            board[:] = view[i, :3]
            place_cards(board, discards, view[i, HAND], np.int64(LEGAL_ACTIONS[legal, option]))
            worth = _safety(board)
            if worth > best:
                best = worth
                action[i] = LEGAL_ACTIONS[legal, option]


@kernel
def _complete(board, deck, cursor):
    """Fill a board with the next cards of `deck`; returns where the deck then stands. Writes board."""
    for row in range(3):
        for _ in range(ROW_SIZE[row] - popcount(board[row])):
            board[row] |= _1 << np.uint64(deck[cursor])
            cursor += 1
    return cursor


@kernel
def _appraise(board, seat, keys, foul, royalty):
    """Keys, foul and royalties of a complete board. Writes keys, foul, royalty at `seat`."""
    top, middle, bottom = board_keys(board[0], board[1], board[2])
    keys[seat, 0], keys[seat, 1], keys[seat, 2] = top, middle, bottom
    foul[seat] = is_foul(top, middle, bottom)
    royalty[seat] = 0 if foul[seat] else royalties(top, middle, bottom)


@kernel
def play_rollout(view, seed, table, game, seat, decision, action, lo, hi):
    """Flat Monte Carlo: the option that scores best when all boards are filled at random. Writes action."""
    deck, total = np.empty(54, np.uint8), np.empty(243, np.float64)
    board, discards = np.empty(3, np.uint64), np.empty(1, np.uint64)
    keys, foul, royalty = np.empty((3, 3), np.int64), np.empty(3, np.bool_), np.empty(3, np.int64)
    for i in range(lo, hi):
        legal = legal_set(view[i])
        count, cards, rest = LEGAL_COUNT[legal], 0, unseen(view[i])
        while rest:
            deck[cards] = ctz(rest)
            rest &= rest - _1
            cards += 1
        total[:] = 0
        state = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        for _ in range(_FIRST_STREET_SAMPLES if count > 27 else _LATER_SAMPLES):
            for j in range(cards - 1):
                state = stream_next(state)
                swap = j + bounded(scramble(state), cards - j)
                deck[j], deck[swap] = deck[swap], deck[j]
            cursor = 0
            for other in (1, 2):
                board[:] = view[i, 3 * other : 3 * other + 3]
                cursor = _complete(board, deck, cursor)
                _appraise(board, other, keys, foul, royalty)
            for option in range(count):
                board[:] = view[i, :3]
                place_cards(board, discards, view[i, HAND], np.int64(LEGAL_ACTIONS[legal, option]))
                _complete(board, deck, cursor)
                _appraise(board, 0, keys, foul, royalty)
                total[option] += pair_score(keys, foul, royalty, 0, 1) + pair_score(keys, foul, royalty, 0, 2)
        action[i] = LEGAL_ACTIONS[legal, np.argmax(total[:count])]
