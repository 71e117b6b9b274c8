"""What the slow table is made of: dice, squads, and distances and lines counted cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np

from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.wargame.content import Melee, Unit

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


def chance_through(skill: int, wound: int, save: int, focus: bool) -> float:
    """That a throw hits, wounds and is not saved, by counting the faces of all dice."""
    faces = range(1, 7)
    firsts = [die for first in faces for die in (faces if focus and first == 1 else [first] * 6)]
    hits = [die for die in firsts if die != 1 and (die == 6 or die >= skill)]
    unsaved = [die for die in faces if die == 1 or die < save]
    return len(hits) / 36 * len([die for die in faces if die >= wound]) / 6 * len(unsaved) / 6


def strike(
    squad: Squad, weapon: Melee, foe: Squad, bonus: int, focus: bool, dice: Dice
) -> tuple[tuple[int, int, int, int], float]:
    """A squad's attack: throws, hits, wounds and unsaved ones, and hundreds of points beyond the average."""
    body = foe.unit.body
    save = min(body.save + weapon.piercing - bonus, body.invulnerable or 7)
    s, t = weapon.strength, body.toughness
    wound = 2 if s >= 2 * t else 6 if 2 * s <= t else 4 if s == t else 3 if s > t else 5
    through = chance_through(weapon.skill, wound, save, focus)
    blow = body.points / body.models / -(-body.wounds // weapon.damage) / 100
    throws, hits, wounds, unsaved, luck = squad.models * weapon.attacks, 0, 0, 0, 0.0
    for _ in range(throws):
        luck -= through * blow
        hit = dice.d6()
        if hit == 1 and focus:
            hit = dice.d6()
        if hit == 1 or (hit != 6 and hit < weapon.skill):
            continue
        hits += 1
        if dice.d6() < wound:
            continue
        wounds += 1
        saved = dice.d6()
        if saved != 1 and saved >= save:
            continue
        unsaved += 1
        luck += blow
        foe.wounds -= weapon.damage
        if foe.wounds <= 0:
            foe.models, foe.wounds = foe.models - 1, body.wounds
            if not foe.alive:
                break
    return (throws, hits, wounds, unsaved), luck


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
