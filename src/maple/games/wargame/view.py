"""What a seat may know: all but the dice to come, in twenty words, as that seat looks at the board.

A view shows the seat's own squads first and the board turned so that it deploys on the left. Maps are point-symmetric,
so both seats see the same game, and what is read back from a view is a table on which the seat is side 0.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.wargame.content import CELLS, MAX_SQUADS
from maple.games.wargame.legal import legal_actions
from maple.games.wargame.rules import PLAYING, TRUNCATED, advance, begin_game
from maple.games.wargame.setup import deal_number
from maple.games.wargame.state import HOLD

__all__ = ["VIEW_WORDS", "is_acting", "options_of", "play", "read_view", "rounds_of", "start", "views", "write_view"]

# Words of a view: a squad each, mine and theirs; where the game stands; both sides' tactics; both sides' scores.
COURSE, SIDES, SCORES, LIMITS = 2 * MAX_SQUADS, 2 * MAX_SQUADS + 1, 2 * MAX_SQUADS + 2, 2 * MAX_SQUADS + 3
VIEW_WORDS = 2 * MAX_SQUADS + 4
_255 = np.uint64(255)
_GONE = 0xFFFF


@kernel
def _pack(a, b, c, d, e, f, g, h):
    """Eight bytes as a word."""
    low = np.uint64(a) | np.uint64(b) << np.uint64(8) | np.uint64(c) << np.uint64(16) | np.uint64(d) << np.uint64(24)
    high = np.uint64(e) | np.uint64(f) << np.uint64(8) | np.uint64(g) << np.uint64(16) | np.uint64(h) << np.uint64(24)
    return low | high << np.uint64(32)


@kernel
def _byte(word, number):
    return np.int64((word >> np.uint64(8 * number)) & _255)


@kernel
def _short(word, number):
    return np.int64((word >> np.uint64(16 * number)) & np.uint64(0xFFFF))


@kernel
def write_view(t, rules, seat, view):
    """What `seat` may know at this table. Writes view."""
    other = 1 - seat
    for side in range(2):
        who = seat if side == 0 else other
        for slot in range(MAX_SQUADS):
            there = np.int64(t.cell[who, slot])
            cell = _GONE if there < 0 else (CELLS - 1 - there if seat else there)
            view[side * MAX_SQUADS + slot] = _pack(
                t.unit[who, slot],
                t.models[who, slot],
                t.wounds[who, slot],
                t.flags[who, slot],
                cell & 255,
                cell >> 8,
                t.targets[who, slot],
                t.engaged[who, slot],
            )
    view[COURSE] = _pack(t.board, t.mission, t.round, t.phase, t.turn != seat, t.first != seat, t.side == seat, t.slot)
    view[SIDES] = _pack(
        t.command[seat],
        t.command[other],
        t.tactics[seat],
        t.tactics[other],
        t.fighter != seat,
        t.boost,
        t.squads[seat],
        t.squads[other],
    )
    scores = np.uint64(t.vp[seat]) | np.uint64(t.vp[other]) << np.uint64(16)
    scores |= np.uint64(t.destroyed[seat]) << np.uint64(32) | np.uint64(t.destroyed[other]) << np.uint64(48)
    view[SCORES] = scores
    view[LIMITS] = np.uint64(rules.rounds) | np.uint64(min(255, t.kills[seat])) << np.uint64(8)
    view[LIMITS] |= np.uint64(min(255, t.kills[other])) << np.uint64(16)


@kernel
def rounds_of(view):
    """How many rounds the game has."""
    return _byte(view[LIMITS], 0)


@kernel
def is_acting(view):
    """Whether the seat of a view has to decide."""
    return _byte(view[COURSE], 6) != 0


@kernel
def read_view(view, t):
    """The table that a view shows, the seat being side 0. Writes t."""
    for side in range(2):
        for slot in range(MAX_SQUADS):
            word = view[side * MAX_SQUADS + slot]
            t.unit[side, slot], t.models[side, slot], t.wounds[side, slot] = (
                _byte(word, 0),
                _byte(word, 1),
                _byte(word, 2),
            )
            cell = _short(word, 2)
            t.flags[side, slot], t.cell[side, slot] = _byte(word, 3), -1 if cell == _GONE else cell
            t.targets[side, slot], t.engaged[side, slot] = _byte(word, 6), _byte(word, 7)
        t.stale[side] = 0
        t.vp[side], t.destroyed[side] = _short(view[SCORES], side), _short(view[SCORES], 2 + side)
        t.command[side], t.tactics[side] = _byte(view[SIDES], side), _byte(view[SIDES], 2 + side)
        t.squads[side] = _byte(view[SIDES], 6 + side)
        t.kills[side] = _byte(view[LIMITS], 1 + side)
    course = view[COURSE]
    t.board, t.mission, t.round, t.phase = _byte(course, 0), _byte(course, 1), _byte(course, 2), _byte(course, 3)
    t.turn, t.first, t.slot = _byte(course, 4), _byte(course, 5), _byte(course, 7)
    t.side = 0 if is_acting(view) else 1
    t.fighter, t.boost = _byte(view[SIDES], 4), _byte(view[SIDES], 5)


@kernel
def options_of(view, book, t, legal, ways):
    """The table that a view shows, and the seat's actions; returns how many. Writes t, legal, ways.

    A seat that waits while a game is cut off has one, HOLD.
    """
    read_view(view, t)
    if not is_acting(view):
        legal[0] = HOLD
        return 1
    return legal_actions(t, book, legal, ways)


@kernel
def start(tables, book, rules, seed, first_table, tables_per_deal, lo, hi):
    """Begin game 0 at tables [lo, hi). Writes tables."""
    for i in range(lo, hi):
        begin_game(tables[i], book[0], rules[0], seed, deal_number(first_table + i, 0, tables_per_deal), 0)


@kernel
def views(tables, rules, seat, reward, game, decision, view, lo, hi):
    """The waiting decision of each of tables [lo, hi). Writes seat, reward, game, decision, view."""
    for i in range(lo, hi):
        t = tables[i]
        who = np.int64(t.side)
        seat[i], game[i], decision[i], reward[i, 0] = who, t.game, t.decision[who], t.reward[who, 0]
        write_view(t, rules[0], who, view[i])


@kernel
def play(tables, book, rules, seed, first_table, tables_per_deal, action, ended, last_view, lo, hi):
    """Play one action at each of tables [lo, hi); finished games start anew. Writes tables, ended, last_view."""
    for i in range(lo, hi):
        t = tables[i]
        advance(t, book[0], rules[0], seed, action[i], ended[i])
        if ended[i].how == PLAYING:
            continue
        if ended[i].how == TRUNCATED:
            for seat in range(2):
                write_view(t, rules[0], seat, last_view[i, seat])
        game = t.game + 1
        begin_game(t, book[0], rules[0], seed, deal_number(first_table + i, game, tables_per_deal), game)
