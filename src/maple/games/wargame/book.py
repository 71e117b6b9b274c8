"""Everything that the kernels look up: units, odds, boards and missions as arrays, made once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.errors import GameError
from maple.games.wargame.content import (
    CELLS,
    HEIGHT,
    MAX_SQUADS,
    OBJECTIVES,
    UNREACHABLE,
    WIDTH,
    BattleMap,
    Mission,
    Roster,
    cells_within,
)
from maple.games.wargame.state import REACH
from maple.games.wargame.tables import BLOCKING, COVER, OPEN, fill_paths, fill_sight

__all__ = [
    "ATTACKS",
    "BOOK",
    "CONTROL",
    "DAMAGE",
    "INVULNERABLE",
    "LEADERSHIP",
    "MELEE",
    "MODELS",
    "MOVE",
    "PIERCING",
    "POINTS",
    "PROFILE",
    "RANGE",
    "RANGED",
    "SAVE",
    "SKILL",
    "STRENGTH",
    "TOUGHNESS",
    "WOUNDS",
    "make_book",
    "weapon_column",
]

# Columns of a unit's profile; a weapon's columns follow each other, the ranged one first.
MODELS, WOUNDS, TOUGHNESS, SAVE, INVULNERABLE, MOVE, CONTROL, LEADERSHIP, POINTS = range(9)
_WEAPON = 9
RANGE, ATTACKS, SKILL, STRENGTH, PIERCING, DAMAGE = range(6)
RANGED, MELEE = 0, 1
PROFILE = _WEAPON + 12

SCALE = np.array([1, 1, 1, 1, 1, 1, 1, 1, 20, 6] + [1] * 11, dtype=np.int16)  # of a profile's columns in `small`

SIGHT_WORDS = -(-CELLS // 64)
BONUSES = 3  # on a save: none, cover or brace, both
CONTROL_REACH = 2  # cells


MAX_UNITS, MAX_ARMIES, MAX_BOARDS, MAX_MISSIONS = 32, 16, 16, 16

# One record, not a tuple of arrays: kernels hand it on as one pointer. With arrays, half of their time went into
# passing them on and counting references.
BOOK = np.dtype(
    [
        ("units", np.int64),
        ("boards", np.int64),
        ("missions", np.int64),
        ("profile", np.int16, (MAX_UNITS, PROFILE)),
        ("small", np.uint8, (MAX_UNITS, PROFILE)),  # the same in small numbers, for observations
        ("hit_on", np.uint8, (2, MAX_UNITS)),  # the d6 that hits, ranged and melee
        ("wound_on", np.uint8, (2, MAX_UNITS, MAX_UNITS)),  # by attacker and target
        ("save_on", np.uint8, (2, MAX_UNITS, MAX_UNITS, BONUSES)),  # 7 for none
        ("expect", np.float32, (2, MAX_UNITS, MAX_UNITS, BONUSES)),  # wounds that one model should cause
        ("army", np.int16, (MAX_ARMIES, MAX_SQUADS)),  # units of each named army; -1 for none
        ("terrain", np.uint8, (MAX_BOARDS, CELLS)),
        ("walls", np.uint64, (MAX_BOARDS, HEIGHT)),  # bits of blocking cells, and of all beyond the board
        ("ground", np.uint8, (MAX_BOARDS, 3, HEIGHT + 2 * REACH, WIDTH + 2 * REACH)),  # blocking, cover, `near`
        ("sight", np.uint64, (MAX_BOARDS, CELLS, SIGHT_WORDS)),  # bits: which cells a cell sees
        ("shade", np.uint64, (MAX_BOARDS, CELLS, SIGHT_WORDS)),  # bits: where a target has cover from a cell
        ("path", np.uint8, (MAX_BOARDS, CELLS, CELLS)),  # inches around what blocks, regardless of squads
        ("near", np.uint8, (MAX_BOARDS, CELLS)),  # bits: objectives of the map that a squad on this cell counts for
        ("place", np.int16, (MAX_BOARDS, OBJECTIVES)),  # the cell in the middle of each
        ("way", np.uint8, (MAX_BOARDS, OBJECTIVES, CELLS)),  # inches to the nearest cell of an objective
        ("zone", np.int16, (MAX_BOARDS, CELLS)),  # cells on which the first side deploys
        ("zone_size", np.int64, (MAX_BOARDS,)),
        ("vp", np.uint8, (MAX_MISSIONS, OBJECTIVES)),  # 0 where a mission does not use an objective
        ("opens", np.uint8, (MAX_MISSIONS, OBJECTIVES)),  # the first round that pays
        ("used", np.uint8, (MAX_MISSIONS,)),  # bits: the objectives that a mission uses
        ("points_per_vp", np.int16, (MAX_MISSIONS,)),
    ],
    align=True,
)


def weapon_column(kind: int, field: int) -> int:
    """Where a weapon's field is in a profile."""
    return _WEAPON + 6 * kind + field


def _profiles(roster: Roster) -> NDArray[np.int16]:
    rows = []
    for unit in roster.units.values():
        b, r, m = unit.body, unit.ranged, unit.melee
        body = [b.models, b.wounds, b.toughness, b.save, b.invulnerable or 7, b.move, b.control, b.leadership, b.points]
        shot = [r.range, r.attacks, r.skill, r.strength, r.piercing, r.damage] if r else [0] * 6
        rows.append([*body, *shot, 0, m.attacks, m.skill, m.strength, m.piercing, m.damage])
    return np.array(rows, np.int16)


def wound_roll(strength: int, toughness: int) -> int:
    """The d6 that wounds."""
    if strength >= 2 * toughness:
        return 2
    if 2 * strength <= toughness:
        return 6
    return 4 if strength == toughness else (3 if strength > toughness else 5)


def save_roll(save: int, invulnerable: int, piercing: int, bonus: int) -> int:
    """The d6 that saves: the better of the armour, worsened and improved, and the invulnerable save; 7 for none."""
    return min(7, max(2, min(save + piercing - bonus, invulnerable)))


def _chance(roll: int) -> float:
    """That a d6 shows `roll` or more."""
    return max(0, 7 - roll) / 6


def _write_odds(profile: NDArray[np.int16], book: Any) -> None:
    """What hits, wounds and saves for every pair of units, and what comes of it. Writes book."""
    for kind in (RANGED, MELEE):
        for a, attacker in enumerate(profile.tolist()):
            weapon = attacker[weapon_column(kind, 0) : weapon_column(kind, 6)]
            book["hit_on"][kind, a] = weapon[SKILL] if weapon[ATTACKS] else 7
            for b, target in enumerate(profile.tolist()):
                wound = wound_roll(weapon[STRENGTH], target[TOUGHNESS])
                book["wound_on"][kind, a, b] = wound
                for bonus in range(BONUSES):
                    save = save_roll(target[SAVE], target[INVULNERABLE], weapon[PIERCING], bonus)
                    through = _chance(weapon[SKILL]) * _chance(wound) * (1 - _chance(save))
                    book["save_on"][kind, a, b, bonus] = save
                    book["expect"][kind, a, b, bonus] = weapon[ATTACKS] * through * min(weapon[DAMAGE], target[WOUNDS])


def _write_objectives(battle_map: BattleMap, board: int, book: Any) -> None:
    """Where each objective counts, and how far it is. Writes book."""
    book["way"][board] = UNREACHABLE
    for label, cells in battle_map.objectives().items():
        book["way"][board, label - 1] = book["path"][board, cells].min(axis=0)
        book["place"][board, label - 1] = cells[len(cells) // 2]
        for cell in {c for source in cells for c in cells_within(source, CONTROL_REACH)}:
            book["near"][board, cell] |= np.uint8(1 << (label - 1))


def _write_board(battle_map: BattleMap, board: int, book: Any) -> None:
    """The tables of one board. Writes book."""
    codes = {"#": BLOCKING, "+": COVER}
    terrain = np.array([codes.get(battle_map.mark(cell), OPEN) for cell in range(CELLS)], np.uint8)
    book["terrain"][board] = terrain
    walls = (terrain == BLOCKING).reshape(HEIGHT, WIDTH).astype(np.uint64) << np.arange(WIDTH, dtype=np.uint64)
    book["walls"][board] = walls.sum(axis=1, dtype=np.uint64) | ~np.uint64((1 << WIDTH) - 1)
    fill_sight(terrain, book["sight"][board], book["shade"][board])
    fill_paths(terrain, book["path"][board])
    _write_objectives(battle_map, board, book)
    planes = np.stack([terrain == BLOCKING, terrain == COVER, book["near"][board]]).reshape(3, HEIGHT, WIDTH)
    book["ground"][board, 0] = 1  # beyond the board
    book["ground"][board, :, REACH:-REACH, REACH:-REACH] = planes
    zone = battle_map.zone()
    book["zone"][board, : len(zone)] = zone
    book["zone_size"][board] = len(zone)


def make_book(roster: Roster, maps: Mapping[str, BattleMap], missions: Mapping[str, Mission]) -> NDArray[Any]:
    """One record of BOOK, of a roster, maps and missions."""
    for name, found, most in (("maps", maps, MAX_BOARDS), ("missions", missions, MAX_MISSIONS)):
        if len(found) > most:
            raise GameError(f"game.{name} has {len(found)} entries; at most {most} fit into a game")
    books = np.zeros(1, BOOK)
    book = books[0]
    profile = _profiles(roster)
    book["units"], book["boards"], book["missions"] = len(profile), len(maps), len(missions)
    book["profile"][: len(profile)], book["small"][: len(profile)] = profile, profile // SCALE
    _write_odds(profile, book)
    numbers = {name: i for i, name in enumerate(roster.units)}
    book["army"] = -1
    for i, squads in enumerate(roster.armies.values()):
        book["army"][i, : len(squads)] = [numbers[name] for name in squads]
    for i, battle_map in enumerate(maps.values()):
        _write_board(battle_map, i, book)
    for i, mission in enumerate(missions.values()):
        book["points_per_vp"][i] = mission.points_per_vp
        for label, objective in mission.objectives.items():
            book["vp"][i, label - 1], book["opens"][i, label - 1] = objective.vp, objective.opens
            book["used"][i] |= np.uint8(1 << (label - 1))
    return books
