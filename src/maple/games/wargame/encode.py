"""Observation and mask of a view: globals, a row for each squad, and planes around the squad that decides.

All numbers are small bytes. Row i of the enemies is target slot i.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import ctz, kernel
from maple.games.wargame.book import MELEE, PROFILE, RANGED
from maple.games.wargame.combat import expected, save_bonus
from maple.games.wargame.content import HEIGHT, MAX_SQUADS, OBJECTIVES, WIDTH
from maple.games.wargame.ground import WAYS, controlled, distance, move_budget, near, seen_from
from maple.games.wargame.state import ACTIONS, MOVE_PHASE, NOBODY, REACH, WINDOW
from maple.games.wargame.view import options_of, rounds_of

__all__ = ["GLOBALS", "OBSERVATION", "PLANES", "ROW", "actor_cell", "observe"]

_GOAL = 9  # numbers of an objective
GLOBALS = 24 + _GOAL * OBJECTIVES
_FLAGS = 6
ROW = 2 + PROFILE + 2 + _FLAGS + 4 + 8
PLANES = 6
_AREA = WINDOW * WINDOW
OBSERVATION = GLOBALS + 2 * MAX_SQUADS * ROW + PLANES * _AREA
_CENTRE = (HEIGHT // 2) * WIDTH + WIDTH // 2 - 1


@kernel
def actor_cell(t):
    """Where the squad that decides stands; the middle of the board where none does."""
    return np.int64(t.cell[t.side, t.slot]) if t.slot != NOBODY else _CENTRE


@kernel
def _offset(cell, here, out):
    """Where a cell lies, in columns and rows to each side of another. Writes out (4,)."""
    dy, dx = cell // WIDTH - here // WIDTH, cell % WIDTH - here % WIDTH
    out[0], out[1], out[2], out[3] = max(0, dx), max(0, -dx), max(0, dy), max(0, -dy)


@kernel
def _globals(t, book, rounds, here, out):
    """Round, phase, scores, tactics, objectives. Writes out."""
    out[0], out[1] = t.round, rounds - t.round
    out[2 + t.phase] = 1
    out[7], out[8] = t.turn == 0, t.first == 0
    for side in range(2):
        out[9 + side] = min(20, t.vp[side] // 3)
        out[11 + side] = max(0, min(12, (t.vp[side] - t.vp[1 - side]) // 2))
        out[13 + side] = t.command[side]
    out[15], out[16] = t.boost == 1, t.boost == 2
    for tactic in range(4):
        out[17 + tactic] = t.tactics[0] >> tactic & 1
    out[21] = min(10, 40 // book.points_per_vp[t.mission])
    out[22], out[23] = t.squads[0], t.squads[1]
    mine, theirs = controlled(t, book)
    for objective in range(OBJECTIVES):
        at = 24 + _GOAL * objective
        vp, opens = book.vp[t.mission, objective], book.opens[t.mission, objective]
        if vp:
            out[at], out[at + 1], out[at + 2] = vp, t.round >= opens, max(0, np.int64(opens) - t.round)
            out[at + 3], out[at + 4] = mine >> objective & 1, theirs >> objective & 1
            _offset(np.int64(book.place[t.board, objective]), here, out[at + 5 :])


@kernel
def _harm(t, book, kind, side, slot, foe):
    """Wounds that an attack is expected to cause, as a small number."""
    return min(12, np.int64(expected(t, book, kind, side, slot, foe, save_bonus(t, book, kind, side, slot, foe)) + 0.5))


@kernel
def _squad(t, book, side, slot, here, out):
    """One squad: what it is, what is left of it, where it stands, what it and the deciding squad do to each other."""
    cell = np.int64(t.cell[side, slot])
    if cell < 0:
        return
    profile = book.small[t.unit[side, slot]]
    out[0], out[1] = 1, side == t.side and slot == t.slot
    for k in range(PROFILE):
        out[2 + k] = profile[k]
    out[2 + PROFILE], out[3 + PROFILE] = t.models[side, slot], t.wounds[side, slot]
    at = 4 + PROFILE
    for k in range(_FLAGS):
        out[at + k] = t.flags[side, slot] >> k & 1
    at += _FLAGS
    _offset(cell, here, out[at:])
    at += 4
    out[at], out[at + 1] = t.engaged[side, slot] != 0, near(t, book, cell) != 0
    if t.slot != NOBODY:
        out[at + 2] = min(15, distance(here, cell) // 4)
        if side != t.side:
            seen, _ = seen_from(t, book, here, cell)
            out[at + 3] = seen
            out[at + 4] = _harm(t, book, RANGED, t.side, t.slot, slot) if t.targets[t.side, t.slot] >> slot & 1 else 0
            out[at + 5] = _harm(t, book, RANGED, side, slot, t.slot) if t.targets[side, slot] >> t.slot & 1 else 0
            out[at + 6] = _harm(t, book, MELEE, t.side, t.slot, slot)
            out[at + 7] = _harm(t, book, MELEE, side, slot, t.slot)


@kernel
def _planes(t, book, here, ways, out):
    """Blocking, cover, own, enemy, objective, inches to get there, each over the window. Writes out."""
    y0, x0 = here // WIDTH - REACH, here % WIDTH - REACH
    ground, used = book.ground[t.board], book.used[t.mission]
    for y in range(WINDOW):
        row = y * WINDOW
        for plane in range(2):
            source, first = ground[plane, y0 + REACH + y], plane * _AREA + row
            for x in range(WINDOW):
                out[first + x] = source[x0 + REACH + x]
        source, first = ground[2, y0 + REACH + y], 4 * _AREA + row
        for x in range(WINDOW):
            out[first + x] = (source[x0 + REACH + x] & used) != 0
    for side in range(2):
        for slot in range(t.squads[side]):
            cell = np.int64(t.cell[side, slot])
            dy, dx = cell // WIDTH - y0, cell % WIDTH - x0
            if cell >= 0 and 0 <= dy < WINDOW and 0 <= dx < WINDOW:
                out[(2 + side) * _AREA + dy * WINDOW + dx] = 1
    if t.phase == MOVE_PHASE and t.side == 0:
        plane = out[5 * _AREA :]
        budget = move_budget(t, book, np.int64(t.side), np.int64(t.slot))
        for inches in range(2, budget + 1):
            for y in range(max(0, -y0), min(WINDOW, HEIGHT - y0)):
                bits = ways[inches, y0 + y + 1] & ~ways[inches - 1, y0 + y + 1]
                while bits:
                    plane[y * WINDOW + ctz(bits) - x0] = inches
                    bits &= bits - np.uint64(1)


@kernel
def observe(view, book, scratch, observation, mask, lo, hi):
    """Observation and mask of rows [lo, hi). Writes scratch, observation, mask."""
    legal = np.empty(ACTIONS, np.int16)
    ways = np.empty(WAYS, np.uint64)
    t, known = scratch[0], book[0]
    for i in range(lo, hi):
        out = observation[i]
        out[:] = 0
        count = options_of(view[i], known, t, legal, ways)
        here = actor_cell(t)
        _globals(t, known, rounds_of(view[i]), here, out)
        for squad in range(2 * MAX_SQUADS):
            at = GLOBALS + squad * ROW
            _squad(t, known, squad // MAX_SQUADS, squad % MAX_SQUADS, here, out[at : at + ROW])
        _planes(t, known, here, ways, out[GLOBALS + 2 * MAX_SQUADS * ROW :])
        mask[i, :] = False
        for k in range(count):
            mask[i, legal[k]] = True
