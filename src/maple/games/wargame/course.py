"""The game as it stands, in binary features: what all options of a decision share, and what a value is learned from.

Round, scores and what they come to if nobody moves, objectives, both armies' strength and fire, the squad that decides
and what it faces where it stands, all squads by side, strength and place. Numbers come in steps.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.wargame.book import (
    CONTROL,
    MELEE,
    MODELS,
    MOVE,
    POINTS,
    RANGE,
    RANGED,
    SAVE,
    TOUGHNESS,
    WOUNDS,
    weapon_column,
)
from maple.games.wargame.content import MAX_SQUADS, OBJECTIVES, WIDTH
from maple.games.wargame.ground import control_sums, near
from maple.games.wargame.promise import (
    CLASH,
    FIRE,
    GAIN,
    PROMISES,
    best_shot,
    capped,
    look_around,
    points_left,
    wounds_left,
)
from maple.games.wargame.state import DONE, NOBODY, SHAKEN

__all__ = [
    "HEALTH",
    "PRICE",
    "REACH",
    "SHARED",
    "SHARED_WIDTH",
    "STEPS",
    "describe_course",
    "health",
    "price",
    "reach",
    "step",
]

SHARED_WIDTH = 128
# Of points, about a seventh apart.
LIMITS = np.array(
    [0.01, *range(1, 11), *range(12, 21, 2), 23, 26, 30, 34, 39, 45, 52, 60, 70, 80, 95, 115], dtype=np.float32
)
STEPS = len(LIMITS) + 1
HEALTH = 6
PRICE = 6
REACH = 8
_PLACES = 11 * 8
_FORCE = 16  # steps of an army's points
_AHEAD = 31  # steps of a lead
_RANGED_RANGE, _MELEE_STRENGTH = weapon_column(RANGED, RANGE), weapon_column(MELEE, 3)

_PHASE = 0
_ROUND = _PHASE + 5
_LEFT = _ROUND + 8
_MARGIN = _LEFT + 8
_COMMAND = _MARGIN + _AHEAD
_BOOST = _COMMAND + 2 * 4
_FIRST = _BOOST + 3
_RATE = _FIRST + 4  # points destroyed for a VP
_OUTLOOK = _RATE + 8  # the margin if objectives stay with those who have them
_POINTS = _OUTLOOK + _AHEAD  # that are left, by side
_LEAD = _POINTS + 2 * _FORCE
_FIREPOWER = _LEAD + _AHEAD  # points that a side's shots from where it stands should destroy
_WAITING = _FIREPOWER + 2 * _FORCE  # squads that have yet to act in this phase
_OBJECTIVE = _WAITING + MAX_SQUADS + 1  # each by who controls it, what it is worth, whether it pays yet
_GRIP = _OBJECTIVE + OBJECTIVES * 3 * 12 * 2  # by what it is worth and by how much control it is held
_MOVE = _GRIP + 12 * 9
_REACH = _MOVE + 8
_TOUGH = _REACH + REACH
_SAVE = _TOUGH + 8
_MELEE = _SAVE + 8
_MODELS = _MELEE + 8
_CONTROL = _MODELS + 8
_STATE = _CONTROL + 10  # shaken, engaged, near an objective
_OWN = _STATE + 3  # price, health
_STANDS = _OWN + PRICE * HEALTH  # where, coarsely
_FIRE = _STANDS + _PLACES  # what it faces there
_CLASH = _FIRE + STEPS
_GAIN = _CLASH + STEPS
_SQUAD = _GAIN + 21  # side, price, health
_KIND = _SQUAD + 2 * PRICE * HEALTH  # side, reach, health
_BODY = _KIND + 2 * REACH * HEALTH  # side, toughness, models
_PLACE = _BODY + 2 * 8 * 8  # side, coarse place
_NEAR = _PLACE + 2 * _PLACES  # side, objective, price
SHARED = _NEAR + 2 * OBJECTIVES * PRICE


@kernel
def step(points):
    """How far up the steps some points are."""
    n = 0
    while n < LIMITS.shape[0] and points >= LIMITS[n]:
        n += 1
    return n


@kernel
def health(t, book, side, slot):
    """What is left of a squad, from 1 to 5."""
    profile = book.profile[t.unit[side, slot]]
    whole = profile[MODELS] * profile[WOUNDS]
    return capped(5, (wounds_left(t, book, side, slot) * 5 + whole - 1) // whole)


@kernel
def price(t, book, side, slot):
    """A squad's points in steps."""
    return capped(PRICE - 1, book.profile[t.unit[side, slot], POINTS] // 25)


@kernel
def reach(t, book, side, slot):
    """A squad's range in steps."""
    return capped(REACH - 1, (book.profile[t.unit[side, slot], _RANGED_RANGE] + 5) // 6)


@kernel
def _ahead(number):
    """A lead in steps, half of them on each side."""
    half = np.int64(_AHEAD // 2)
    return half + max(-half, min(half, np.int64(np.floor(number))))


@kernel
def _times(t, side, opens, rounds):
    """How often an objective pays a side from now on: at the beginning of its turns and at the end."""
    had = t.turn == side or t.first == side
    return max(np.int64(0), rounds - max(np.int64(t.round) + had, np.int64(opens)) + 1) + 1


@kernel
def _describe_scores(t, book, rounds, out):
    """Round, scores, tactics, objectives; returns how many features. Writes out."""
    margin = np.int64(t.vp[0]) - np.int64(t.vp[1])
    out[0], out[1] = _PHASE + t.phase, _ROUND + capped(7, t.round)
    out[2], out[3] = _LEFT + capped(7, rounds - t.round), _MARGIN + _ahead(margin / 2)
    out[4], out[5] = _COMMAND + capped(3, t.command[0]), _COMMAND + 4 + capped(3, t.command[1])
    out[6], out[7] = _BOOST + t.boost, _FIRST + 2 * t.first + t.turn
    out[8] = _RATE + capped(7, book.points_per_vp[t.mission] // 4)
    n = 9
    sums = np.empty((2, OBJECTIVES), np.int64)
    control_sums(t, book, sums)
    for objective in range(OBJECTIVES):
        vp = np.int64(book.vp[t.mission, objective])
        if vp:
            grip, opens = sums[0, objective] - sums[1, objective], book.opens[t.mission, objective]
            who = 1 if grip > 0 else (2 if grip < 0 else 0)
            out[n] = _OBJECTIVE + ((objective * 3 + who) * 12 + capped(11, vp)) * 2 + (t.round >= opens)
            out[n + 1] = _GRIP + capped(11, vp) * 9 + 4 + max(np.int64(-4), min(np.int64(4), grip))
            n += 2
            if who:
                margin += vp * _times(t, 0, opens, rounds) if who == 1 else -vp * _times(t, 1, opens, rounds)
    out[n] = _OUTLOOK + _ahead(margin / 4)
    return n + 1


@kernel
def _describe_armies(t, book, out):
    """What both sides have left, and what their shots should destroy; returns how many features. Writes out."""
    lead, waiting = 0.0, 0
    for side in range(2):
        left, shots = 0.0, 0.0
        for slot in range(t.squads[side]):
            if t.cell[side, slot] >= 0:
                left += points_left(t, book, side, slot)
                shots += best_shot(t, book, side, slot)
                waiting += side == t.side and t.flags[side, slot] & DONE == 0
        lead += left if side == 0 else -left
        out[2 * side] = (
            _POINTS + side * _FORCE + capped(_FORCE - 1, (left + 0.1) / 40)
        )  # whole points do not depend on the last bits
        out[2 * side + 1] = _FIREPOWER + side * _FORCE + capped(_FORCE - 1, shots / 8)
    out[4], out[5] = _LEAD + _ahead(lead / 20), _WAITING + waiting
    return 6


@kernel
def _describe_squads(t, book, out):
    """All squads by side, strength and place; returns how many features. Writes out."""
    n = 0
    for side in range(2):
        for slot in range(t.squads[side]):
            cell = np.int64(t.cell[side, slot])
            if cell < 0:
                continue
            cost, left = price(t, book, side, slot), health(t, book, side, slot)
            tough = capped(7, book.profile[t.unit[side, slot], TOUGHNESS] - 1)
            out[n] = _SQUAD + (side * PRICE + cost) * HEALTH + left
            out[n + 1] = _PLACE + side * _PLACES + cell // WIDTH // 2 * 11 + cell % WIDTH // 2
            out[n + 2] = _KIND + (side * REACH + reach(t, book, side, slot)) * HEALTH + left
            out[n + 3] = _BODY + (side * 8 + tough) * 8 + capped(7, t.models[side, slot])
            n += 4
            counts = near(t, book, cell)
            if counts and not t.flags[side, slot] & SHAKEN:
                for objective in range(OBJECTIVES):
                    if counts >> objective & 1:
                        out[n] = _NEAR + (side * OBJECTIVES + objective) * PRICE + cost
                        n += 1
                        break
    return n


@kernel
def _describe_actor(t, book, enemies, goals, out):
    """The squad that decides, and what it faces; returns how many features. Writes out."""
    if t.slot == NOBODY or t.cell[t.side, t.slot] < 0:
        return 0
    side, slot = np.int64(t.side), np.int64(t.slot)
    cell, profile = np.int64(t.cell[side, slot]), book.profile[t.unit[side, slot]]
    out[0], out[1] = _MOVE + profile[MOVE], _REACH + reach(t, book, side, slot)
    out[2], out[3] = _TOUGH + capped(7, profile[TOUGHNESS] - 1), _SAVE + profile[SAVE]
    out[4] = _MELEE + capped(7, profile[_MELEE_STRENGTH] - 1)
    out[5], out[6] = _MODELS + capped(7, t.models[side, slot]), _CONTROL + profile[CONTROL]
    out[7] = _OWN + price(t, book, side, slot) * HEALTH + health(t, book, side, slot)
    out[8] = _STANDS + cell // WIDTH // 2 * 11 + cell % WIDTH // 2
    faced = np.empty(PROMISES, np.float32)
    look_around(t, book, cell, True, np.int64(0), enemies, goals, faced)
    out[9], out[10] = _FIRE + step(faced[FIRE]), _CLASH + step(faced[CLASH])
    out[11] = _GAIN + capped(20, faced[GAIN])
    n = 12
    if t.flags[side, slot] & SHAKEN:
        out[n] = _STATE
        n += 1
    if t.engaged[side, slot]:
        out[n] = _STATE + 1
        n += 1
    if near(t, book, cell):
        out[n] = _STATE + 2
        n += 1
    return n


@kernel
def describe_course(t, book, rounds, enemies, goals, out):
    """What the options of a decision share; returns how many features. Writes out.

    `enemies` and `goals` are a survey's of the squad that decides.
    """
    n = _describe_scores(t, book, rounds, out)
    n += _describe_armies(t, book, out[n:])
    n += _describe_actor(t, book, enemies, goals, out[n:])
    return n + _describe_squads(t, book, out[n:])
