"""Where kernels find things in a view, and how they read them in steps."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.games.showdown.schema import load_schema

ACTIONS, MOVES, FIRST_SWITCH, TEAM = 14, 4, 8, 6
SPECIES, ITEMS, ABILITIES, MOVE_IDS, TYPES = 2048, 1024, 512, 1024, 20
KNOWN, ACTIVE, FAINTED, MARKED = 1, 2, 4, 8  # flags of a Pokémon

FIELDS = {
    "turn": (
        *("mask", "request", "gimmick", "trapped", "weather", "terrain", "rooms", "faster"),
        *("number", "generation", "weather_turns", "terrain_turns"),
    ),
    "side": ("conditions", "remaining", "seen", "spent"),
    "pokemon": (
        *("species", "item", "ability", "moves", "volatiles", "types", "tera", "hp", "flags", "status", "boosts"),
        *("stats", "terastallized", "status_turns", "level", "pp"),
    ),
    "move": (
        *("move", "type", "category", "accuracy", "priority", "effectiveness", "damage", "gimmick_damage", "pp"),
        "power",
    ),
    "switch": ("dealt", "taken", "entry", "faster"),
    "damage": ("dealt", "taken"),
}
_PLACES = tuple((group, name) for group, names in FIELDS.items() for name in names)
(
    MASK, REQUEST, GIMMICK, TRAPPED, WEATHER, TERRAIN, ROOMS, FASTER,
    NUMBER, GENERATION, WEATHER_TURNS, TERRAIN_TURNS,
    CONDITIONS, REMAINING, SEEN, SPENT,
    P_SPECIES, P_ITEM, P_ABILITY, P_MOVES, P_VOLATILES, P_TYPES, P_TERA, P_HP, P_FLAGS, P_STATUS, P_BOOSTS,
    P_STATS, P_TERASTALLIZED, P_STATUS_TURNS, P_LEVEL, P_PP,
    M_MOVE, M_TYPE, M_CATEGORY, M_ACCURACY, M_PRIORITY, M_EFFECT, M_DAMAGE, M_GIMMICK, M_PP,
    M_POWER,
    S_DEALT, S_TAKEN, S_ENTRY, S_FASTER,
    D_DEALT, D_TAKEN,
) = range(len(_PLACES))  # fmt: skip
SIDE_STRIDE, POKEMON_STRIDE, MOVE_STRIDE, SWITCH_STRIDE = (len(_PLACES) + i for i in range(4))


@cache
def places() -> NDArray[np.int64]:
    """Where things are in a view: an argument, since compiled code must not outlive a change of the schema."""
    groups = load_schema().groups
    strides = [groups[name].stride for name in ("side", "pokemon", "move", "switch")]
    return np.array([*(groups[group].byte(field) for group, field in _PLACES), *strides], np.int64)


@kernel
def word(row, at):
    """A number of two bytes."""
    return np.int64(row[at]) | (np.int64(row[at + 1]) << 8)


@kernel
def eighths(byte, whole):
    """0 for nothing, else 1 to 8."""
    return min(8, (np.int64(byte) * 8 + whole - 1) // whole)


@kernel
def sixteenths(byte):
    """A share of damage, from 0 to 16: twice all there is, or more."""
    return min(16, np.int64(byte) // 15)
