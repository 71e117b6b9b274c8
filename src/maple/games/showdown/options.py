"""Described options: each open move or switch by its own features, so that one network scores what it never saw there.

Features are rows of a first layer, so ids (species, items, abilities, moves) are embeddings. What the options of a
decision share is in `shared.py`. An option is one part. Damage and other numbers come in steps.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.core.spec import OptionSpec
from maple.games.showdown.layout import (
    ABILITIES,
    ACTIONS,
    ACTIVE,
    D_DEALT,
    D_TAKEN,
    FAINTED,
    FASTER,
    FIRST_SWITCH,
    ITEMS,
    KNOWN,
    M_ACCURACY,
    M_CATEGORY,
    M_DAMAGE,
    M_EFFECT,
    M_GIMMICK,
    M_MOVE,
    M_POWER,
    M_PP,
    M_PRIORITY,
    M_TYPE,
    MASK,
    MOVE_IDS,
    MOVE_STRIDE,
    MOVES,
    P_ABILITY,
    P_FLAGS,
    P_HP,
    P_ITEM,
    P_MOVES,
    P_SPECIES,
    P_STATUS,
    P_TYPES,
    POKEMON_STRIDE,
    REQUEST,
    S_DEALT,
    S_ENTRY,
    S_FASTER,
    S_TAKEN,
    SPECIES,
    SWITCH_STRIDE,
    TEAM,
    TYPES,
    eighths,
    places,
    sixteenths,
    word,
)
from maple.games.showdown.schema import load_schema
from maple.games.showdown.shared import SHARED_FEATURES, SHARED_WIDTH, describe_shared

__all__ = ["count_options", "describe", "describe_choice", "describe_state", "option_spec", "places"]

PART_WIDTH = 16
ALL = 128  # a share of damage that takes all there is
# Features of an option.
_KIND = SHARED_FEATURES  # a move, one with the gimmick, a switch, a forced one, a pick
_MOVE = _KIND + 5
_MOVE_TYPE = _MOVE + MOVE_IDS
_CATEGORY = _MOVE_TYPE + TYPES
_EFFECT = _CATEGORY + 3
_DAMAGE = _EFFECT + 6  # plain and with the gimmick
_DUEL = _DAMAGE + 2 * 17  # who moves first, whether it should end theirs, whether theirs should end mine
_ACCURACY = _DUEL + 12
_PRIORITY = _ACCURACY + 5
_PP = _PRIORITY + 17
_POWER = _PP + 5
_TO_OTHERS = _POWER + 9  # mean over those of theirs that may come in
_IN_SPECIES = _TO_OTHERS + 17
_IN_ITEM = _IN_SPECIES + SPECIES
_IN_ABILITY = _IN_ITEM + ITEMS
_IN_TYPE = _IN_ABILITY + ABILITIES
_IN_HP = _IN_TYPE + TYPES
_IN_STATUS = _IN_HP + 9
_IN_DEALT = _IN_STATUS + 8
_IN_TAKEN = _IN_DEALT + 17
_IN_ENTRY = _IN_TAKEN + 17
_IN_FASTER = _IN_ENTRY + 9
_IN_DUEL = _IN_FASTER + 3  # the same of who comes in, after the hazards
_IN_TO_OTHERS = _IN_DUEL + 12
_IN_BY_OTHERS = _IN_TO_OTHERS + 17
FEATURES = _IN_BY_OTHERS + 17


def option_spec() -> OptionSpec:
    """The sizes of what is described here."""
    limits = load_schema().limits
    assert (limits["species"], limits["items"], limits["abilities"], limits["moves"]) == (
        SPECIES,
        ITEMS,
        ABILITIES,
        MOVE_IDS,
    )
    return OptionSpec(
        features=FEATURES,
        option_parts=1,
        max_parts=ACTIONS,
        part_width=PART_WIDTH,
        shared_width=SHARED_WIDTH,
        state_width=SHARED_WIDTH + PART_WIDTH,
        max_options=ACTIONS,
        shares_all=True,
    )


@kernel
def _may_come_in(row, at, foe):
    flags = row[at[P_FLAGS] + (TEAM + foe) * at[POKEMON_STRIDE]]
    return (flags & (KNOWN | ACTIVE | FAINTED)) == KNOWN


@kernel
def _to_others(row, at, member, first, last):
    """The most that moves [first, last) of one of mine would do to each of theirs that may come in, on average."""
    total, count = 0, 0
    for foe in range(TEAM):
        if _may_come_in(row, at, foe):
            best = 0
            for k in range(first, last):
                best = max(best, row[at[D_DEALT] + (member * MOVES + k) * TEAM + foe])
            total += best
            count += 1
    return total // max(1, count)


@kernel
def _by_others(row, at, member):
    """The most that the known moves of those that may come in would do to one of mine, on average."""
    total, count = 0, 0
    for foe in range(TEAM):
        if _may_come_in(row, at, foe):
            worst = 0
            for k in range(MOVES):
                worst = max(worst, row[at[D_TAKEN] + (foe * MOVES + k) * TEAM + member])
            total += worst
            count += 1
    return total // max(1, count)


@kernel
def _describe_move(row, at, action, out):
    """A move, with the gimmick or not; returns how many features. Writes out."""
    special = 1 if action >= MOVES else 0
    base = (action % MOVES) * at[MOVE_STRIDE]
    move, priority = word(row, at[M_MOVE] + base), row[at[M_PRIORITY] + base]
    share = row[(at[M_GIMMICK] if special else at[M_DAMAGE]) + base]
    first = 1 if priority > 8 else 2 if priority < 8 else row[at[FASTER]]
    out[0] = _KIND + special
    out[1] = _MOVE + move
    out[2] = _MOVE_TYPE + row[at[M_TYPE] + base]
    out[3] = _CATEGORY + row[at[M_CATEGORY] + base]
    out[4] = _EFFECT + row[at[M_EFFECT] + base]
    out[5] = _DAMAGE + 17 * special + sixteenths(share)
    out[6] = _DUEL + 4 * first + (2 if share >= ALL else 0) + (1 if row[at[S_TAKEN]] >= ALL else 0)
    out[7] = _ACCURACY + min(4, row[at[M_ACCURACY] + base] // 25)
    out[8] = _PRIORITY + min(16, priority)
    out[9] = _PP + min(4, row[at[M_PP] + base] // 60)
    out[10] = _POWER + min(8, (word(row, at[M_POWER] + base) + 19) // 20)
    for k in range(MOVES):  # a locked move is offered alone, at the first place
        if word(row, at[P_MOVES] + 2 * k) == move:
            out[11] = _TO_OTHERS + sixteenths(_to_others(row, at, 0, k, k + 1))
            return 12
    return 11


@kernel
def _describe_switch(row, at, action, out):
    """A switch, forced or not, or a pick of team preview; returns how many features. Writes out."""
    member, request = action - FIRST_SWITCH, row[at[REQUEST]]
    base, beside, n = member * at[POKEMON_STRIDE], member * at[SWITCH_STRIDE], 12
    hp, entry = np.int64(row[at[P_HP] + base]), np.int64(row[at[S_ENTRY] + beside])
    dealt, taken = row[at[S_DEALT] + beside], np.int64(row[at[S_TAKEN] + beside])
    falls = taken * hp >= ALL * (hp - entry)  # what it takes is a share of what it has before the hazards
    out[0] = _KIND + (2 if request == 1 else 3 if request == 2 else 4)
    out[1] = _IN_SPECIES + word(row, at[P_SPECIES] + base)
    out[2] = _IN_HP + eighths(hp, 255)
    out[3] = _IN_STATUS + row[at[P_STATUS] + base]
    out[4] = _IN_DEALT + sixteenths(dealt)
    out[5] = _IN_TAKEN + sixteenths(taken)
    out[6] = _IN_ENTRY + eighths(entry, 255)
    out[7] = _IN_FASTER + row[at[S_FASTER] + beside]
    out[8] = _IN_TYPE + row[at[P_TYPES] + base]
    out[9] = _IN_DUEL + 4 * row[at[S_FASTER] + beside] + (2 if dealt >= ALL else 0) + (1 if falls else 0)
    out[10] = _IN_TO_OTHERS + sixteenths(_to_others(row, at, member, 0, MOVES))
    out[11] = _IN_BY_OTHERS + sixteenths(_by_others(row, at, member))
    second = row[at[P_TYPES] + base + 1]
    if second:
        out[n] = _IN_TYPE + second
        n += 1
    item, ability = word(row, at[P_ITEM] + base), word(row, at[P_ABILITY] + base)
    if item:
        out[n] = _IN_ITEM + item
        n += 1
    if ability:
        out[n] = _IN_ABILITY + ability
        n += 1
    return n


@kernel
def _describe_option(row, at, action, out):
    if action >= FIRST_SWITCH:
        return _describe_switch(row, at, action, out)
    return _describe_move(row, at, action, out)


@kernel
def count_options(seen, at, count, lo, hi):
    """How many actions are open in each of rows [lo, hi). Writes count."""
    for i in range(lo, hi):
        bits, total = word(seen[i], at[MASK]), 0
        for action in range(ACTIONS):
            total += (bits >> action) & 1
        count[i] = total


@kernel
def describe(seen, at, offset, shared, shared_length, part, part_length, option_part, action, lo, hi):
    """The open actions of rows [lo, hi), in order. Writes all but seen, at, offset."""
    for i in range(lo, hi):
        row, n = seen[i], offset[i]
        bits = word(row, at[MASK])
        shared_length[i] = describe_shared(row, at, shared[i])
        for a in range(ACTIONS):
            if (bits >> a) & 1:
                part_length[n] = _describe_option(row, at, a, part[n])
                option_part[n, 0] = n
                action[n] = a
                n += 1


@kernel
def describe_state(seen, at, feature, length, lo, hi):
    """The decision before any option is taken. Writes feature, length."""
    for i in range(lo, hi):
        length[i] = describe_shared(seen[i], at, feature[i])


@kernel
def describe_choice(seen, at, action, feature, length, lo, hi):
    """All features of the option taken in each of rows [lo, hi). Writes feature, length."""
    for i in range(lo, hi):
        n = describe_shared(seen[i], at, feature[i])
        length[i] = n + _describe_option(seen[i], at, np.int64(action[i]), feature[i, n:])
