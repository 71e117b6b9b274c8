"""The course of a game: turns, phases, whose turn it is to decide, what an action does."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.games.rewards import pay
from maple.games.wargame.book import LEADERSHIP, MELEE, MOVE, RANGED
from maple.games.wargame.combat import attack, below_half, destroyed_points, dice_key, note, pay_vp, roll_two
from maple.games.wargame.content import OBJECTIVES, STRAIGHT
from maple.games.wargame.ground import (
    CHARGE_RANGE,
    WAYS,
    cell_at,
    charge_way,
    controlled,
    distance,
    find_ways,
    refresh,
    within,
)
from maple.games.wargame.legal import only_action
from maple.games.wargame.setup import set_up
from maple.games.wargame.state import (
    BRACE,
    BRACED,
    CHARGE,
    CHARGED,
    COMMAND_PHASE,
    COMPONENTS,
    DEFER,
    DEFERRED,
    DONE,
    FIGHT,
    FIGHT_PHASE,
    FOCUS,
    HOLD,
    MOVE_PHASE,
    NERVE,
    NOBODY,
    RALLY,
    ROUND_LIMIT,
    RUN,
    RUSHED,
    SHAKEN,
    SHOOT,
    STEP_CAP,
    SURGE,
    USED_BRACE,
    USED_FOCUS,
    USED_RALLY,
    USED_SURGE,
    WIPE_OUT,
)

__all__ = ["MAX_COMMAND", "PLAYING", "SURGE_INCHES", "TERMINATED", "TRUNCATED", "advance", "begin_game", "settle"]

MAX_COMMAND = 3  # points for tactics that a side can save up
SURGE_INCHES = 2
BOOST_FOCUS, BOOST_SURGE = 1, 2  # TABLE.boost
PLAYING, TERMINATED, TRUNCATED = 0, 1, 2
_WIN, _MARGIN, _VP, _DAMAGE, _HOLD = range(5)


@kernel
def _score(t, book, rules, side):
    """VP for the open objectives that a side controls. Writes t."""
    first, second = controlled(t, book)
    mine = second if side else first
    vp = held = 0
    for objective in range(OBJECTIVES):
        if mine >> objective & 1 and t.round >= book.opens[t.mission, objective]:
            vp += book.vp[t.mission, objective]
            held += 1
    if held:
        t.scored[side] += vp
        pay_vp(t, rules, side, vp)
        t.pending[side, _HOLD] += np.float32(held)
        t.pending[1 - side, _HOLD] -= np.float32(held)


@kernel
def _score_both(t, book, rules):
    """The last scoring, at the end of the game. Writes t."""
    _score(t, book, rules, 0)
    _score(t, book, rules, 1)


@kernel
def _begin_turn(t, book, rules, seed):
    """The command phase: a point for tactics, nerves, objectives. Writes t."""
    side = t.turn
    t.phase, t.side, t.slot, t.boost, t.tactics[side] = COMMAND_PHASE, side, NOBODY, 0, 0
    t.command[side] = min(MAX_COMMAND, t.command[side] + 1)
    for slot in range(t.squads[side]):
        if t.cell[side, slot] < 0:
            continue
        t.flags[side, slot] = 0
        if below_half(t, book, side, slot):
            nerve, _ = roll_two(dice_key(t, seed, side, slot))
            steady_on = book.profile[t.unit[side, slot], LEADERSHIP]
            note(t, NERVE, side, slot, 0, (nerve, steady_on, 0, 0, 0))
            if nerve < steady_on:
                t.flags[side, slot] = SHAKEN
    _score(t, book, rules, side)


@kernel
def _begin_phase(t, phase):
    """Let every squad act again. Writes t."""
    t.phase, t.boost, t.slot = phase, 0, NOBODY
    for side in range(2):
        for slot in range(t.squads[side]):
            if t.cell[side, slot] >= 0:
                t.flags[side, slot] &= ~np.uint8(DONE | DEFERRED)
    t.fighter = 1 - t.turn


@kernel
def _next_in_order(t, side, engaged_only, chargers_only):
    """The next squad of a side: in slot order, those that deferred after the others; NOBODY if all have acted."""
    for later in range(2):
        for slot in range(t.squads[side]):
            flags = t.flags[side, slot]
            if t.cell[side, slot] < 0 or flags & DONE or (flags & DEFERRED != 0) != (later == 1):
                continue
            if engaged_only and (t.engaged[side, slot] == 0 or (chargers_only and not flags & CHARGED)):
                continue
            return slot
    return NOBODY


@kernel
def _find_actor(t):
    """The squad that acts next in this phase; False when all have. Writes t."""
    if t.boost:
        return True  # it has chosen a tactic and now acts
    if t.phase != FIGHT_PHASE:
        t.side, t.slot = t.turn, _next_in_order(t, t.turn, False, False)
        return t.slot != NOBODY
    t.side, t.slot = t.turn, _next_in_order(t, t.turn, True, True)
    if t.slot != NOBODY:
        return True
    first = np.int64(t.fighter)
    for who in (first, 1 - first):
        t.side, t.slot = who, _next_in_order(t, who, True, False)
        if t.slot != NOBODY:
            return True
    return False


@kernel
def _wiped_out(t, side):
    """Whether a side has no squad left."""
    left = 0
    for slot in range(t.squads[side]):
        left += t.cell[side, slot] >= 0
    return left == 0


@kernel
def _go(t, side, slot, cell):
    """Put a squad on a cell. Writes t."""
    t.cell[side, slot] = cell
    t.stale[side] |= np.uint8(1 << slot)


@kernel
def _move(t, book, side, slot, place, ways):
    """Move, rush or fall back to a place of the window. Writes t, ways."""
    near = STRAIGHT * np.int64(book.profile[t.unit[side, slot], MOVE])
    cell = cell_at(side, np.int64(t.cell[side, slot]), place)
    rushes = t.engaged[side, slot] != 0 or distance(np.int64(t.cell[side, slot]), cell) > near
    if not rushes:
        find_ways(t, book, side, slot, near, ways)
        rushes = not within(ways, near, cell)
    if rushes:
        t.flags[side, slot] |= RUSHED
    _go(t, side, slot, cell)


@kernel
def _charge(t, book, seed, side, slot, foe, ways):
    """Roll for the way to an enemy and go there if it is enough. Writes t, ways."""
    find_ways(t, book, side, slot, CHARGE_RANGE, ways)
    need, cell = charge_way(t, side, foe, ways)
    inches, _ = roll_two(dice_key(t, seed, side, slot))
    inches += SURGE_INCHES if t.boost == BOOST_SURGE else 0
    note(t, RUN, side, slot, foe, (inches, need, 0, 0, 0))
    if inches >= need:
        t.flags[side, slot] |= CHARGED
        t.charges[side] += 1
        _go(t, side, slot, cell)


@kernel
def _use_tactic(t, action, side):
    """Spend a point. Writes t."""
    t.command[side] -= 1
    if action == FOCUS:
        t.tactics[side] |= USED_FOCUS
        t.boost = BOOST_FOCUS
    elif action == SURGE:
        t.tactics[side] |= USED_SURGE
        t.boost = BOOST_SURGE
    elif action < RALLY:
        t.tactics[side] |= USED_BRACE
        t.flags[side, action - BRACE] |= BRACED
    else:
        t.tactics[side] |= USED_RALLY
        t.flags[side, action - RALLY] &= ~np.uint8(SHAKEN)


@kernel
def _act(t, book, rules, seed, action, ways):
    """What an action of the squad that decides does; whatever it changes is looked up again. Writes t, ways."""
    side, slot = np.int64(t.side), np.int64(t.slot)
    if action >= FOCUS:
        _use_tactic(t, action, side)
        return
    if t.phase == COMMAND_PHASE:
        _begin_phase(t, MOVE_PHASE)
        return
    if action == DEFER:
        t.flags[side, slot] |= DEFERRED
        return
    if action < SHOOT:
        _move(t, book, side, slot, action, ways)
    elif action < CHARGE:
        attack(t, book, rules, seed, RANGED, side, slot, action - SHOOT, t.boost == BOOST_FOCUS)
    elif action < FIGHT:
        _charge(t, book, seed, side, slot, action - CHARGE, ways)
    elif action < HOLD:
        if side != t.turn or not t.flags[side, slot] & CHARGED:
            t.fighter = 1 - side
        attack(t, book, rules, seed, MELEE, side, slot, action - FIGHT, t.boost == BOOST_FOCUS)
    t.flags[side, slot] |= DONE
    t.boost = 0
    refresh(t, book)


@kernel
def settle(t, book, rules, seed):
    """Go on to the next real decision; returns why the game ended, or 0. Writes t.

    A squad with nothing to choose is passed over, or does the only thing that it can.
    """
    ways = np.empty(WAYS, np.uint64)
    while True:
        if t.kills[0] + t.kills[1] and (_wiped_out(t, 0) or _wiped_out(t, 1)):
            _score_both(t, book, rules)
            return WIPE_OUT
        if t.phase == COMMAND_PHASE or _find_actor(t):
            only = only_action(t, book, ways)
            if only < 0:
                return 0
            _act(t, book, rules, seed, only, ways)
        elif t.phase < FIGHT_PHASE:
            _begin_phase(t, t.phase + 1)
        else:
            t.turn = 1 - t.turn
            if t.turn == t.first:
                if t.round >= rules.rounds:
                    _score_both(t, book, rules)
                    return ROUND_LIMIT
                t.round += 1
            _begin_turn(t, book, rules, seed)


@kernel
def begin_game(t, book, rules, seed, deal, game):
    """Set up a game and go on to its first decision. Writes t."""
    set_up(t, book, rules, seed, deal, game)
    refresh(t, book)
    _begin_turn(t, book, rules, seed)
    settle(t, book, rules, seed)


@kernel
def _points_left(t, book, side):
    """Points that a side still has on the board, and those that it began with."""
    left = whole = 0
    for slot in range(t.squads[side]):
        points = destroyed_points(book, t.unit[side, slot], 0)
        whole += points
        left += points - destroyed_points(book, t.unit[side, slot], np.int64(t.models[side, slot]))
    return left, whole


@kernel
def _winner(t, book):
    """The side that has won, or -1: by VP, then by surviving points."""
    mine, theirs = np.int64(t.vp[0]), np.int64(t.vp[1])
    if mine == theirs:
        mine, theirs = _points_left(t, book, 0)[0], _points_left(t, book, 1)[0]
    return -1 if mine == theirs else (0 if mine > theirs else 1)


@kernel
def _record_end(t, book, rules, reason, end):
    """Pay what is still due and copy the figures of a finished game. Writes t, end."""
    winner = _winner(t, book)
    end.how = TRUNCATED if reason == STEP_CAP else TERMINATED
    end.end_reason, end.winner, end.hands, end.length = reason, winner, 1, t.decision[0] + t.decision[1]
    end.mission, end.board, end.first, end.round = t.mission, t.board, t.first, t.round
    for side in range(2):
        if reason != STEP_CAP:
            # A potential is worth nothing at the end, so what it paid on the way is taken back.
            t.pending[side, _MARGIN] -= np.float32((t.vp[side] - t.vp[1 - side]) / rules.vp_scale)
            t.pending[side, _WIN] += np.float32(0 if winner < 0 else (1 if winner == side else -1))
        left, whole = _points_left(t, book, side)
        end.health[side] = left / max(1, whole)
        end.score[side] = 0.5 if winner < 0 else (1.0 if winner == side else 0.0)
        due = pay(t.pending[side], rules.weight, rules.every, t.decision[side], True, t.parts[side])
        end.reward[side, 0] = due
        for c in range(len(COMPONENTS)):
            end.parts[side, c] = t.parts[side, c]
        end.vp[side], end.scored[side], end.destroyed[side] = t.vp[side], t.scored[side], t.destroyed[side]
        end.kills[side], end.charges[side], end.decisions[side] = t.kills[side], t.charges[side], t.decision[side]


@kernel
def advance(t, book, rules, seed, action, end):
    """Play one action of the squad that decides, up to the next decision or the end of the game. Writes t, end."""
    ways = np.empty(WAYS, np.uint64)
    t.decision[t.side] += 1
    t.reward[t.side, 0] = 0.0
    t.rolled = 0
    _act(t, book, rules, seed, np.int64(action), ways)
    reason = settle(t, book, rules, seed)
    if reason == 0 and t.decision[0] + t.decision[1] >= rules.step_cap:
        reason = STEP_CAP
    end.how = PLAYING
    if reason:
        _record_end(t, book, rules, reason, end)
        return
    who = t.side
    t.reward[who, 0] = pay(t.pending[who], rules.weight, rules.every, t.decision[who], False, t.parts[who])
