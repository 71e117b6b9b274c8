"""What an option promises, in numbers: points that it should destroy or cost, objectives, distances.

The scripted players weigh these numbers, and described options are made of them. Points are those of the roster; an
expectation never exceeds what a squad has left.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.wargame.book import CONTROL, MELEE, MODELS, MOVE, POINTS, RANGE, RANGED, WOUNDS, weapon_column
from maple.games.wargame.combat import expected, save_bonus
from maple.games.wargame.content import MAX_SQUADS, OBJECTIVES, STRAIGHT
from maple.games.wargame.ground import charge_way, control_sums, distance, near, seen_from, within
from maple.games.wargame.rules import SURGE_INCHES
from maple.games.wargame.state import (
    BRACE,
    BRACED,
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
    SHOOT_PHASE,
    SURGE,
)

__all__ = [
    "CHANCE",
    "CHARGERS",
    "CHARGE_VALUE",
    "CLASH",
    "ENEMY",
    "FAR",
    "FIRE",
    "FREED",
    "FREES",
    "GAIN",
    "GOAL",
    "LANDING",
    "LATER",
    "LEFT",
    "LOSS",
    "NEAR",
    "PROMISES",
    "PULL",
    "RISK",
    "RUSHES",
    "SHARE",
    "SHOOTERS",
    "SHOOTS",
    "SHOT_VALUE",
    "TACTIC",
    "THREAT",
    "VALUE",
    "WAIT",
    "WAY",
    "best_shot",
    "capped",
    "look_around",
    "look_for_goals",
    "points_left",
    "promise",
    "survey",
    "worth",
    "wounds_left",
]

# What an option promises.
SHOT_VALUE = 0  # points that the best shot from there should destroy
CHARGE_VALUE = 1  # points that the best charge from there should destroy, with its chance
FIRE = 2  # points that shots should cost there
CLASH = 3  # points that charges should cost there
GAIN = 4  # VP a turn that standing there wins or denies
PULL = 5  # VP of the wanted objective that is best within reach, less the way to it
WAY = 6  # inches to that objective
NEAR = 7  # inches to the nearest enemy
RUSHES = 8  # 1 for a rush or a fall back
VALUE = 9  # points that an attack should destroy
RISK = 10  # points that the target should destroy in return
TACTIC = 11  # points that a tactic should save or destroy
WAIT = 12  # 1 for a deferral
LATER = 13  # points that the best shot from there should destroy in a later turn
SHOOTERS = 14  # enemies that can shoot there
CHARGERS = 15  # enemies that can charge there
LOSS = 16  # share of the squad that FIRE and CLASH would take, 1 at most
SHARE = 17  # of the target that an attack should destroy
THREAT = 18  # points that the target's best shot should destroy, times that share
FREED = 19  # VP a turn that the target's end wins or denies, times that share
LANDING = 20  # VP a turn that standing where a charge ends wins or denies, with its chance
PROMISES = 21

# Columns of a survey: what there is to know of each enemy before looking at a place.
_CELL, _SHOT, _SHOT_COVER, _FIGHT, _THEIR_SHOT, _THEIR_COVER, _THEIR_FIGHT, _THEIR_RANGE, _THEIR_MOVE, _FREE = range(10)
LEFT, SHOOTS, FREES = range(10, 13)  # in phases of attack: points left, points of its best shot, VP that its end frees
ENEMY = 13
# Columns of the goals: what each objective is worth to this squad.
_HERE, _WANTED = range(2)
GOAL = 2

INCH = 0.25  # VP that an inch of way takes from an objective's pull
CHANCE = np.array([1.0] * 3 + [sum(a + b >= n for a in range(1, 7) for b in range(1, 7)) / 36 for n in range(3, 16)])
FAR = 99.0  # inches to what is not there
_2 = np.int64(2)
_RANGED_RANGE = weapon_column(RANGED, RANGE)


@kernel
def capped(most, number):
    """A number as a whole one, `most` at most."""
    return min(np.int64(most), np.int64(number))


@kernel
def worth(t, book, side, slot):
    """Points of one wound of a squad."""
    profile = book.profile[t.unit[side, slot]]
    return np.float32(profile[POINTS]) / np.float32(profile[MODELS] * profile[WOUNDS])


@kernel
def wounds_left(t, book, side, slot):
    """Wounds that a squad can still take."""
    return (np.int64(t.models[side, slot]) - 1) * book.profile[t.unit[side, slot], WOUNDS] + t.wounds[side, slot]


@kernel
def points_left(t, book, side, slot):
    """Points that a squad can still lose."""
    return worth(t, book, side, slot) * wounds_left(t, book, side, slot)


@kernel
def best_shot(t, book, side, slot):
    """Points that a squad's best shot from where it stands should destroy, if it may shoot."""
    best = np.float32(0)
    if t.engaged[side, slot]:
        return best
    for foe in range(t.squads[1 - side]):
        if t.targets[side, slot] >> foe & 1 and not t.engaged[1 - side, foe]:
            bonus = save_bonus(t, book, RANGED, side, slot, foe)
            best = max(best, worth(t, book, 1 - side, foe) * expected(t, book, RANGED, side, slot, foe, bonus))
    return best


@kernel
def survey(t, book, side, slot, enemies, goals):
    """What a squad faces and wants, wherever it goes. Writes enemies (MAX_SQUADS, ENEMY), goals (OBJECTIVES, GOAL)."""
    mine = worth(t, book, side, slot)
    for foe in range(MAX_SQUADS):
        row = enemies[foe]
        row[_CELL] = t.cell[1 - side, foe] if foe < t.squads[1 - side] else -1
        if row[_CELL] < 0:
            continue
        theirs = worth(t, book, 1 - side, foe)
        braced = 1 if t.flags[1 - side, foe] & BRACED else 0
        i_braced = 1 if t.flags[side, slot] & BRACED else 0
        row[_SHOT] = theirs * expected(t, book, RANGED, side, slot, foe, braced)
        row[_SHOT_COVER] = theirs * expected(t, book, RANGED, side, slot, foe, braced + 1)
        row[_FIGHT] = theirs * expected(t, book, MELEE, side, slot, foe, braced)
        row[_THEIR_SHOT] = mine * expected(t, book, RANGED, 1 - side, foe, slot, i_braced)
        row[_THEIR_COVER] = mine * expected(t, book, RANGED, 1 - side, foe, slot, i_braced + 1)
        row[_THEIR_FIGHT] = mine * expected(t, book, MELEE, 1 - side, foe, slot, i_braced)
        profile = book.profile[t.unit[1 - side, foe]]
        row[_THEIR_RANGE], row[_THEIR_MOVE] = profile[_RANGED_RANGE], STRAIGHT * profile[MOVE]
        row[_FREE] = t.engaged[1 - side, foe] == 0 or t.engaged[1 - side, foe] == 1 << slot
        row[LEFT] = theirs * wounds_left(t, book, 1 - side, foe)
        row[SHOOTS] = best_shot(t, book, 1 - side, foe) if t.phase >= SHOOT_PHASE else 0.0
    if t.phase >= SHOOT_PHASE:
        _set_freed(t, book, side, enemies)
    _set_goals(t, book, side, slot, goals)


@kernel
def _set_freed(t, book, side, enemies):
    """VP a turn that each enemy squad's end would win or deny. Writes enemies."""
    sums = np.empty((2, OBJECTIVES), np.int64)
    control_sums(t, book, sums)
    for foe in range(t.squads[1 - side]):
        cell = t.cell[1 - side, foe]
        enemies[foe, FREES] = 0
        counts = np.int64(0 if cell < 0 or t.flags[1 - side, foe] & SHAKEN else near(t, book, cell))
        if counts:
            control = np.int64(book.profile[t.unit[1 - side, foe], CONTROL])
            for objective in range(OBJECTIVES):
                mine, theirs = sums[side, objective], sums[1 - side, objective]
                if counts >> objective & 1 and mine <= theirs:
                    wins, denies = mine > theirs - control, theirs > mine and theirs - control <= mine
                    vp = np.float32(book.vp[t.mission, objective])
                    enemies[foe, FREES] += vp * (np.float32(wins) + np.float32(denies))


@kernel
def _set_goals(t, book, side, slot, goals):
    """What standing at each objective is worth, and how much it is wanted. Writes goals."""
    sums = np.zeros((2, OBJECTIVES), np.int64)
    for who in range(2):
        for other in range(t.squads[who]):
            cell = t.cell[who, other]
            if cell < 0 or t.flags[who, other] & SHAKEN or (who == side and other == slot):
                continue
            counts = near(t, book, cell)
            for objective in range(OBJECTIVES):
                sums[who, objective] += book.profile[t.unit[who, other], CONTROL] * (counts >> objective & 1)
    own = 0 if t.flags[side, slot] & SHAKEN else np.int64(book.profile[t.unit[side, slot], CONTROL])
    for objective in range(OBJECTIVES):
        vp = np.float32(book.vp[t.mission, objective])
        if t.round + 1 < book.opens[t.mission, objective]:
            vp *= np.float32(0.5)
        mine, theirs = sums[side, objective], sums[1 - side, objective]
        goals[objective, _HERE] = goals[objective, _WANTED] = 0
        if vp == 0 or mine > theirs:
            continue
        wins = mine + own > theirs
        denies = theirs > mine and mine + own >= theirs
        goals[objective, _HERE] = vp * (np.float32(wins) + np.float32(denies))
        goals[objective, _WANTED] = vp * np.float32(1.0 if wins or denies else 0.5)


@kernel
def look_around(t, book, cell, rushes, reach, enemies, goals, out):
    """What standing on a cell promises a squad whose weapon reaches so far. Writes out."""
    path = book.path[t.board, cell]
    later = charge = fire = clash = 0.0
    shooters = chargers = 0
    nearest = FAR
    for foe in range(MAX_SQUADS):
        row = enemies[foe]
        there = np.int64(row[_CELL])
        if there < 0:
            continue
        inches = np.int64(path[there])
        nearest = min(nearest, np.float64(inches))
        sees, cover = seen_from(t, book, cell, there)
        if sees and row[_FREE]:
            apart = distance(cell, there)
            if apart <= reach:
                later = max(later, row[_SHOT_COVER] if cover else row[_SHOT])
            if apart <= row[_THEIR_RANGE] + row[_THEIR_MOVE] * 0.5:
                _, covered = seen_from(t, book, there, cell)
                fire += row[_THEIR_COVER] if covered else row[_THEIR_SHOT]
                shooters += 1
        need = max(_2, inches - 2)
        if not rushes and need <= 12:
            charge = max(charge, CHANCE[need] * row[_FIGHT])
        need = max(_2, inches - 2 - np.int64(row[_THEIR_MOVE]))
        if need <= 12:
            clash += CHANCE[need] * row[_THEIR_FIGHT]
            chargers += 1
    shot = 0.0 if rushes else later
    out[LATER], out[SHOOTERS], out[CHARGERS] = later, shooters, chargers
    out[SHOT_VALUE], out[CHARGE_VALUE], out[FIRE], out[CLASH], out[NEAR] = shot, charge, fire, clash, nearest
    look_for_goals(t, book, cell, goals, out)


@kernel
def look_for_goals(t, book, cell, goals, out):
    """The objectives' side of it. Writes out."""
    counts, gain, pull, way = near(t, book, cell), 0.0, -FAR, FAR
    for objective in range(OBJECTIVES):
        if counts >> objective & 1:
            gain += goals[objective, _HERE]
        if goals[objective, _WANTED] > 0:
            inches = max(0.0, np.float64(book.way[t.board, objective, cell]) - 4.0)
            if goals[objective, _WANTED] - INCH * inches > pull:
                pull, way = goals[objective, _WANTED] - INCH * inches, inches
    out[GAIN], out[PULL], out[WAY] = gain, pull if way < FAR else 0.0, way


@kernel
def _tactic(t, book, action, side, enemies, room, goals):
    """Points that a tactic should save or destroy. Writes room."""
    if action == FOCUS:
        best = 0.0
        for foe in range(MAX_SQUADS):
            if enemies[foe, _CELL] >= 0:
                if t.phase == SHOOT_PHASE and t.targets[side, t.slot] >> foe & 1:
                    best = max(best, enemies[foe, _SHOT])
                elif t.phase != SHOOT_PHASE and t.engaged[side, t.slot] >> foe & 1:
                    best = max(best, enemies[foe, _FIGHT])
        return best / 6
    if action == SURGE:
        return 4.0
    slot = action - (BRACE if action < RALLY else RALLY)
    survey(t, book, side, slot, enemies, goals)
    look_around(t, book, np.int64(t.cell[side, slot]), True, 0, enemies, goals, room)
    if action < RALLY:
        return 0.25 * (room[FIRE] + room[CLASH])
    return 10.0 if near(t, book, t.cell[side, slot]) else 1.0


@kernel
def _weigh_target(enemy, out):
    """What the share of a target that an attack should destroy comes to. Writes out."""
    share = out[VALUE] / enemy[LEFT]
    out[SHARE], out[THREAT], out[FREED] = share, share * enemy[SHOOTS], share * enemy[FREES]


@kernel
def promise(t, book, action, place, enemies, goals, ways, out):
    """What an option promises the squad that decides; `place` is the cell a move leads to. Writes out (PROMISES,).

    `enemies` and `goals` are a survey's, `ways` what its legal actions were found by.
    """
    side, slot = np.int64(t.side), np.int64(t.slot)
    out[:] = 0
    if action >= FOCUS:
        room = np.empty(PROMISES, np.float32)
        out[TACTIC] = _tactic(t, book, action, side, enemies.copy(), room, goals.copy())
    elif action == DEFER:
        out[WAIT] = 1
    elif slot == NOBODY:
        return
    elif action < SHOOT or (action == HOLD and t.phase == MOVE_PHASE):
        profile = book.profile[t.unit[side, slot]]
        engaged = t.engaged[side, slot] != 0
        rushes = action != HOLD and (engaged or not within(ways, STRAIGHT * np.int64(profile[MOVE]), place))
        look_around(t, book, place, rushes, np.int64(profile[_RANGED_RANGE]), enemies, goals, out)
        out[RUSHES] = rushes
        out[LOSS] = min(1.0, (out[FIRE] + out[CLASH]) / points_left(t, book, side, slot))
    elif action < CHARGE:
        foe = action - SHOOT
        bonus = save_bonus(t, book, RANGED, side, slot, foe)
        out[VALUE] = worth(t, book, 1 - side, foe) * expected(t, book, RANGED, side, slot, foe, bonus)
        _weigh_target(enemies[foe], out)
    elif action < HOLD:
        foe, chance = action - FIGHT, 1.0
        if action < FIGHT:
            foe = action - CHARGE
            need, cell = charge_way(t, side, foe, ways)
            chance = CHANCE[max(2, need - (SURGE_INCHES if t.boost else 0))]
            look_for_goals(t, book, cell, goals, out)
            out[LANDING], out[PULL], out[WAY] = chance * out[GAIN], 0.0, 0.0
            out[NEAR] = need
        out[VALUE], out[RISK] = chance * enemies[foe, _FIGHT], chance * enemies[foe, _THEIR_FIGHT]
        out[GAIN] = near(t, book, t.cell[1 - side, foe]) != 0
        _weigh_target(enemies[foe], out)
