"""What the slow table is made of: dice, squads, and distances and lines counted cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np

from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.wargame.content import Unit

WIDTH, HEIGHT = 22, 15
Cell = tuple[int, int]  # column, row


class Dice:
    """A stream of random numbers from a key."""

    def __init__(self, seed: int, *place: int) -> None:
        self.state = key(np.uint64(seed), int(Purpose.DEAL), *place)

    def below(self, n: int) -> int:
        self.state = stream_next(np.uint64(self.state))
        return int(bounded(np.uint64(scramble(np.uint64(self.state))), n))

    def d6(self) -> int:
        return self.below(6) + 1


@dataclass
class Squad:
    """One squad."""

    unit: Unit
    number: int  # of its unit in the roster
    cell: Cell
    models: int
    wounds: int
    shaken: bool = False
    rushed: bool = False
    charged: bool = False
    braced: bool = False
    done: bool = False
    deferred: bool = False

    @property
    def alive(self) -> bool:
        return self.models > 0

    @property
    def below_half(self) -> bool:
        body = self.unit.body
        return 2 * self.wounds < body.wounds if body.models == 1 else 2 * self.models < body.models

    @property
    def lost_points(self) -> int:
        body = self.unit.body
        return body.points * (body.models - self.models) // body.models


def turned(cell: Cell) -> Cell:
    """A cell after half a turn of the board."""
    return (WIDTH - 1 - cell[0], HEIGHT - 1 - cell[1])


def apart(a: Cell, b: Cell) -> int:
    """Inches between two cells."""
    long, short = sorted((abs(a[0] - b[0]), abs(a[1] - b[1])), reverse=True)
    return 2 * (long - short) + 3 * short


def touching(a: Cell, b: Cell) -> bool:
    return a != b and abs(a[0] - b[0]) <= 1 and abs(a[1] - b[1]) <= 1


def between(a: Cell, b: Cell) -> list[list[Cell]]:
    """The cells on the line, step by step; both (or all four) where it runs exactly between."""
    steps = max(abs(a[0] - b[0]), abs(a[1] - b[1]))
    line = []
    for i in range(1, steps):
        axes = []
        for start, end in zip(a, b, strict=True):
            at = start + Fraction((end - start) * i, steps)
            axes.append([floor(at), floor(at) + 1] if at % 1 == Fraction(1, 2) else [floor(at + Fraction(1, 2))])
        line.append([(x, y) for x in axes[0] for y in axes[1]])
    return line
