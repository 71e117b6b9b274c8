"""Squads on the ground: how far apart they are, where one can go, whom it sees and touches."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import clz, ctz, kernel
from maple.games.wargame.book import CONTROL, MOVE, RANGE, RANGED, weapon_column
from maple.games.wargame.content import DIAGONAL, HEIGHT, OBJECTIVES, STRAIGHT, WIDTH
from maple.games.wargame.state import REACH, RUSHED, SHAKEN, WINDOW

__all__ = [
    "CHARGE_RANGE",
    "NO_WAY",
    "RUSH",
    "STOP",
    "WAYS",
    "cell_at",
    "charge_way",
    "control_sums",
    "controlled",
    "distance",
    "find_ways",
    "list_moves",
    "move_budget",
    "near",
    "refresh",
    "seen_from",
    "shootable",
    "touching",
    "within",
]

NO_WAY = 255
RUSH = 4  # inches that a rush adds
CHARGE_RANGE = 12  # inches
STOP, FREE = 17, 18  # rows of `ways`, after those of 0 to 16 inches
WAYS = (19, HEIGHT + 2)  # the shape of `ways`
_RANGED_RANGE = weapon_column(RANGED, RANGE)
_1 = np.uint64(1)
_63 = np.uint64(63)


@kernel
def distance(a, b):
    """Inches between two cells: two a straight step, three a diagonal one."""
    dy, dx = abs(a // WIDTH - b // WIDTH), abs(a % WIDTH - b % WIDTH)
    return 2 * max(dy, dx) + min(dy, dx)


@kernel
def touching(a, b):
    """Whether two cells are neighbours."""
    return max(abs(a // WIDTH - b // WIDTH), abs(a % WIDTH - b % WIDTH)) == 1


@kernel
def _bit(words, cell):
    return (words[cell >> 6] >> (np.uint64(cell) & _63)) & _1 != 0


@kernel
def seen_from(t, book, a, b):
    """Whether cell b can be seen from a, and 1 if a target there has cover."""
    return _bit(book.sight[t.board, a], b), 1 if _bit(book.shade[t.board, a], b) else 0


@kernel
def cell_at(side, own, index):
    """The cell at a place of the window, which must be on the board."""
    step = (index // WINDOW - REACH) * WIDTH + index % WINDOW - REACH
    return own - step if side else own + step


@kernel
def _around(bit):
    """A cell's bit and those of its neighbours in the row."""
    return bit | bit << _1 | bit >> _1


@kernel
def _lay_out(t, book, side, slot, closed, ways):
    """Where the way is closed, and where a squad may stop. Writes closed, ways[STOP], ways[FREE]."""
    closed[0] = closed[HEIGHT + 1] = ~np.uint64(0)
    stop, free = ways[STOP], ways[FREE]
    stop[:] = ~np.uint64(0)
    free[:] = ~np.uint64(0)
    for y in range(HEIGHT):
        closed[y + 1] = book.walls[t.board, y]
    for who in range(2):
        for other in range(t.squads[who]):
            cell = np.int64(t.cell[who, other])
            if cell < 0:
                continue
            row, bit = cell // WIDTH + 1, _1 << np.uint64(cell % WIDTH)
            if who == side:
                stop[row] &= ~bit  # its own cell too: staying is no move
                if other != slot:
                    free[row] &= ~bit
            else:
                closed[row] |= bit
                for beside in range(row - 1, row + 2):
                    stop[beside] &= ~_around(bit)


@kernel
def find_ways(t, book, side, slot, budget, ways):
    """Bits of the cells that a squad reaches within 0, 1 … `budget` inches, a row of the board each. Writes ways.

    A squad passes friends but not enemies, and not diagonally between two closed cells. ways[STOP] tells where a move
    may end, ways[FREE] where no friend stands. Rows are counted from 1: there is a border above and below.
    """
    closed = np.empty(HEIGHT + 2, np.uint64)
    _lay_out(t, book, side, slot, closed, ways)
    own = np.int64(t.cell[side, slot])
    at = own // WIDTH + 1
    radius = budget // STRAIGHT
    lo, hi = max(1, at - radius), min(HEIGHT, at + radius)
    ways[: budget + 1] = np.uint64(0)
    ways[0, at] = ways[1, at] = _1 << np.uint64(own % WIDTH)
    for inches in range(2, budget + 1):
        straight, diagonal = ways[inches - STRAIGHT], ways[max(0, inches - DIAGONAL)]
        for y in range(lo, hi + 1):
            into = straight[y] << _1 | straight[y] >> _1 | straight[y - 1] | straight[y + 1]
            if inches >= DIAGONAL:
                for source in range(y - 1, y + 2, 2):
                    walls = closed[source]
                    into |= diagonal[source] << _1 & ~(walls & closed[y] << _1)
                    into |= diagonal[source] >> _1 & ~(walls & closed[y] >> _1)
            ways[inches, y] = ways[inches - 1, y] | into & ~closed[y]


@kernel
def within(ways, inches, cell):
    """Whether a cell is reached within so many inches."""
    return ways[inches, cell // WIDTH + 1] >> np.uint64(cell % WIDTH) & _1 != 0


@kernel
def move_budget(t, book, side, slot):
    """Inches that a squad may go: a rush included, unless it is engaged."""
    inches = STRAIGHT * np.int64(book.profile[t.unit[side, slot], MOVE])
    return inches if t.engaged[side, slot] else inches + RUSH


@kernel
def list_moves(t, side, slot, budget, ways, legal):
    """The moves of a squad, in order; returns how many. Writes legal."""
    own, n = np.int64(t.cell[side, slot]), 0
    row0, column0 = own // WIDTH + 1, own % WIDTH
    radius = budget // STRAIGHT
    lo, hi = max(1, row0 - radius), min(HEIGHT, row0 + radius)
    for k in range(hi - lo + 1):
        y = hi - k if side else lo + k
        bits = ways[budget, y] & ways[STOP, y]
        while bits:
            if side:
                x = 63 - clz(bits)
                legal[n] = (row0 - y + REACH) * WINDOW + column0 - x + REACH
            else:
                x = ctz(bits)
                legal[n] = (y - row0 + REACH) * WINDOW + x - column0 + REACH
            bits &= ~(_1 << np.uint64(x))
            n += 1
    return n


@kernel
def charge_way(t, side, foe, ways):
    """Inches to the nearest free cell next to an enemy, and that cell; NO_WAY if there is none within range.

    `ways` goes as far as CHARGE_RANGE. Of equals, the first as that side looks at the board.
    """
    target = np.int64(t.cell[1 - side, foe])
    y, ring = target // WIDTH + 1, _around(_1 << np.uint64(target % WIDTH))
    for inches in range(2, CHARGE_RANGE + 1):
        for k in range(3):
            row = y + 1 - k if side else y - 1 + k
            if 1 <= row <= HEIGHT:
                bits = ways[inches, row] & ways[FREE, row] & ring
                if bits:
                    return inches, (row - 1) * WIDTH + (63 - clz(bits) if side else ctz(bits))
    return NO_WAY, np.int64(-1)


@kernel
def refresh(t, book):
    """Look up again whom each squad sees in range and touches, where one of the two has changed. Writes t."""
    for side in range(2):
        stale = t.stale[side]
        if stale == 0:
            continue
        for slot in range(t.squads[side]):
            if stale >> slot & 1:
                t.targets[side, slot], t.engaged[side, slot] = 0, 0
                for foe in range(t.squads[1 - side]):
                    _relate(t, book, side, slot, foe)
        t.stale[side] = 0


@kernel
def _relate(t, book, side, slot, foe):
    """Both squads' answers about each other. Writes t."""
    mine, theirs = np.uint8(1 << slot), np.uint8(1 << foe)
    t.targets[side, slot] &= ~theirs
    t.engaged[side, slot] &= ~theirs
    t.targets[1 - side, foe] &= ~mine
    t.engaged[1 - side, foe] &= ~mine
    a, b = np.int64(t.cell[side, slot]), np.int64(t.cell[1 - side, foe])
    if a < 0 or b < 0:
        return
    if touching(a, b):
        t.engaged[side, slot] |= theirs
        t.engaged[1 - side, foe] |= mine
    apart = distance(a, b)
    my_range = book.profile[t.unit[side, slot], _RANGED_RANGE]
    their_range = book.profile[t.unit[1 - side, foe], _RANGED_RANGE]
    if apart <= max(my_range, their_range) and _bit(book.sight[t.board, a], b):
        if apart <= my_range:
            t.targets[side, slot] |= theirs
        if apart <= their_range:
            t.targets[1 - side, foe] |= mine


@kernel
def shootable(t, side, slot):
    """Bits: the enemies that a squad may shoot at. Engaged squads neither shoot nor are shot."""
    bits = t.targets[side, slot]
    if t.engaged[side, slot] or t.flags[side, slot] & RUSHED:
        return np.uint8(0)
    for foe in range(t.squads[1 - side]):
        if t.engaged[1 - side, foe]:
            bits &= ~np.uint8(1 << foe)
    return bits


@kernel
def near(t, book, cell):
    """Bits: the objectives of the mission that a squad on this cell counts for."""
    return book.near[t.board, cell] & book.used[t.mission]


@kernel
def control_sums(t, book, sums):
    """The control that each side has at each objective of the mission. Writes sums (2, OBJECTIVES)."""
    sums[:] = 0
    for side in range(2):
        for slot in range(t.squads[side]):
            cell = t.cell[side, slot]
            if cell < 0 or t.flags[side, slot] & SHAKEN:
                continue
            counts = near(t, book, cell)
            if counts:
                for objective in range(OBJECTIVES):
                    if counts >> objective & 1:
                        sums[side, objective] += book.profile[t.unit[side, slot], CONTROL]


@kernel
def controlled(t, book):
    """Bits: the objectives of the mission that each side controls, by a strictly greater sum of control."""
    sums = np.empty((2, OBJECTIVES), np.int64)
    control_sums(t, book, sums)
    first = second = 0
    for objective in range(OBJECTIVES):
        first |= (sums[0, objective] > sums[1, objective]) << objective
        second |= (sums[1, objective] > sums[0, objective]) << objective
    return first, second
