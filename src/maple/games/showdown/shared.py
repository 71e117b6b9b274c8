"""What the options of a decision share: the battle as the seat sees it.

The field, both sides, and twelve Pokémon in four roles; those of a bench share their rows, whatever their order.
"""

from __future__ import annotations

from maple.core.kernels import kernel
from maple.games.showdown.layout import (
    ABILITIES,
    ACTIVE,
    CONDITIONS,
    D_TAKEN,
    FAINTED,
    FASTER,
    GENERATION,
    GIMMICK,
    ITEMS,
    MARKED,
    MOVE_IDS,
    MOVES,
    NUMBER,
    P_ABILITY,
    P_BOOSTS,
    P_FLAGS,
    P_HP,
    P_ITEM,
    P_LEVEL,
    P_MOVES,
    P_PP,
    P_SPECIES,
    P_STATS,
    P_STATUS,
    P_STATUS_TURNS,
    P_TERA,
    P_TERASTALLIZED,
    P_TYPES,
    P_VOLATILES,
    POKEMON_STRIDE,
    REMAINING,
    REQUEST,
    ROOMS,
    S_DEALT,
    S_TAKEN,
    SEEN,
    SIDE_STRIDE,
    SPECIES,
    SPENT,
    SWITCH_STRIDE,
    TEAM,
    TERRAIN,
    TERRAIN_TURNS,
    TRAPPED,
    TYPES,
    WEATHER,
    WEATHER_TURNS,
    eighths,
    sixteenths,
    word,
)

__all__ = ["SHARED_FEATURES", "SHARED_WIDTH", "describe_shared"]

SHARED_WIDTH = 400
ROLES = 4  # my active one, my bench, theirs
# Features of a Pokémon in one role.
_ITEM = SPECIES
_ABILITY = _ITEM + ITEMS
_KNOWN = _ABILITY + ABILITIES
_TYPE = _KNOWN + MOVE_IDS
_HP = _TYPE + TYPES  # empty, then eighths
_STATUS = _HP + 9
_STATUS_TURNS = _STATUS + 8
_DEALT = _STATUS_TURNS + 8
_TAKEN = _DEALT + 17
_SPENT_MOVES = _TAKEN + 17  # known moves without PP
_TERASTALLIZED = _SPENT_MOVES + 5
_MARKED = _TERASTALLIZED + 1  # mine: picked in team preview; theirs: only seen there
ROLE = _MARKED + 1
# Features of the decision.
_BOOST = ROLES * ROLE  # of both active ones: 7 × 13 each
_VOLATILE = _BOOST + 2 * 7 * 13
_TERA = _VOLATILE + 2 * 64
_STAT = _TERA + 2 * (TYPES + 1)  # of both active ones: 6 × 16 steps each
_LEVEL = _STAT + 2 * 6 * 16  # steps of five
_SIDE = _LEVEL + 2 * 21  # both sides: 10 conditions × 3 levels, how many remain, how many were seen, gimmick spent
_TURN = _SIDE + 2 * (30 + 7 + 7 + 1)  # request, gimmick, trapped, weather, terrain, faster, rooms, by their values
_NUMBER = _TURN + 7 * 16
_GENERATION = _NUMBER + 11
_WEATHER_TURNS = _GENERATION + 10
_TERRAIN_TURNS = _WEATHER_TURNS + 9
_THREAT = _TERRAIN_TURNS + 9  # what each known move of their active would do to mine
SHARED_FEATURES = _THREAT + 17


@kernel
def _magnitude(number):
    """0 for nothing, else how many binary digits it has: steps that grow with it."""
    steps = 0
    while number > 0:
        number >>= 1
        steps += 1
    return steps


@kernel
def _pokemon(row, at, number, out):
    """The features of one Pokémon in its role; returns how many. Writes out."""
    base = number * at[POKEMON_STRIDE]
    flags = row[at[P_FLAGS] + base]
    if flags == 0:
        return 0
    role = (0 if number < TEAM else 2) + (0 if flags & ACTIVE else 1)
    first, n = role * ROLE, 0
    out[n] = first + word(row, at[P_SPECIES] + base)
    out[n + 1] = first + _HP + eighths(row[at[P_HP] + base], 255)
    out[n + 2] = first + _STATUS + row[at[P_STATUS] + base]
    n += 3
    if flags & MARKED:
        out[n] = first + _MARKED
        n += 1
    if flags & FAINTED:
        return n
    turns = row[at[P_STATUS_TURNS] + base]
    if turns:
        out[n] = first + _STATUS_TURNS + min(7, turns)
        n += 1
    if row[at[P_TERASTALLIZED] + base]:
        out[n] = first + _TERASTALLIZED
        n += 1
    item, ability = word(row, at[P_ITEM] + base), word(row, at[P_ABILITY] + base)
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
    empty = 0
    for k in range(MOVES):
        move = word(row, at[P_MOVES] + base + 2 * k)
        if move:
            out[n] = first + _KNOWN + move
            empty += 1 if row[at[P_PP] + base + k] == 0 else 0
            n += 1
    if empty:
        out[n] = first + _SPENT_MOVES + empty
        n += 1
    if number < TEAM:
        beside = number * at[SWITCH_STRIDE]
        out[n] = first + _DEALT + sixteenths(row[at[S_DEALT] + beside])
        out[n + 1] = first + _TAKEN + sixteenths(row[at[S_TAKEN] + beside])
        n += 2
    return n


@kernel
def _active(row, at, which, out):
    """Boosts, volatile states, tera type, stats and level of an active Pokémon; returns how many. Writes out."""
    base, n = which * TEAM * at[POKEMON_STRIDE], 0
    known = row[at[P_FLAGS] + base] != 0
    for k in range(7):
        stage = row[at[P_BOOSTS] + base + k]
        if stage != 6 and known:
            out[n] = _BOOST + (which * 7 + k) * 13 + stage
            n += 1
    for k in range(4):
        bits = word(row, at[P_VOLATILES] + base + 2 * k)
        for bit in range(16):
            if (bits >> bit) & 1:
                out[n] = _VOLATILE + which * 64 + 16 * k + bit
                n += 1
    out[n] = _TERA + which * (TYPES + 1) + row[at[P_TERA] + base]
    n += 1
    if known:
        for k in range(6):
            out[n] = _STAT + (which * 6 + k) * 16 + min(15, word(row, at[P_STATS] + base + 2 * k) // 32)
            n += 1
        out[n] = _LEVEL + which * 21 + min(20, row[at[P_LEVEL] + base] // 5)
        n += 1
    return n


@kernel
def _field(row, at, out):
    """What goes on around both sides, and what their active threatens; returns how many features. Writes out."""
    n = 0
    for k in range(6):
        field = (REQUEST, GIMMICK, TRAPPED, WEATHER, TERRAIN, FASTER)[k]
        out[n] = _TURN + 16 * k + row[at[field]]
        n += 1
    for k in range(4):
        if row[at[ROOMS] + k]:
            out[n] = _TURN + 16 * 6 + k
            n += 1
    out[n] = _NUMBER + min(10, _magnitude(word(row, at[NUMBER])))
    out[n + 1] = _GENERATION + row[at[GENERATION]]
    n += 2
    if row[at[WEATHER]]:
        out[n] = _WEATHER_TURNS + min(8, row[at[WEATHER_TURNS]])
        n += 1
    if row[at[TERRAIN]]:
        out[n] = _TERRAIN_TURNS + min(8, row[at[TERRAIN_TURNS]])
        n += 1
    for k in range(MOVES):
        share = row[at[D_TAKEN] + k * TEAM]
        if share:
            out[n] = _THREAT + sixteenths(share)
            n += 1
    return n


@kernel
def describe_shared(row, at, out):
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
                out[n] = _SIDE + which * 45 + 3 * k + min(3, level) - 1
                n += 1
        out[n] = _SIDE + which * 45 + 30 + min(6, row[at[REMAINING] + base])
        out[n + 1] = _SIDE + which * 45 + 37 + min(6, row[at[SEEN] + base])
        n += 2
        if row[at[SPENT] + base]:
            out[n] = _SIDE + which * 45 + 44
            n += 1
    return n + _field(row, at, out[n:])
