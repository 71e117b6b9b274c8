"""Dice: attacks that hit, wound and are saved, tests of nerve, and what comes of them."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.wargame.book import ATTACKS, DAMAGE, MODELS, POINTS, RANGED, WOUNDS, weapon_column
from maple.games.wargame.content import MAX_SQUADS
from maple.games.wargame.ground import seen_from
from maple.games.wargame.state import BRACED, DONE, ROLLS, SHOT

__all__ = [
    "attack",
    "below_half",
    "destroyed_points",
    "dice_key",
    "expected",
    "note",
    "pay_vp",
    "roll_d6",
    "roll_two",
    "save_bonus",
]

_DEAL = int(Purpose.DEAL)
_FIRST = weapon_column(RANGED, 0)
_WIN, _MARGIN, _VP, _DAMAGE, _HOLD, _LUCK = range(6)
DAMAGE_SCALE = 0.01  # of points destroyed


@kernel
def dice_key(t, seed, side, slot):
    """Where the dice of a squad's act begin: it acts once a phase, so paired games throw the same for the same act."""
    return key(seed, _DEAL, t.deal, t.round, 1 + t.turn, side * 8 + slot, t.phase)


@kernel
def roll_d6(state):
    """A die from 1 to 6, and the stream after it."""
    state = stream_next(state)
    return bounded(scramble(state), 6) + 1, state


@kernel
def roll_two(state):
    """The sum of two dice, and the stream after them."""
    first, state = roll_d6(state)
    second, state = roll_d6(state)
    return first + second, state


@kernel
def note(t, kind, side, slot, foe, figures):
    """Keep a throw of dice for those who watch. Writes t."""
    if t.rolled < ROLLS:
        row = t.rolls[t.rolled]
        row[0], row[1], row[2] = kind, side * MAX_SQUADS + slot, foe
        row[3], row[4], row[5], row[6], row[7] = figures
        t.rolled += 1


@kernel
def below_half(t, book, side, slot):
    """Whether a squad is below half strength: of its models, or of a single model's wounds."""
    profile = book.profile[t.unit[side, slot]]
    if profile[MODELS] == 1:
        return 2 * t.wounds[side, slot] < profile[WOUNDS]
    return 2 * t.models[side, slot] < profile[MODELS]


@kernel
def destroyed_points(book, unit, models):
    """Points that a squad with so many models left has cost its side."""
    profile = book.profile[unit]
    return np.int64(profile[POINTS]) * (np.int64(profile[MODELS]) - models) // np.int64(profile[MODELS])


@kernel
def save_bonus(t, book, kind, side, slot, foe):
    """What cover and bracing add to the target's save."""
    bonus = 1 if t.flags[1 - side, foe] & BRACED else 0
    if kind == RANGED:
        _, cover = seen_from(t, book, np.int64(t.cell[side, slot]), np.int64(t.cell[1 - side, foe]))
        bonus += cover
    return bonus


@kernel
def expected(t, book, kind, side, slot, foe, bonus):
    """Wounds that an attack is expected to cause, as far as the target has them."""
    each = book.expect[kind, t.unit[side, slot], t.unit[1 - side, foe], bonus]
    left = (t.models[1 - side, foe] - 1) * book.profile[t.unit[1 - side, foe], WOUNDS] + t.wounds[1 - side, foe]
    return min(np.float32(left), each * np.float32(t.models[side, slot]))


@kernel
def pay_vp(t, rules, side, vp):
    """Give a side VP. Writes t."""
    t.vp[side] += vp
    for who in range(2):
        sign = 1.0 if who == side else -1.0
        t.pending[who, _MARGIN] += np.float32(sign * vp / rules.vp_scale)
        t.pending[who, _VP] += np.float32(sign * vp)


@kernel
def attack(t, book, rules, seed, kind, side, slot, foe, focus):
    """One squad attacks another: hits, wounds, saves, damage model by model. Writes t."""
    unit, target = t.unit[side, slot], t.unit[1 - side, foe]
    weapon = _weapon_first(kind)
    throws = np.int64(t.models[side, slot]) * book.profile[unit, weapon + ATTACKS]
    damage, size = np.int64(book.profile[unit, weapon + DAMAGE]), np.int64(book.profile[target, WOUNDS])
    hit_on, wound_on = book.hit_on[kind, unit], book.wound_on[kind, unit, target]
    save_on = book.save_on[kind, unit, target, save_bonus(t, book, kind, side, slot, foe)]
    state = dice_key(t, seed, side, slot)
    through = _chance_of(hit_on, focus) * _chance_of(wound_on, False) * (1.0 - _saved(save_on))
    hits = wounds = unsaved = 0
    awaited = 0.0
    left, front = np.int64(t.models[1 - side, foe]), np.int64(t.wounds[1 - side, foe])
    for _ in range(throws):
        awaited += through
        die, state = roll_d6(state)
        if die == 1 and focus:
            die, state = roll_d6(state)
        if die == 1 or (die < hit_on and die != 6):
            continue
        hits += 1
        die, state = roll_d6(state)
        if die < wound_on:
            continue
        wounds += 1
        die, state = roll_d6(state)
        if die != 1 and die >= save_on:
            continue
        unsaved += 1
        front -= damage
        if front <= 0:
            left, front = left - 1, size
            if left == 0:
                break
    lost = np.int64(t.models[1 - side, foe]) - left
    note(t, SHOT + kind, side, slot, foe, (throws, hits, wounds, unsaved, lost))
    # Each throw is set against its own chance, so what is added up is zero on average whatever is done.
    profile = book.profile[target]
    blows = np.float32(profile[MODELS] * ((size + damage - 1) // damage))
    luck = np.float32((unsaved - awaited) * DAMAGE_SCALE) * np.float32(profile[POINTS]) / blows
    t.pending[side, _LUCK] += luck
    t.pending[1 - side, _LUCK] -= luck
    _take_losses(t, book, rules, side, foe, left, front)


@kernel
def _chance_of(roll, again):
    """That a d6 shows `roll` or more, or a 6, and no 1; with ones thrown again once."""
    chance = (7 - min(6, max(2, roll))) / 6
    return chance * (7 / 6 if again else 1.0)


@kernel
def _saved(roll):
    """That a save succeeds: a 1 never does, a 7 is never thrown."""
    return max(0, 7 - max(2, roll)) / 6


@kernel
def _weapon_first(kind):
    """The first column of a weapon."""
    return _FIRST + 6 * kind


@kernel
def _take_losses(t, book, rules, side, foe, left, front):
    """What is left of a squad of the other side, and what that pays `side`. Writes t."""
    other = 1 - side
    target = t.unit[other, foe]
    before = destroyed_points(book, target, np.int64(t.models[other, foe]))
    t.models[other, foe], t.wounds[other, foe] = left, front
    points = destroyed_points(book, target, left) - before
    if points:
        per_vp = np.int64(book.points_per_vp[t.mission])
        vp = (t.destroyed[side] + points) // per_vp - t.destroyed[side] // per_vp
        t.destroyed[side] += points
        t.pending[side, _DAMAGE] += np.float32(points * DAMAGE_SCALE)
        t.pending[other, _DAMAGE] -= np.float32(points * DAMAGE_SCALE)
        if vp:
            pay_vp(t, rules, side, vp)
    if left == 0:
        t.cell[other, foe] = -1
        t.flags[other, foe] = DONE
        t.wounds[other, foe] = 0
        t.stale[other] |= np.uint8(1 << foe)
        t.kills[side] += 1
