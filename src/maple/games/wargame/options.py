"""Every legal action, described by what it promises: one network scores them all.

A description is a list of binary features; a feature is an index into the first layer's weights. Numbers come in steps.
What the options of a decision share is the game as it stands: round, scores, objectives, the squad that decides, and
all squads by side, strength and place. An option is one part.
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
from maple.games.wargame.ground import WAYS, cell_at, controlled, near
from maple.games.wargame.promise import (
    CHARGE_VALUE,
    CLASH,
    ENEMY,
    FIRE,
    GAIN,
    GOAL,
    NEAR,
    PROMISES,
    RISK,
    RUSHES,
    SHOT_VALUE,
    TACTIC,
    VALUE,
    WAY,
    capped,
    promise,
    survey,
    worth,
)
from maple.games.wargame.state import (
    ACTIONS,
    BRACE,
    CHARGE,
    DEFER,
    FIGHT,
    FOCUS,
    HOLD,
    MOVE_PHASE,
    NOBODY,
    RALLY,
    SHAKEN,
    SHOOT,
    SURGE,
    WINDOW,
)
from maple.games.wargame.view import options_of, read_view, rounds_of

__all__ = [
    "FEATURES",
    "MAX_OPTIONS",
    "PART_WIDTH",
    "SHARED_WIDTH",
    "count_options",
    "describe",
    "describe_choice",
    "describe_state",
]

MAX_OPTIONS = WINDOW * WINDOW + 2
PART_WIDTH = 20
SHARED_WIDTH = 96
STEPS = np.array([0.01, 2, 4, 7, 11, 16, 23, 32, 45, 65, 95], dtype=np.float32)  # of points
_S = len(STEPS) + 1
_HEALTH = 6
_PRICE = 6
_PLACES = 11 * 8
_RANGED_RANGE, _MELEE_STRENGTH = weapon_column(RANGED, RANGE), weapon_column(MELEE, 3)

# Features that options share.
_PHASE = 0
_ROUND = _PHASE + 5
_LEFT = _ROUND + 8
_MARGIN = _LEFT + 8
_COMMAND = _MARGIN + 21
_BOOST = _COMMAND + 2 * 4
_FIRST = _BOOST + 3
_OBJECTIVE = _FIRST + 4  # each by who controls it, what it is worth, whether it pays yet
_MOVE = _OBJECTIVE + OBJECTIVES * 3 * 12 * 2
_REACH = _MOVE + 8
_TOUGH = _REACH + 8
_SAVE = _TOUGH + 8
_MELEE = _SAVE + 8
_MODELS = _MELEE + 8
_CONTROL = _MODELS + 8
_STATE = _CONTROL + 10  # shaken, engaged, near an objective
_SQUAD = _STATE + 3  # side, price, health
_PLACE = _SQUAD + 2 * _PRICE * _HEALTH  # side, coarse place
_NEAR = _PLACE + 2 * _PLACES  # side, objective, price
SHARED = _NEAR + 2 * OBJECTIVES * _PRICE

# Features of an option.
_KIND = SHARED
MOVES, RUSH, FALL_BACK, STAY, SHOTS, CHARGES, FIGHTS, WAITS, DEFERS, FOCUSES, SURGES, BRACES, RALLIES = range(13)
_SHOT = _KIND + 13
_CHARGE = _SHOT + _S
_FIRE = _CHARGE + _S
_CLASH = _FIRE + _S
_GAIN = _CLASH + _S  # by rounds left
_WAY = _GAIN + 13 * 5
_ENEMY = _WAY + 26
_X = _ENEMY + 26
_Y = _X + WIDTH
_GROUND = _Y + 15  # terrain, and whether an objective is near
_TRADE = _GROUND + 6  # what is dealt against what is taken
_VALUE = _TRADE + 4 * 4  # of attacks, by kind
_RISK = _VALUE + 3 * _S
_SHARE = _RISK + 2 * _S  # of the target's points, by kind
_NEED = _SHARE + 3 * 11
_PRICED = _NEED + 16
_HURT = _PRICED + 3 * _PRICE
_HOLDER = _HURT + 3 * _HEALTH
_SHOOTER = _HOLDER + 6
_WORTH = _SHOOTER + 3 * 8
FEATURES = _WORTH + 4 * _S


@kernel
def _step(points):
    """How far up the steps some points are."""
    n = 0
    while n < STEPS.shape[0] and points >= STEPS[n]:
        n += 1
    return n


@kernel
def _health(t, book, side, slot):
    """What is left of a squad, from 1 to 5."""
    profile = book.profile[t.unit[side, slot]]
    left = (np.int64(t.models[side, slot]) - 1) * profile[WOUNDS] + t.wounds[side, slot]
    return capped(5, (left * 5 + profile[MODELS] * profile[WOUNDS] - 1) // (profile[MODELS] * profile[WOUNDS]))


@kernel
def _price(t, book, side, slot):
    return capped(_PRICE - 1, book.profile[t.unit[side, slot], POINTS] // 25)


@kernel
def _describe_course(t, book, rounds, out):
    """Round, scores, tactics, objectives; returns how many features. Writes out."""
    margin = np.int64(t.vp[0]) - np.int64(t.vp[1])
    out[0], out[1] = _PHASE + t.phase, _ROUND + capped(7, t.round)
    out[2], out[3] = _LEFT + capped(7, rounds - t.round), _MARGIN + 10 + max(np.int64(-10), capped(10, margin // 3))
    out[4], out[5] = _COMMAND + capped(3, t.command[0]), _COMMAND + 4 + capped(3, t.command[1])
    out[6], out[7] = _BOOST + t.boost, _FIRST + 2 * t.first + t.turn
    n = 8
    mine, theirs = controlled(t, book)
    for objective in range(OBJECTIVES):
        vp = np.int64(book.vp[t.mission, objective])
        if vp:
            who = 1 if mine >> objective & 1 else (2 if theirs >> objective & 1 else 0)
            pays = t.round >= book.opens[t.mission, objective]
            out[n] = _OBJECTIVE + ((objective * 3 + who) * 12 + capped(11, vp)) * 2 + pays
            n += 1
    return n


@kernel
def _describe_squads(t, book, out):
    """All squads by side, strength and place; returns how many features. Writes out."""
    n = 0
    for side in range(2):
        for slot in range(t.squads[side]):
            cell = np.int64(t.cell[side, slot])
            if cell < 0:
                continue
            price = _price(t, book, side, slot)
            out[n] = _SQUAD + (side * _PRICE + price) * _HEALTH + _health(t, book, side, slot)
            out[n + 1] = _PLACE + side * _PLACES + cell // WIDTH // 2 * 11 + cell % WIDTH // 2
            n += 2
            counts = near(t, book, cell)
            if counts and not t.flags[side, slot] & SHAKEN:
                for objective in range(OBJECTIVES):
                    if counts >> objective & 1:
                        out[n] = _NEAR + (side * OBJECTIVES + objective) * _PRICE + price
                        n += 1
                        break
    return n


@kernel
def _describe_actor(t, book, out):
    """The squad that decides; returns how many features. Writes out."""
    if t.slot == NOBODY:
        return 0
    profile = book.profile[t.unit[t.side, t.slot]]
    out[0], out[1] = _MOVE + profile[MOVE], _REACH + capped(7, (profile[_RANGED_RANGE] + 5) // 6)
    out[2], out[3] = _TOUGH + capped(7, profile[TOUGHNESS] - 1), _SAVE + profile[SAVE]
    out[4] = _MELEE + capped(7, profile[_MELEE_STRENGTH] - 1)
    out[5], out[6] = _MODELS + capped(7, t.models[t.side, t.slot]), _CONTROL + profile[CONTROL]
    n = 7
    if t.flags[t.side, t.slot] & SHAKEN:
        out[n] = _STATE
        n += 1
    if t.engaged[t.side, t.slot]:
        out[n] = _STATE + 1
        n += 1
    if near(t, book, t.cell[t.side, t.slot]):
        out[n] = _STATE + 2
        n += 1
    return n


@kernel
def _describe_shared(t, book, rounds, out):
    """What the options of a decision share; returns how many features. Writes out."""
    n = _describe_course(t, book, rounds, out)
    n += _describe_actor(t, book, out[n:])
    return n + _describe_squads(t, book, out[n:])


@kernel
def _describe_place(t, book, action, place, left, seen, out):
    """A move, or staying; returns how many features. Writes out."""
    kind = STAY if action == HOLD else (RUSH if seen[RUSHES] else MOVES)
    if kind == RUSH and t.engaged[t.side, t.slot]:
        kind = FALL_BACK
    dealt, taken = max(seen[SHOT_VALUE], seen[CHARGE_VALUE]), seen[FIRE] + seen[CLASH]
    out[0] = _KIND + kind
    out[1], out[2] = _SHOT + _step(seen[SHOT_VALUE]), _CHARGE + _step(seen[CHARGE_VALUE])
    out[3], out[4] = _FIRE + _step(seen[FIRE]), _CLASH + _step(seen[CLASH])
    out[5] = _GAIN + capped(12, seen[GAIN]) * 5 + capped(4, left)
    out[6], out[7] = _WAY + capped(25, seen[WAY] // 2), _ENEMY + capped(25, seen[NEAR] // 2)
    # On the side that looks at the board, side 0's own: places are the same for both.
    out[8], out[9] = _X + place % WIDTH, _Y + place // WIDTH
    out[10] = _GROUND + 2 * book.terrain[t.board, place] + (near(t, book, place) != 0)
    out[11] = _TRADE + 4 * capped(3, _step(dealt) // 3) + capped(3, _step(taken) // 3)
    return 12


@kernel
def _describe_attack(t, book, action, seen, out):
    """A shot, a charge or a fight; returns how many features. Writes out."""
    kind = 0 if action < CHARGE else (1 if action < FIGHT else 2)
    foe = action - (SHOOT, CHARGE, FIGHT)[kind]
    side = 1 - np.int64(t.side)
    profile = book.profile[t.unit[side, foe]]
    left = (np.int64(t.models[side, foe]) - 1) * profile[WOUNDS] + t.wounds[side, foe]
    share = seen[VALUE] / (worth(t, book, side, foe) * left)
    out[0] = _KIND + SHOTS + kind
    out[1] = _VALUE + kind * _S + _step(seen[VALUE])
    out[2] = _SHARE + kind * 11 + capped(10, share * 10)
    out[3] = _PRICED + kind * _PRICE + _price(t, book, side, foe)
    out[4] = _HURT + kind * _HEALTH + _health(t, book, side, foe)
    out[5] = _HOLDER + 2 * kind + (near(t, book, t.cell[side, foe]) != 0)
    out[6] = _SHOOTER + kind * 8 + capped(7, (profile[_RANGED_RANGE] + 5) // 6)
    if kind == 0:
        return 7
    out[7] = _RISK + (kind - 1) * _S + _step(seen[RISK])
    out[8] = _NEED + capped(15, seen[NEAR])
    return 9


@kernel
def _describe_option(t, book, action, left, survey_of, ways, out):
    """One option; returns how many features. Writes out."""
    enemies, goals, seen = survey_of
    own = np.int64(t.cell[t.side, t.slot]) if t.slot != NOBODY else -1
    place = cell_at(np.int64(t.side), own, action) if action < SHOOT else own
    promise(t, book, action, place, enemies, goals, ways, seen)
    if action < SHOOT or (action == HOLD and t.phase == MOVE_PHASE):
        return _describe_place(t, book, action, place, left, seen, out)
    if action < HOLD:
        return _describe_attack(t, book, action, seen, out)
    if action <= DEFER:
        out[0] = _KIND + (WAITS if action == HOLD else DEFERS)
        return 1
    which = 0 if action == FOCUS else (1 if action == SURGE else (2 if action < RALLY else 3))
    out[0], out[1] = _KIND + FOCUSES + which, _WORTH + which * _S + _step(seen[TACTIC])
    if which < 2:
        return 2
    slot = action - (BRACE if which == 2 else RALLY)
    out[2] = _PRICED + which % 3 * _PRICE + _price(t, book, np.int64(t.side), slot)
    return 3


@kernel
def _survey(t, book):
    """Room for what a squad faces, filled if one decides."""
    enemies, goals = np.empty((MAX_SQUADS, ENEMY), np.float32), np.empty((OBJECTIVES, GOAL), np.float32)
    if t.slot != NOBODY and t.cell[t.side, t.slot] >= 0:
        survey(t, book, np.int64(t.side), np.int64(t.slot), enemies, goals)
    return enemies, goals, np.empty(PROMISES, np.float32)


@kernel
def count_options(view, book, scratch, count, lo, hi):
    """How many options each of rows [lo, hi) has. Writes scratch, count."""
    legal = np.empty(ACTIONS, np.int16)
    ways = np.empty(WAYS, np.uint64)
    for i in range(lo, hi):
        count[i] = options_of(view[i], book[0], scratch[0], legal, ways)


@kernel
def describe(view, book, scratch, offset, shared, shared_length, part, part_length, option_part, action, lo, hi):
    """The options of rows [lo, hi), in order. Writes all but view, book, offset."""
    legal = np.empty(ACTIONS, np.int16)
    ways = np.empty(WAYS, np.uint64)
    t = scratch[0]
    for i in range(lo, hi):
        count = options_of(view[i], book[0], t, legal, ways)
        rounds = rounds_of(view[i])
        shared_length[i] = _describe_shared(t, book[0], rounds, shared[i])
        known = _survey(t, book[0])
        for k in range(count):
            place, n = i * MAX_OPTIONS + k, offset[i] + k
            left = rounds - t.round
            part_length[place] = _describe_option(t, book[0], np.int64(legal[k]), left, known, ways, part[place])
            option_part[n, 0], action[n] = place, legal[k]


@kernel
def describe_state(view, book, scratch, feature, length, lo, hi):
    """The decision before any option is taken. Writes scratch, feature, length."""
    for i in range(lo, hi):
        read_view(view[i], scratch[0])
        length[i] = _describe_shared(scratch[0], book[0], rounds_of(view[i]), feature[i])


@kernel
def describe_choice(view, book, scratch, action, feature, length, lo, hi):
    """All features of the option taken in each of rows [lo, hi). Writes scratch, feature, length."""
    legal = np.empty(ACTIONS, np.int16)
    ways = np.empty(WAYS, np.uint64)
    t = scratch[0]
    for i in range(lo, hi):
        options_of(view[i], book[0], t, legal, ways)
        rounds = rounds_of(view[i])
        n = _describe_shared(t, book[0], rounds, feature[i])
        known = _survey(t, book[0])
        left = rounds - t.round
        chosen = np.int64(action[i])
        length[i] = n + _describe_option(t, book[0], chosen, left, known, ways, feature[i, n:])
