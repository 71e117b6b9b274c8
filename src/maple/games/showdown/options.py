"""Described options: each open move or switch by its own features, so that one network scores what it never saw there.

Features are rows of a first layer, so ids (species, items, abilities, moves) are embeddings. What the options of a
decision share is the battle as the seat sees it: the field, both sides, and twelve Pokémon in four roles. Those of a
bench share their rows, whatever their order. An option is one part.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.core.spec import OptionSpec
from maple.games.showdown.schema import load_schema

__all__ = ["count_options", "describe", "describe_choice", "describe_state", "option_spec", "places"]

ACTIONS, MOVES, FIRST_SWITCH, TEAM = 14, 4, 8, 6
PART_WIDTH, SHARED_WIDTH = 12, 340
SPECIES, ITEMS, ABILITIES, MOVE_IDS, TYPES = 2048, 1024, 512, 1024, 20
ROLES = 4  # my active one, my bench, theirs
# Features of a Pokémon in one role.
_ITEM = SPECIES
_ABILITY = _ITEM + ITEMS
_KNOWN = _ABILITY + ABILITIES
_TYPE = _KNOWN + MOVE_IDS
_HP = _TYPE + TYPES  # empty, then eighths
_STATUS = _HP + 9
_DEALT = _STATUS + 8
_TAKEN = _DEALT + 17
_MARKED = _TAKEN + 17  # mine: picked in team preview; theirs: only seen there
ROLE = _MARKED + 1
# Features of the decision.
_BOOST = ROLES * ROLE  # of both active ones: 7 × 13 each
_VOLATILE = _BOOST + 2 * 7 * 13
_TERA = _VOLATILE + 2 * 64
_SIDE = _TERA + 2 * (TYPES + 1)  # both sides: 10 conditions × 3 levels, then how many remain
_TURN = _SIDE + 2 * (30 + 7)  # request, gimmick, trapped, weather, terrain, rooms, faster, by their values
# Features of an option.
_KIND = _TURN + 7 * 16  # a move, one with the gimmick, a switch, a forced one, a pick
_MOVE = _KIND + 5
_MOVE_TYPE = _MOVE + MOVE_IDS
_CATEGORY = _MOVE_TYPE + TYPES
_EFFECT = _CATEGORY + 3
_DAMAGE = _EFFECT + 6  # plain and with the gimmick
_KILLS = _DAMAGE + 2 * 17  # whether it should do, by who is faster
_ACCURACY = _KILLS + 6
_PRIORITY = _ACCURACY + 5
_PP = _PRIORITY + 17
_IN_SPECIES = _PP + 5
_IN_TYPE = _IN_SPECIES + SPECIES
_IN_HP = _IN_TYPE + TYPES
_IN_STATUS = _IN_HP + 9
_IN_DEALT = _IN_STATUS + 8
_IN_TAKEN = _IN_DEALT + 17
_IN_ENTRY = _IN_TAKEN + 17
_IN_FASTER = _IN_ENTRY + 9
FEATURES = _IN_FASTER + 3

_PLACES = (
    *(("turn", name) for name in ("mask", "request", "gimmick", "trapped", "weather", "terrain", "rooms", "faster")),
    *(("side", name) for name in ("conditions", "remaining")),
    *(("pokemon", name) for name in ("species", "item", "ability", "moves", "volatiles", "types", "tera", "hp")),
    *(("pokemon", name) for name in ("flags", "status", "boosts")),
    *(("move", name) for name in ("move", "type", "category", "accuracy", "priority", "effectiveness", "damage")),
    *(("move", name) for name in ("gimmick_damage", "pp")),
    *(("switch", name) for name in ("dealt", "taken", "entry", "faster")),
)
(
    MASK, REQUEST, GIMMICK, TRAPPED, WEATHER, TERRAIN, ROOMS, FASTER,
    CONDITIONS, REMAINING,
    P_SPECIES, P_ITEM, P_ABILITY, P_MOVES, P_VOLATILES, P_TYPES, P_TERA, P_HP,
    P_FLAGS, P_STATUS, P_BOOSTS,
    M_MOVE, M_TYPE, M_CATEGORY, M_ACCURACY, M_PRIORITY, M_EFFECT, M_DAMAGE,
    M_GIMMICK, M_PP,
    S_DEALT, S_TAKEN, S_ENTRY, S_FASTER,
) = range(len(_PLACES))  # fmt: skip
SIDE_STRIDE, POKEMON_STRIDE, MOVE_STRIDE, SWITCH_STRIDE = (len(_PLACES) + i for i in range(4))


@cache
def places() -> NDArray[np.int64]:
    """Where things are in a view: an argument, since compiled code must not outlive a change of the schema."""
    groups = load_schema().groups
    strides = [groups[name].stride for name in ("side", "pokemon", "move", "switch")]
    return np.array([*(groups[group].byte(field) for group, field in _PLACES), *strides], np.int64)


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
    )


@kernel
def _word(row, at):
    return np.int64(row[at]) | (np.int64(row[at + 1]) << 8)


@kernel
def _eighths(byte, whole):
    """0 for nothing, else 1 to 8."""
    return min(8, (np.int64(byte) * 8 + whole - 1) // whole)


@kernel
def _sixteenths(byte):
    """A share of damage, from 0 to 16: twice all there is, or more."""
    return min(16, np.int64(byte) // 15)


@kernel
def _pokemon(row, at, number, out):
    """The features of one Pokémon in its role; returns how many. Writes out."""
    base = number * at[POKEMON_STRIDE]
    flags = row[at[P_FLAGS] + base]
    if flags == 0:
        return 0
    role = (0 if number < TEAM else 2) + (0 if flags & 2 else 1)
    first, n = role * ROLE, 0
    out[n] = first + _word(row, at[P_SPECIES] + base)
    out[n + 1] = first + _HP + _eighths(row[at[P_HP] + base], 255)
    out[n + 2] = first + _STATUS + row[at[P_STATUS] + base]
    n += 3
    if flags & 8:
        out[n] = first + _MARKED
        n += 1
    if flags & 4:
        return n
    item, ability = _word(row, at[P_ITEM] + base), _word(row, at[P_ABILITY] + base)
    if item:
        out[n] = first + _ITEM + item
        n += 1
    if ability:
        out[n] = first + _ABILITY + ability
        n += 1
    for k in range(2):
        kind = row[at[P_TYPES] + base + k]
        if kind:
            out[n] = first + _TYPE + kind
            n += 1
    for k in range(MOVES):
        move = _word(row, at[P_MOVES] + base + 2 * k)
        if move:
            out[n] = first + _KNOWN + move
            n += 1
    if number < TEAM:
        beside = number * at[SWITCH_STRIDE]
        out[n] = first + _DEALT + _sixteenths(row[at[S_DEALT] + beside])
        out[n + 1] = first + _TAKEN + _sixteenths(row[at[S_TAKEN] + beside])
        n += 2
    return n


@kernel
def _active(row, at, which, out):
    """Boosts, volatile states and tera type of an active Pokémon; returns how many. Writes out."""
    base, n = which * TEAM * at[POKEMON_STRIDE], 0
    for k in range(7):
        stage = row[at[P_BOOSTS] + base + k]
        if stage != 6 and row[at[P_FLAGS] + base]:
            out[n] = _BOOST + (which * 7 + k) * 13 + stage
            n += 1
    for k in range(4):
        bits = _word(row, at[P_VOLATILES] + base + 2 * k)
        for bit in range(16):
            if (bits >> bit) & 1:
                out[n] = _VOLATILE + which * 64 + 16 * k + bit
                n += 1
    out[n] = _TERA + which * (TYPES + 1) + row[at[P_TERA] + base]
    return n + 1


@kernel
def _describe_shared(row, at, out):
    """What the options of a decision share; returns how many features. Writes out."""
    n = 0
    for number in range(2 * TEAM):
        n += _pokemon(row, at, number, out[n:])
    for which in range(2):
        n += _active(row, at, which, out[n:])
        base = which * at[SIDE_STRIDE]
        for k in range(10):
            level = row[at[CONDITIONS] + base + k]
            if level:
                out[n] = _SIDE + which * 37 + 3 * k + min(3, level) - 1
                n += 1
        out[n] = _SIDE + which * 37 + 30 + min(6, row[at[REMAINING] + base])
        n += 1
    for k in range(6):
        field = (REQUEST, GIMMICK, TRAPPED, WEATHER, TERRAIN, FASTER)[k]
        out[n] = _TURN + 16 * k + row[at[field]]
        n += 1
    for k in range(4):
        if row[at[ROOMS] + k]:
            out[n] = _TURN + 16 * 6 + k
            n += 1
    return n


@kernel
def _describe_move(row, at, action, out):
    """A move, with the gimmick or not; returns how many features. Writes out."""
    special = 1 if action >= MOVES else 0
    base = (action % MOVES) * at[MOVE_STRIDE]
    share = row[(at[M_GIMMICK] if special else at[M_DAMAGE]) + base]
    out[0] = _KIND + special
    out[1] = _MOVE + _word(row, at[M_MOVE] + base)
    out[2] = _MOVE_TYPE + row[at[M_TYPE] + base]
    out[3] = _CATEGORY + row[at[M_CATEGORY] + base]
    out[4] = _EFFECT + row[at[M_EFFECT] + base]
    out[5] = _DAMAGE + 17 * special + _sixteenths(share)
    out[6] = _KILLS + 2 * row[at[FASTER]] + (1 if share >= 128 else 0)
    out[7] = _ACCURACY + min(4, row[at[M_ACCURACY] + base] // 25)
    out[8] = _PRIORITY + min(16, row[at[M_PRIORITY] + base])
    out[9] = _PP + min(4, row[at[M_PP] + base] // 60)
    return 10


@kernel
def _describe_switch(row, at, action, out):
    """A switch, forced or not, or a pick of team preview; returns how many features. Writes out."""
    member, request = action - FIRST_SWITCH, row[at[REQUEST]]
    base, beside, n = member * at[POKEMON_STRIDE], member * at[SWITCH_STRIDE], 9
    out[0] = _KIND + (2 if request == 1 else 3 if request == 2 else 4)
    out[1] = _IN_SPECIES + _word(row, at[P_SPECIES] + base)
    out[2] = _IN_HP + _eighths(row[at[P_HP] + base], 255)
    out[3] = _IN_STATUS + row[at[P_STATUS] + base]
    out[4] = _IN_DEALT + _sixteenths(row[at[S_DEALT] + beside])
    out[5] = _IN_TAKEN + _sixteenths(row[at[S_TAKEN] + beside])
    out[6] = _IN_ENTRY + _eighths(row[at[S_ENTRY] + beside], 255)
    out[7] = _IN_FASTER + row[at[S_FASTER] + beside]
    out[8] = _IN_TYPE + row[at[P_TYPES] + base]
    second = row[at[P_TYPES] + base + 1]
    if second:
        out[n] = _IN_TYPE + second
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
        bits, total = _word(seen[i], at[MASK]), 0
        for action in range(ACTIONS):
            total += (bits >> action) & 1
        count[i] = total


@kernel
def describe(seen, at, offset, shared, shared_length, part, part_length, option_part, action, lo, hi):
    """The open actions of rows [lo, hi), in order. Writes all but seen, at, offset."""
    for i in range(lo, hi):
        row, n = seen[i], offset[i]
        bits = _word(row, at[MASK])
        shared_length[i] = _describe_shared(row, at, shared[i])
        for a in range(ACTIONS):
            if (bits >> a) & 1:
                place = i * ACTIONS + a
                part_length[place] = _describe_option(row, at, a, part[place])
                option_part[n, 0] = place
                action[n] = a
                n += 1


@kernel
def describe_state(seen, at, feature, length, lo, hi):
    """The decision before any option is taken. Writes feature, length."""
    for i in range(lo, hi):
        length[i] = _describe_shared(seen[i], at, feature[i])


@kernel
def describe_choice(seen, at, action, feature, length, lo, hi):
    """All features of the option taken in each of rows [lo, hi). Writes feature, length."""
    for i in range(lo, hi):
        n = _describe_shared(seen[i], at, feature[i])
        length[i] = n + _describe_option(seen[i], at, np.int64(action[i]), feature[i, n:])
