"""The opponents in the box: pure functions of a view and of a random key."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import ctz, kernel, popcount
from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.ofc.encode import HAND, LEGAL_ACTIONS, LEGAL_COUNT, SEATS, legal_set, meta, unseen
from maple.games.ofc.evaluate import best_key, board_keys, is_foul, key_at_most, row_royalty, royalties
from maple.games.ofc.rules import free_places, place_cards

__all__ = ["play_random", "play_rollout", "play_safe"]

_BOT = int(Purpose.BOT)
_1 = np.uint64(1)
_DECK = np.uint64((1 << 52) - 1)
_CLUBS = np.uint64(0x1111111111111)
_CATEGORY = 1 << 20  # a key in these units: whole numbers are categories, the ranks are its fraction
_CERTAIN_FOUL = 100.0
_FIRST_STREET_SAMPLES, _LATER_SAMPLES = 64, 192


@kernel
def play_random(view, seed, table, game, seat, decision, action, lo, hi):
    """Any legal placement. Writes action."""
    for i in range(lo, hi):
        legal = legal_set(view[i])
        draw = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        action[i] = LEGAL_ACTIONS[legal, bounded(draw, LEGAL_COUNT[legal])]


@kernel
def _safety(board):
    """What the rule player likes: a strong bottom or a flush draw there, rows in order, the middle filled early."""
    top = best_key(board[0]) / _CATEGORY
    middle = best_key(board[1]) / _CATEGORY
    bottom = best_key(board[2]) / _CATEGORY
    worth = 0.3 * top + 0.3 * middle + bottom - 0.05 * free_places(board[1], 1)
    worth -= 5.0 * (max(0.0, top - middle) + max(0.0, middle - bottom))
    if (top > middle and free_places(board[1], 1) == 0) or (middle > bottom and free_places(board[2], 2) == 0):
        worth -= _CERTAIN_FOUL
    naturals = board[2] & _DECK
    one_suit = not (naturals & ~(_CLUBS << np.uint64(ctz(naturals) & 3)))
    return worth + (2.0 * max(0, popcount(board[2]) - 2) if one_suit else 0.0)


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
def _distinct_rows(view, legal, row, row_count, which):
    """The rows that the options lead to: option o has row[r, which[o, r]]. Writes row, row_count, which."""
    board, discards = np.empty(3, np.uint64), np.empty(1, np.uint64)
    row_count[:] = 0
    for option in range(LEGAL_COUNT[legal]):
        board[:] = view[:3]
        place_cards(board, discards, view[HAND], np.int64(LEGAL_ACTIONS[legal, option]))
        for r in range(3):
            at = 0
            while at < row_count[r] and row[r, at] != board[r]:
                at += 1
            row[r, at], which[option, r] = board[r], at
            row_count[r] = max(row_count[r], at + 1)


@kernel
def _draw_unseen(deck, cards, count, state):
    """Bring `count` random cards to the front of `deck`, which has `cards`; returns the stream. Writes deck."""
    for i in range(count):
        state = stream_next(state)
        j = i + bounded(scramble(state), cards - i)
        deck[i], deck[j] = deck[j], deck[i]
    return state


@kernel
def _places_left(view):
    """Free places on all boards, mine and the other seats'."""
    places = 0
    for word in range(3 * meta(view, SEATS)):
        places += free_places(view[word], word % 3)
    return places


@kernel
def _filled(cards, row, deck, cursor):
    """A row completed with the cards of `deck` from `cursor` on."""
    for i in range(free_places(cards, row)):
        cards |= _1 << np.uint64(deck[cursor + i])
    return cards


@kernel
def _complete_others(view, deck, keys, foul):
    """Complete the other seats' boards from the front of `deck`. Writes keys, foul.

    Returns the cards used, the points that a foul of mine makes, and those that a legal board makes before its rows.
    """
    cursor, foul_points, legal_points = 0, 0, 0
    board = np.empty(3, np.uint64)
    for other in range(1, meta(view, SEATS)):
        for r in range(3):
            board[r] = _filled(view[3 * other + r], r, deck, cursor)
            cursor += free_places(view[3 * other + r], r)
        top, middle, bottom = board_keys(board[0], board[1], board[2])
        keys[other, 0], keys[other, 1], keys[other, 2] = top, middle, bottom
        foul[other] = is_foul(top, middle, bottom)
        if foul[other]:
            legal_points += 6
        else:
            foul_points -= 6 + royalties(top, middle, bottom)
            legal_points -= royalties(top, middle, bottom)
    return cursor, foul_points, legal_points


@kernel
def _row_points(view, r, strength, keys, foul):
    """Points that my row makes of all seats by itself, and the seats that it beats and loses to, as bits."""
    seats, won, lost = meta(view, SEATS), 0, 0
    points = (seats - 1) * row_royalty(r, strength)
    for other in range(1, seats):
        if not foul[other]:
            won |= (strength > keys[other, r]) << other
            lost |= (strength < keys[other, r]) << other
            points += (strength > keys[other, r]) - (strength < keys[other, r])
    return points, won, lost


@kernel
def _scoops(won, lost):
    """Points for the seats that all three rows beat or lose to."""
    return 3 * (popcount(np.uint64(won)) - popcount(np.uint64(lost)))


@kernel
def _score_options(view, options, row, row_count, which, deck, total):
    """Complete all boards with the cards of `deck` and add up each option's points. Writes total."""
    full, strength = np.empty((3, 32), np.uint64), np.empty((3, 32), np.int64)
    points, won, lost = np.empty((3, 32), np.int64), np.empty((3, 32), np.int64), np.empty((3, 32), np.int64)
    keys, foul = np.empty((3, 3), np.int64), np.empty(3, np.bool_)
    cursor, foul_points, legal_points = _complete_others(view, deck, keys, foul)
    for r in range(3):
        for at in range(row_count[r]):
            full[r, at] = _filled(row[r, at], r, deck, cursor)
            strength[r, at] = best_key(full[r, at])
            points[r, at], won[r, at], lost[r, at] = _row_points(view, r, strength[r, at], keys, foul)
        cursor += free_places(view[r], r)
    for option in range(options):
        t, m, b = which[option, 0], which[option, 1], which[option, 2]
        middle = key_at_most(full[1, m], strength[1, m], strength[2, b])
        top = key_at_most(full[0, t], strength[0, t], middle)
        if middle < 0 or top < 0:
            total[option] += foul_points
            continue
        m_points, m_won, m_lost = points[1, m], won[1, m], lost[1, m]
        t_points, t_won, t_lost = points[0, t], won[0, t], lost[0, t]
        if middle < strength[1, m]:
            m_points, m_won, m_lost = _row_points(view, 1, middle, keys, foul)
        if top < strength[0, t]:
            t_points, t_won, t_lost = _row_points(view, 0, top, keys, foul)
        scoops = _scoops(t_won & m_won & won[2, b], t_lost & m_lost & lost[2, b])
        total[option] += legal_points + t_points + m_points + points[2, b] + scoops


@kernel
def play_rollout(view, seed, table, game, seat, decision, action, lo, hi):
    """Flat Monte Carlo: the option that scores best when all boards are filled at random. Writes action.

    Each of my rows has its own cards of a sample, so a row is scored once for all options that share it.
    """
    deck, total = np.empty(54, np.uint8), np.empty(243, np.int64)
    row, row_count, which = np.empty((3, 32), np.uint64), np.empty(3, np.int64), np.empty((243, 3), np.int64)
    for i in range(lo, hi):
        legal = legal_set(view[i])
        options, cards, rest = LEGAL_COUNT[legal], 0, unseen(view[i])
        while rest:
            deck[cards] = ctz(rest)
            rest &= rest - _1
            cards += 1
        _distinct_rows(view[i], legal, row, row_count, which)
        total[:] = 0
        state = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        for _ in range(_FIRST_STREET_SAMPLES if options > 27 else _LATER_SAMPLES):
            state = _draw_unseen(deck, cards, _places_left(view[i]), state)
            _score_options(view[i], options, row, row_count, which, deck, total)
        action[i] = LEGAL_ACTIONS[legal, np.argmax(total[:options])]
