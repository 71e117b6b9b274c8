"""What the squad that decides may do."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel, popcount
from maple.games.wargame.content import DIAGONAL, HEIGHT, MAX_SQUADS
from maple.games.wargame.ground import CHARGE_RANGE, STOP, charge_way, find_ways, list_moves, move_budget, shootable
from maple.games.wargame.state import (
    BRACE,
    CHARGE,
    CHARGE_PHASE,
    CHARGED,
    COMMAND_PHASE,
    DEFER,
    DEFERRED,
    DONE,
    FIGHT,
    FIGHT_PHASE,
    FOCUS,
    HOLD,
    MOVE_PHASE,
    RALLY,
    RUSHED,
    SHAKEN,
    SHOOT,
    SHOOT_PHASE,
    SURGE,
    USED_BRACE,
    USED_FOCUS,
    USED_RALLY,
    USED_SURGE,
)

__all__ = ["can_use", "legal_actions", "only_action"]


@kernel
def can_use(t, tactic, side, slot):
    """Whether a side can spend a point on a tactic for a squad: once a turn each, and not for a shaken squad."""
    return t.command[side] > 0 and not t.tactics[side] & tactic and not t.flags[side, slot] & SHAKEN


@kernel
def _charge_targets(t, book, side, slot, ways):
    """Bits: the enemies that a squad may charge. Writes ways if any is near."""
    if t.flags[side, slot] & RUSHED or t.engaged[side, slot]:
        return 0
    near = False
    for foe in range(t.squads[1 - side]):
        there = t.cell[1 - side, foe]
        # Ways around squads are never shorter than those around walls; the last step is at most three inches.
        near = near or (there >= 0 and book.path[t.board, t.cell[side, slot], there] <= CHARGE_RANGE + 3)
    if not near:
        return 0
    find_ways(t, book, side, slot, CHARGE_RANGE, ways)
    bits = 0
    for foe in range(t.squads[1 - side]):
        if t.cell[1 - side, foe] >= 0 and charge_way(t, side, foe, ways)[0] <= CHARGE_RANGE:
            bits |= 1 << foe
    return bits


@kernel
def _can_defer(t, side, slot):
    """Whether a squad may still let the others of its side go first."""
    if t.flags[side, slot] & DEFERRED or t.boost:
        return False
    fight = t.phase == FIGHT_PHASE
    for other in range(t.squads[side]):
        waits = t.cell[side, other] >= 0 and not t.flags[side, other] & (DONE | DEFERRED)
        if fight:
            same_stage = (t.flags[side, other] & CHARGED) == (t.flags[side, slot] & CHARGED)
            waits = waits and t.engaged[side, other] != 0 and (same_stage or side != t.turn)
        if waits and other != slot:
            return True
    return False


@kernel
def legal_actions(t, book, legal, ways):
    """The actions of the squad that decides, in order; returns how many. Writes legal, ways.

    `legal` has room for ACTIONS. In the move and charge phases `ways` tells where the squad can go.
    """
    side, slot, n = np.int64(t.side), np.int64(t.slot), 0
    if t.phase == MOVE_PHASE:
        budget = move_budget(t, book, side, slot)
        find_ways(t, book, side, slot, budget, ways)
        n = list_moves(t, side, slot, budget, ways, legal)
    elif t.phase == COMMAND_PHASE:
        legal[0] = HOLD
        return 1 + _command_actions(t, side, legal[1:])
    else:
        bits, first = np.int64(t.engaged[side, slot]), FIGHT
        if t.phase == SHOOT_PHASE:
            bits, first = np.int64(shootable(t, side, slot)), SHOOT
        elif t.phase == CHARGE_PHASE:
            bits, first = np.int64(_charge_targets(t, book, side, slot, ways)), CHARGE
        for foe in range(MAX_SQUADS):
            if bits >> foe & 1:
                legal[n] = first + foe
                n += 1
    if t.phase != FIGHT_PHASE:
        legal[n] = HOLD
        n += 1
    if _can_defer(t, side, slot):
        legal[n] = DEFER
        n += 1
    if (t.phase == SHOOT_PHASE or t.phase == FIGHT_PHASE) and can_use(t, USED_FOCUS, side, slot):
        legal[n] = FOCUS
        n += 1
    if t.phase == CHARGE_PHASE and can_use(t, USED_SURGE, side, slot):
        legal[n] = SURGE
        n += 1
    return n


@kernel
def _command_actions(t, side, legal):
    """Tactics of the command phase; returns how many. Writes legal."""
    n = 0
    for slot in range(t.squads[side]):
        if t.cell[side, slot] >= 0 and can_use(t, USED_BRACE, side, slot):
            legal[n] = BRACE + slot
            n += 1
    if t.command[side] and not t.tactics[side] & USED_RALLY:
        for slot in range(t.squads[side]):
            if t.flags[side, slot] & SHAKEN:
                legal[n] = RALLY + slot
                n += 1
    return n


@kernel
def _can_move(t, book, side, slot, ways):
    """Whether there is any cell to go to; the nearest ones are looked at first. Writes ways."""
    budget = move_budget(t, book, side, slot)
    for inches in (min(budget, DIAGONAL), budget):
        find_ways(t, book, side, slot, inches, ways)
        for y in range(1, HEIGHT + 1):
            if ways[inches, y] & ways[STOP, y]:
                return True
    return False


@kernel
def only_action(t, book, ways):
    """The action of a squad that has no choice, or -1 if it has one. Writes ways."""
    side, slot = np.int64(t.side), np.int64(t.slot)
    if t.phase == COMMAND_PHASE:
        room = np.empty(2 * MAX_SQUADS, np.int16)
        return -1 if _command_actions(t, side, room) else HOLD
    if t.phase == SHOOT_PHASE:
        return -1 if shootable(t, side, slot) else HOLD
    if t.phase == CHARGE_PHASE:
        return -1 if _charge_targets(t, book, side, slot, ways) else HOLD
    if t.phase == FIGHT_PHASE:
        bits = np.uint64(t.engaged[side, slot])
        if popcount(bits) > 1 or can_use(t, USED_FOCUS, side, slot) or _can_defer(t, side, slot):
            return -1
        foe = 0
        while not t.engaged[side, slot] >> foe & 1:
            foe += 1
        return FIGHT + foe
    return -1 if _can_move(t, book, side, slot, ways) else HOLD
