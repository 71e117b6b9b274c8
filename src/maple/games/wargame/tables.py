"""Tables of a board, made once: which cells see each other, where a target has cover, how far apart cells are."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.wargame.content import CELLS, DIAGONAL, HEIGHT, STRAIGHT, UNREACHABLE, WIDTH

__all__ = ["BLOCKING", "COVER", "OPEN", "fill_paths", "fill_sight"]

OPEN, BLOCKING, COVER = 0, 1, 2

_1 = np.uint64(1)
_63 = np.uint64(63)


@kernel
def _both(terrain, what, y, y_half, x, x_half):
    """Whether a point of a line lies on `what`: on both cells, where it runs exactly between two."""
    return (
        terrain[y * WIDTH + x] == what
        and terrain[(y + y_half) * WIDTH + x] == what
        and terrain[y * WIDTH + x + x_half] == what
        and terrain[(y + y_half) * WIDTH + x + x_half] == what
    )


@kernel
def _nearest(start, delta, i, steps):
    """Where step i of a line is on one axis, and 1 if it lies exactly between that cell and the next."""
    twice = 2 * (start * steps + delta * i)
    low = twice // (2 * steps)
    rest = twice - low * 2 * steps
    if rest == steps:
        return low, 1
    return (low + 1, 0) if rest > steps else (low, 0)


@kernel
def _line(terrain, a, b):
    """Whether nothing blocks the line between two cells, and whether there is cover on it."""
    ay, ax = a // WIDTH, a % WIDTH
    dy, dx = b // WIDTH - ay, b % WIDTH - ax
    steps = max(abs(dy), abs(dx))
    clear, covered = True, False
    for i in range(1, steps):
        y, y_half = _nearest(ay, dy, i, steps)
        x, x_half = _nearest(ax, dx, i, steps)
        clear = clear and not _both(terrain, BLOCKING, y, y_half, x, x_half)
        covered = covered or _both(terrain, COVER, y, y_half, x, x_half)
    return clear, covered


@kernel
def fill_sight(terrain, sight, shade):
    """Which cells see each other, and where a target has cover: on a cover cell, or with cover on the line.

    Read backwards or after half a turn of the board, a line is the same. Writes sight, shade.
    """
    for a in range(CELLS):
        for b in range(CELLS):
            clear, covered = _line(terrain, a, b)
            bit = _1 << (np.uint64(b) & _63)
            if clear:
                sight[a, b >> 6] |= bit
            if covered or terrain[b] == COVER:
                shade[a, b >> 6] |= bit


@kernel
def fill_paths(terrain, path):
    """Inches between all cells around what blocks, regardless of squads; a way of 253 or more is none. Writes path."""
    queue = np.empty((4, 8 * CELLS), np.int64)  # rings of equal cost, by cost modulo four
    size = np.zeros(4, np.int64)
    for source in range(CELLS):
        cost = path[source]
        cost[:] = UNREACHABLE
        if terrain[source] == BLOCKING:
            continue
        cost[source] = 0
        queue[0, 0], size[0] = source, 1
        for spent in range(UNREACHABLE - DIAGONAL):
            ring = spent & 3
            if size[0] + size[1] + size[2] + size[3] == 0:
                break
            for k in range(size[ring]):
                cell = queue[ring, k]
                if cost[cell] == spent:
                    _relax(terrain, cost, queue, size, cell, spent)
            size[ring] = 0


@kernel
def _relax(terrain, cost, queue, size, cell, spent):
    """Go on from a cell to its neighbours. Writes cost, queue, size."""
    y, x = cell // WIDTH, cell % WIDTH
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if (dy == 0 and dx == 0) or not (0 <= y + dy < HEIGHT and 0 <= x + dx < WIDTH):
                continue
            there = cell + dy * WIDTH + dx
            if terrain[there] == BLOCKING:
                continue
            step = STRAIGHT
            if dy != 0 and dx != 0:
                step = DIAGONAL
                if terrain[cell + dx] == BLOCKING and terrain[cell + dy * WIDTH] == BLOCKING:
                    continue
            if spent + step < cost[there]:
                cost[there] = spent + step
                ring = (spent + step) & 3
                queue[ring, size[ring]] = there
                size[ring] += 1
