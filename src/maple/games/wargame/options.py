"""Every legal action, described by what it promises: one network scores them all.

A description is a list of binary features; a feature is an index into the first layer's weights. Numbers come in steps.
What the options of a decision share is the game as it stands (`course.py`). An option is one part.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.wargame.book import CONTROL, RANGED
from maple.games.wargame.combat import expected, save_bonus
from maple.games.wargame.content import MAX_SQUADS, OBJECTIVES, WIDTH
from maple.games.wargame.course import (
    HEALTH,
    PRICE,
    REACH,
    SHARED,
    SHARED_WIDTH,
    STEPS,
    describe_course,
    health,
    price,
    reach,
    step,
)
from maple.games.wargame.ground import WAYS, cell_at, control_sums, near, shootable
from maple.games.wargame.promise import (
    CHARGE_VALUE,
    CHARGERS,
    CLASH,
    ENEMY,
    FAR,
    FIRE,
    FREES,
    GAIN,
    GOAL,
    LANDING,
    LATER,
    LOSS,
    NEAR,
    PROMISES,
    PULL,
    RISK,
    RUSHES,
    SHARE,
    SHOOTERS,
    SHOOTS,
    SHOT_VALUE,
    TACTIC,
    VALUE,
    WAY,
    capped,
    points_left,
    promise,
    survey,
    worth,
)
from maple.games.wargame.state import (
    ACTIONS,
    BRACE,
    CHARGE,
    DEFER,
    DONE,
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
PART_WIDTH = 24

_KIND = SHARED
MOVES, RUSH, FALL_BACK, STAY, SHOTS, CHARGES, FIGHTS, WAITS, DEFERS, FOCUSES, SURGES, BRACES, RALLIES = range(13)
_SHOT = _KIND + 13
_CHARGE = _SHOT + STEPS
_FIRE = _CHARGE + STEPS
_CLASH = _FIRE + STEPS
_LATER = _CLASH + STEPS  # the best shot from there, in a later turn
_LOSS = _LATER + STEPS  # of the squad's own points, in tenths
_SHOOTERS = _LOSS + 11  # enemies that can shoot there, and charge there
_CHARGERS = _SHOOTERS + 6
_GAIN = _CHARGERS + 6  # by rounds left
_PULL = _GAIN + 21 * 5  # in halves of a VP; the last one where no objective is wanted
_WAY = _PULL + 49
_WAYS = _WAY + 26  # to each objective, by who controls it without this squad
_ENEMY = _WAYS + 3 * 10
_X = _ENEMY + 26
_Y = _X + WIDTH
_GROUND = _Y + 15  # terrain, and whether an objective is near
_TRADE = _GROUND + 6  # what is dealt against what is taken
_VALUE = _TRADE + 4 * 4  # of attacks, by kind
_RISK = _VALUE + 3 * STEPS
_SHARE = _RISK + 2 * STEPS  # of the target's points, by kind
_NEED = _SHARE + 3 * 11
_PRICED = _NEED + 16
_HURT = _PRICED + 3 * PRICE
_HOLDER = _HURT + 3 * HEALTH
_SHOOTER = _HOLDER + 6
_THREAT = _SHOOTER + 3 * REACH  # points that the target's own shot should destroy
_OTHERS = _THREAT + 3 * STEPS  # share of the target that squads yet to shoot should destroy
_FREED = _OTHERS + 6  # VP a turn that the target's end wins or denies
_LANDING = _FREED + 3 * 21  # VP a turn that standing where a charge ends wins or denies
_WORTH = _LANDING + 21
FEATURES = _WORTH + 4 * STEPS


@kernel
def _describe_ways(t, book, place, sums, out):
    """How far it is from a cell to each objective; returns how many features. Writes out."""
    n = 0
    for objective in range(OBJECTIVES):
        if book.vp[t.mission, objective]:
            mine, theirs = sums[0, objective], sums[1, objective]
            who = 1 if mine > theirs else (2 if theirs > mine else 0)
            inches = max(np.int64(0), np.int64(book.way[t.board, objective, place]) - 4)
            out[n] = _WAYS + who * 10 + capped(9, (inches + 1) // 2)
            n += 1
    return n


@kernel
def _describe_place(t, book, action, place, left, sums, seen, out):
    """A move, or staying; returns how many features. Writes out."""
    kind = STAY if action == HOLD else (RUSH if seen[RUSHES] else MOVES)
    if kind == RUSH and t.engaged[t.side, t.slot]:
        kind = FALL_BACK
    dealt, taken = max(seen[SHOT_VALUE], seen[CHARGE_VALUE]), seen[FIRE] + seen[CLASH]
    out[0] = _KIND + kind
    out[1], out[2] = _SHOT + step(seen[SHOT_VALUE]), _CHARGE + step(seen[CHARGE_VALUE])
    out[3], out[4] = _FIRE + step(seen[FIRE]), _CLASH + step(seen[CLASH])
    out[5] = _GAIN + capped(20, seen[GAIN]) * 5 + capped(4, left)
    out[6], out[7] = _WAY + capped(25, seen[WAY] // 2), _ENEMY + capped(25, seen[NEAR] // 2)
    # On the side that looks at the board, side 0's own: places are the same for both.
    out[8], out[9] = _X + place % WIDTH, _Y + place // WIDTH
    out[10] = _GROUND + 2 * book.terrain[t.board, place] + (near(t, book, place) != 0)
    out[11] = _TRADE + 4 * capped(3, step(dealt) // 7) + capped(3, step(taken) // 7)
    out[12] = _LATER + step(seen[LATER])
    out[13] = _LOSS + capped(10, 10 * seen[LOSS])
    out[14], out[15] = _SHOOTERS + capped(5, seen[SHOOTERS]), _CHARGERS + capped(5, seen[CHARGERS])
    out[16] = _PULL + (max(np.int64(0), capped(47, 2 * seen[PULL] + 24)) if seen[WAY] < FAR else 48)
    return 17 + _describe_ways(t, book, place, sums, out[17:])


@kernel
def _others(t, book, foe):
    """Share of an enemy that the squads yet to act should destroy by shots, the one that decides left out."""
    side, total = np.int64(t.side), np.float32(0)
    for slot in range(t.squads[side]):
        waits = slot != t.slot and t.cell[side, slot] >= 0 and t.flags[side, slot] & DONE == 0
        if waits and shootable(t, side, slot) >> foe & 1:
            total += expected(t, book, RANGED, side, slot, foe, save_bonus(t, book, RANGED, side, slot, foe))
    return worth(t, book, 1 - side, foe) * total / points_left(t, book, 1 - side, foe)


@kernel
def _describe_attack(t, book, action, enemies, seen, out):
    """A shot, a charge or a fight; returns how many features. Writes out."""
    kind = 0 if action < CHARGE else (1 if action < FIGHT else 2)
    foe = action - (SHOOT, CHARGE, FIGHT)[kind]
    side = 1 - np.int64(t.side)
    out[0] = _KIND + SHOTS + kind
    out[1] = _VALUE + kind * STEPS + step(seen[VALUE])
    out[2] = _SHARE + kind * 11 + capped(10, seen[SHARE] * 10)
    out[3] = _PRICED + kind * PRICE + price(t, book, side, foe)
    out[4] = _HURT + kind * HEALTH + health(t, book, side, foe)
    out[5] = _HOLDER + 2 * kind + (near(t, book, t.cell[side, foe]) != 0)
    out[6] = _SHOOTER + kind * REACH + reach(t, book, side, foe)
    out[7] = _THREAT + kind * STEPS + step(enemies[foe, SHOOTS])
    out[8] = _FREED + kind * 21 + capped(20, enemies[foe, FREES])
    if kind == 0:
        out[9] = _OTHERS + capped(5, 4 * _others(t, book, foe))
        return 10
    out[9] = _RISK + (kind - 1) * STEPS + step(seen[RISK])
    out[10] = _NEED + capped(15, seen[NEAR])
    if kind == 2:
        return 11
    out[11] = _LANDING + capped(20, seen[LANDING])
    return 12


@kernel
def _describe_option(t, book, action, left, known, ways, out):
    """One option; returns how many features. Writes out."""
    enemies, goals, seen, sums = known
    own = np.int64(t.cell[t.side, t.slot]) if t.slot != NOBODY else -1
    place = cell_at(np.int64(t.side), own, action) if action < SHOOT else own
    promise(t, book, action, place, enemies, goals, ways, seen)
    if action < SHOOT or (action == HOLD and t.phase == MOVE_PHASE):
        return _describe_place(t, book, action, place, left, sums, seen, out)
    if action < HOLD:
        return _describe_attack(t, book, action, known[0], seen, out)
    if action <= DEFER:
        out[0] = _KIND + (WAITS if action == HOLD else DEFERS)
        return 1
    which = 0 if action == FOCUS else (1 if action == SURGE else (2 if action < RALLY else 3))
    out[0], out[1] = _KIND + FOCUSES + which, _WORTH + which * STEPS + step(seen[TACTIC])
    if which < 2:
        return 2
    slot = action - (BRACE if which == 2 else RALLY)
    out[2] = _PRICED + which % 3 * PRICE + price(t, book, np.int64(t.side), slot)
    return 3


@kernel
def _survey(t, book):
    """What a squad faces if one decides, room for promises, and the control at objectives; of moves, without itself."""
    enemies, goals = np.empty((MAX_SQUADS, ENEMY), np.float32), np.empty((OBJECTIVES, GOAL), np.float32)
    sums = np.empty((2, OBJECTIVES), np.int64)
    control_sums(t, book, sums)
    if t.slot != NOBODY and t.cell[t.side, t.slot] >= 0:
        survey(t, book, np.int64(t.side), np.int64(t.slot), enemies, goals)
        if t.phase == MOVE_PHASE and not t.flags[t.side, t.slot] & SHAKEN:
            counts = near(t, book, t.cell[t.side, t.slot])
            for objective in range(OBJECTIVES):
                own = book.profile[t.unit[t.side, t.slot], CONTROL] * (counts >> objective & 1)
                sums[t.side, objective] -= own
    return enemies, goals, np.empty(PROMISES, np.float32), sums


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
        known = _survey(t, book[0])
        shared_length[i] = describe_course(t, book[0], rounds, known[0], known[1], shared[i])
        for k in range(count):
            n, left = offset[i] + k, rounds - t.round
            part_length[n] = _describe_option(t, book[0], np.int64(legal[k]), left, known, ways, part[n])
            option_part[n, 0], action[n] = n, legal[k]


@kernel
def describe_state(view, book, scratch, feature, length, lo, hi):
    """The decision before any option is taken. Writes scratch, feature, length."""
    t = scratch[0]
    for i in range(lo, hi):
        read_view(view[i], t)
        known = _survey(t, book[0])
        length[i] = describe_course(t, book[0], rounds_of(view[i]), known[0], known[1], feature[i])


@kernel
def describe_choice(view, book, scratch, action, feature, length, lo, hi):
    """All features of the option taken in each of rows [lo, hi). Writes scratch, feature, length."""
    legal = np.empty(ACTIONS, np.int16)
    ways = np.empty(WAYS, np.uint64)
    t = scratch[0]
    for i in range(lo, hi):
        options_of(view[i], book[0], t, legal, ways)
        rounds = rounds_of(view[i])
        known = _survey(t, book[0])
        n = describe_course(t, book[0], rounds, known[0], known[1], feature[i])
        left = rounds - t.round
        chosen = np.int64(action[i])
        length[i] = n + _describe_option(t, book[0], chosen, left, known, ways, feature[i, n:])
