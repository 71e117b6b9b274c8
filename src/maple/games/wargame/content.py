"""Rosters, maps and missions: YAML files, checked as they are read.

A file of one's own is named by its path; what ships with Maple by its name. A mistake is told with the file, the key
and what is allowed there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, TypeVar, get_args

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from maple.core.errors import GameError, nearest
from maple.core.yaml_file import read_yaml

__all__ = [
    "CELLS",
    "DIAGONAL",
    "HEIGHT",
    "MAX_SQUADS",
    "OBJECTIVES",
    "STRAIGHT",
    "UNREACHABLE",
    "WIDTH",
    "BattleMap",
    "Mission",
    "Roster",
    "Unit",
    "cells_within",
    "check_fit",
    "check_opens",
    "is_file",
    "load_map",
    "load_mission",
    "load_roster",
    "names_of",
    "path_costs",
    "sha256_of",
]

WIDTH, HEIGHT = 22, 15
CELLS = WIDTH * HEIGHT
MAX_SQUADS = 8
OBJECTIVES = 6  # a map may mark 1 to 6
STRAIGHT, DIAGONAL = 2, 3  # cost of a step, in inches
UNREACHABLE = 255
MENTIONED = 60  # characters at most of what a file says and may not
_TERRAIN = ".#+"
_STEPS = [(dx, dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy]


Whole = Annotated[int, Strict()]  # neither `true` nor `"80"`


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Body(_Strict):
    """What a squad is."""

    models: Whole = Field(ge=1, le=20)
    wounds: Whole = Field(ge=1, le=24, description="of each model")
    toughness: Whole = Field(ge=1, le=14)
    save: Whole = Field(ge=2, le=7, description="a d6 that saves; 7 for none")
    invulnerable: Whole | None = Field(None, ge=2, le=6, description="a save that no weapon worsens")
    move: Whole = Field(ge=1, le=6, description="cells")
    control: Whole = Field(ge=0, le=9, description="what it counts on an objective")
    leadership: Whole = Field(ge=2, le=12, description="2d6 that keep it steady")
    points: Whole = Field(ge=5, le=500)


class Melee(_Strict):
    """What a model does in a fight."""

    attacks: Whole = Field(ge=1, le=12)
    skill: Whole = Field(ge=2, le=6, description="a d6 that hits")
    strength: Whole = Field(ge=1, le=20)
    piercing: Whole = Field(ge=0, le=6, description="by how much it worsens a save")
    damage: Whole = Field(ge=1, le=12)


class Ranged(Melee):
    """What a model does from afar."""

    range: Whole = Field(ge=2, le=72, description="inches")


class Unit(_Strict):
    """One kind of squad."""

    name: str = Field(min_length=1, max_length=24, description="a text of 1 to 24 characters")
    body: Body
    ranged: Ranged | None = None
    melee: Melee


class Roster(_Strict):
    """Units, and armies made of them."""

    about: str = ""
    units: dict[str, Unit] = Field(
        min_length=1, max_length=32, description="1 to 32, each with name, body, ranged, melee"
    )
    armies: dict[str, list[str]] = Field(default_factory=dict, max_length=16)

    @model_validator(mode="after")
    def _armies_of_known_units(self) -> Roster:
        for name, squads in self.armies.items():
            if not 1 <= len(squads) <= MAX_SQUADS:
                raise ValueError(f"army {name!r} has {len(squads)} squads; 1 to {MAX_SQUADS} are allowed")
            for unit in squads:
                if unit not in self.units:
                    raise ValueError(
                        f"army {name!r} has a unit {unit!r} that is not there; {nearest(unit, self.units)}"
                    )
        return self


class Objective(_Strict):
    """What holding an objective is worth, and from which round on."""

    vp: Whole = Field(ge=1, le=12)
    opens: Whole = Field(2, ge=1, le=9)


class Mission(_Strict):
    """What a battle is about."""

    about: str = ""
    objectives: dict[Whole, Objective] = Field(min_length=1, description="labels, each with vp and opens")
    points_per_vp: Whole = Field(ge=1, le=20, description="points destroyed that make a VP: fighting always pays")

    @model_validator(mode="after")
    def _known_labels(self) -> Mission:
        for label in self.objectives:
            if not 1 <= label <= OBJECTIVES:
                raise ValueError(f"objective {label} cannot be marked on a map; labels are 1 to {OBJECTIVES}")
        return self


class BattleMap(_Strict):
    """A board: `.` is open, `#` blocks, `+` is cover, a digit is a cell of that objective."""

    about: str = ""
    deploy: Whole = Field(ge=2, le=6, description="columns of a side's deployment zone")
    rows: list[str] = Field(description=f"{HEIGHT} texts of {WIDTH} cells each")

    @model_validator(mode="after")
    def _sound(self) -> BattleMap:
        self._check_shape()
        self._check_symmetry()
        self._check_reach()
        return self

    def _check_shape(self) -> None:
        if len(self.rows) != HEIGHT:
            raise ValueError(f"rows: there are {len(self.rows)}; a board has {HEIGHT}")
        allowed = _TERRAIN + "".join(str(label) for label in range(1, OBJECTIVES + 1))
        for y, row in enumerate(self.rows):
            if len(row) != WIDTH:
                raise ValueError(f"rows[{y}]: {len(row)} cells; a row has {WIDTH}")
            for x, mark in enumerate(row):
                if mark not in allowed:
                    raise ValueError(f"rows[{y}]: {mark!r} in column {x}; allowed are {' '.join(allowed)}")

    def _check_symmetry(self) -> None:
        partner: dict[int, int] = {}
        for cell in range(CELLS):
            mark, other = self.mark(cell), self.mark(CELLS - 1 - cell)
            y, x = divmod(cell, WIDTH)
            if mark.isdigit() != other.isdigit() or (not mark.isdigit() and mark != other):
                raise ValueError(
                    f"rows[{y}]: {mark!r} in column {x} faces {other!r} in row {HEIGHT - 1 - y}, column "
                    f"{WIDTH - 1 - x}; a map looks the same after half a turn"
                )
            if mark.isdigit() and partner.setdefault(int(mark), int(other)) != int(other):
                raise ValueError(
                    f"rows[{y}]: objective {mark} faces both {partner[int(mark)]} and {other}; one is allowed"
                )

    def _check_reach(self) -> None:
        zone = self.zone()
        if len(zone) < MAX_SQUADS:
            raise ValueError(
                f"deploy: {len(zone)} free cells in {self.deploy} columns; {MAX_SQUADS} squads need one each"
            )
        cost = path_costs(self, [zone[0]])
        for cell in zone:
            if cost[cell] == UNREACHABLE:
                raise ValueError(f"rows[{cell // WIDTH}]: the cell in column {cell % WIDTH} is cut off from its zone")
        if not self.objectives():
            raise ValueError("rows: no objective is marked; write a digit on at least one cell")
        for label, cells in self.objectives().items():
            if all(cost[cell] == UNREACHABLE for cell in cells):
                raise ValueError(f"rows: objective {label} cannot be reached; open a way around the `#` cells")

    def mark(self, cell: int) -> str:
        """What is written on a cell."""
        return self.rows[cell // WIDTH][cell % WIDTH]

    def objectives(self) -> dict[int, list[int]]:
        """The cells of each objective."""
        marked = [(self.mark(cell), cell) for cell in range(CELLS) if self.mark(cell).isdigit()]
        return {label: [c for m, c in marked if int(m) == label] for label in sorted({int(m) for m, _ in marked})}

    def facing(self, label: int) -> int:
        """The objective that a label becomes after half a turn."""
        return int(self.mark(CELLS - 1 - self.objectives()[label][0]))

    def zone(self) -> list[int]:
        """The cells on which the first side deploys; the second side's are these after half a turn."""
        return [cell for cell in range(CELLS) if cell % WIDTH < self.deploy and self.mark(cell) != "#"]


def cells_within(cell: int, reach: int) -> list[int]:
    """The cells at most `reach` king's moves away."""
    y, x = divmod(cell, WIDTH)
    rows = range(max(0, y - reach), min(HEIGHT, y + reach + 1))
    return [r * WIDTH + c for r in rows for c in range(max(0, x - reach), min(WIDTH, x + reach + 1))]


def path_costs(battle_map: BattleMap, sources: Iterable[int]) -> list[int]:
    """Inches from each cell to the nearest of `sources`, around what blocks and regardless of squads.

    A diagonal step between two blocking cells is not open.
    """
    open_cell = [battle_map.mark(cell) != "#" for cell in range(CELLS)]
    cost = [UNREACHABLE] * CELLS
    rings: list[list[int]] = [[] for _ in range(UNREACHABLE + DIAGONAL)]
    for cell in sources:
        cost[cell] = 0
        rings[0].append(cell)
    for spent in range(UNREACHABLE - DIAGONAL):
        for cell in rings[spent]:
            if cost[cell] != spent:
                continue
            y, x = divmod(cell, WIDTH)
            for dx, dy in _STEPS:
                if not (0 <= x + dx < WIDTH and 0 <= y + dy < HEIGHT) or not open_cell[cell + dy * WIDTH + dx]:
                    continue
                if dx and dy and not open_cell[cell + dx] and not open_cell[cell + dy * WIDTH]:
                    continue
                there, after = cell + dy * WIDTH + dx, spent + (DIAGONAL if dx and dy else STRAIGHT)
                if after < cost[there]:
                    cost[there] = after
                    rings[after].append(there)
    return cost


_Model = TypeVar("_Model", bound=_Strict)


def names_of(kind: str) -> list[str]:
    """What ships of a kind: rosters, maps, missions."""
    folder = resources.files("maple.games.wargame") / "data" / kind
    return sorted(path.name.removesuffix(".yml") for path in folder.iterdir() if path.name.endswith(".yml"))


def is_file(name: str) -> bool:
    """Whether a name is that of a file of the user's own, not of something that ships."""
    return name.endswith((".yml", ".yaml"))


def sha256_of(file: str) -> str:
    """Of what is in a file of the user's own."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        raise GameError(f"{file} cannot be read; name a file that is there") from None


def _read(kind: str, name: str, model: type[_Model]) -> _Model:
    own = is_file(name)
    if not own and name not in names_of(kind):
        known = nearest(name, names_of(kind))
        raise GameError(f"there is no {kind.removesuffix('s')} {name!r}; {known}, or name a .yml file")
    path = Path(name) if own else Path(str(resources.files("maple.games.wargame") / "data" / kind / f"{name}.yml"))
    advice = f"a {kind.removesuffix('s')} has {', '.join(model.model_fields)}, each as `key: value`"
    tree = read_yaml(path, GameError, "keys", advice)
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise GameError(f"{path}: {_sentence(error, model)}") from None


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The first mistake of a file: its key and what is allowed."""
    first = error.errors()[0]
    place = first["loc"]
    key = ".".join(str(part) for part in place)
    known = _fields_at(model, place[:-1])
    allowed = _allowed(known[str(place[-1])]) if place and str(place[-1]) in known else ""
    if first["type"] == "missing":
        return f"{key} is missing; write {allowed or 'it'}"
    if first["type"] == "extra_forbidden":
        return f"there is no key {key!r}; {nearest(str(place[-1]), known)}"
    if first["type"] == "value_error":
        return (f"{key}: " if key else "") + first["msg"].removeprefix("Value error, ")
    said = shorten(repr(first["input"]), MENTIONED, placeholder=" …")
    return f"{key} = {said} is not allowed: {first['msg'].lower()}" + (f"; write {allowed}" if allowed else "")


def _fields_at(model: type[BaseModel], path: Iterable[Any]) -> dict[str, FieldInfo]:
    """The keys that are allowed at a place below a model."""
    kind: Any = model
    for part in path:
        kind = kind.model_fields[part].annotation if _is_model(kind) else get_args(kind)[-1]
        if type(None) in get_args(kind):
            kind = get_args(kind)[0]
    return kind.model_fields if _is_model(kind) else {}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _allowed(field: FieldInfo) -> str:
    """What can be written for a key, if that can be said."""
    limits = {type(limit): limit for limit in field.metadata}
    low, high = limits.get(Ge), limits.get(Le)
    if isinstance(low, Ge) and isinstance(high, Le):
        return f"a whole number from {low.ge} to {high.le}"
    kind: Any = field.annotation
    return field.description or (f"{', '.join(kind.model_fields)} below it" if _is_model(kind) else "")


def load_roster(name: str) -> Roster:
    """A roster by its name or path."""
    return _read("rosters", name, Roster)


def load_map(name: str) -> BattleMap:
    """A map by its name or path."""
    return _read("maps", name, BattleMap)


def load_mission(name: str) -> Mission:
    """A mission by its name or path."""
    return _read("missions", name, Mission)


def check_fit(mission_name: str, mission: Mission, map_name: str, battle_map: BattleMap) -> None:
    """Refuse a mission whose objectives a map does not have, or that is worth more to one side."""
    marked = battle_map.objectives()
    for label, objective in mission.objectives.items():
        if label not in marked:
            raise GameError(
                f"mission {mission_name}: objectives.{label} is not marked on map {map_name}, which has "
                f"{', '.join(map(str, marked))}; use one of those or another map"
            )
        facing = battle_map.facing(label)
        if mission.objectives.get(facing) != objective:
            raise GameError(
                f"mission {mission_name}: objectives.{label} faces {facing} on map {map_name}; both need the same vp "
                "and opens, or the sides would not be equal"
            )


def check_opens(mission_name: str, mission: Mission, rounds: int) -> None:
    """Refuse a mission with an objective that never pays."""
    for label, objective in mission.objectives.items():
        if objective.opens > rounds:
            raise GameError(
                f"mission {mission_name}: objectives.{label}.opens = {objective.opens} is after the last round; 1 to "
                f"{rounds} are allowed, or more with a larger game.rounds"
            )
