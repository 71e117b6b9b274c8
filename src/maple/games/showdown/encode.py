"""From a view to an observation for networks over plain indices: small numbers and one-hots, by a plan.

A plan is a list of what to read and how to write it, made once from the schema. Each Pokémon of mine (with what a
switch to it would bring), each of theirs and each move on offer is a row of its own, so that networks can attend to
them. Ids (species, moves, items, abilities) stay in the view: a network over plain numbers could do nothing with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.core.spec import EntityGroup
from maple.games.showdown.schema import Group, load_schema

__all__ = ["Plan", "mask_byte", "observation_plan", "observe"]

NUMBER, ONE_HOT, BITS, ABOVE, BELOW = range(5)
ANY = 2**16  # as a unit: whether there is anything at all
FIRST_SWITCH = 8  # actions before are the moves, plain and with the gimmick
CAP = 8  # larger bytes would drown the others in a first layer


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read and how to write it; a row of `steps` is byte, size, kind, argument, place in the observation."""

    steps: NDArray[np.int64]  # (S, 5)
    size: int  # bytes of the observation
    entities: tuple[EntityGroup, ...]


class _Planner:
    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int, int]] = []
        self.size = 0

    def add(self, group: Group, field: str, kind: int, argument: int, numbers: range, apart: bool = True) -> None:
        """Read a field of some repetitions; values of a field share their places if not `apart`."""
        width = argument if kind == ONE_HOT else (16 if kind == BITS else 1)
        spec = group.fields[field]
        for number in numbers:
            for i in range(spec.count):
                at = group.byte(field, number) + i * spec.size
                self.steps.append((at, spec.size, kind, argument, self.size))
                self.size += width if apart or i == spec.count - 1 else 0

    def rows(self, name: str, numbers: range, write: Callable[[range], None], actions: tuple[int, ...]) -> EntityGroup:
        """A row for each number, written by `write`."""
        begin = self.size
        for number in numbers:
            write(range(number, number + 1))
        return EntityGroup(name, begin, len(numbers), (self.size - begin) // len(numbers), actions=actions)


@cache
def observation_plan() -> Plan:
    """The plan of this version's schema."""
    schema, plan = load_schema(), _Planner()
    turn, side, pokemon = (schema.groups[name] for name in ("turn", "side", "pokemon"))
    move, switch, damage = (schema.groups[name] for name in ("move", "switch", "damage"))
    lists = {name: len(values) for name, values in schema.lists.items()}
    once, active, half = range(1), range(0, 12, 6), pokemon.repeat // 2
    for field in ("request", "gimmick", "weather", "terrain"):
        plan.add(turn, field, ONE_HOT, lists[field], once)
    plan.add(turn, "number", NUMBER, 8, once)
    plan.add(turn, "trapped", ONE_HOT, 3, once)
    plan.add(turn, "rooms", NUMBER, 1, once)
    plan.add(turn, "faster", ONE_HOT, 3, once)
    for field in ("conditions", "remaining", "seen", "spent"):
        plan.add(side, field, NUMBER, 1, range(2))
    plan.add(pokemon, "boosts", ABOVE, 6, active)
    plan.add(pokemon, "boosts", BELOW, 6, active)
    plan.add(pokemon, "volatiles", BITS, 0, active)

    def write_pokemon(one: range) -> None:
        plan.add(pokemon, "flags", NUMBER, ANY, one)
        plan.add(pokemon, "hp", NUMBER, 32, one)
        plan.add(pokemon, "flags", ONE_HOT, 16, one)
        plan.add(pokemon, "status", ONE_HOT, lists["status"], one)
        plan.add(pokemon, "types", ONE_HOT, lists["types"], one, apart=False)
        plan.add(pokemon, "tera", ONE_HOT, lists["types"], one)
        plan.add(pokemon, "terastallized", NUMBER, 1, one)

    def write_mine(one: range) -> None:
        write_pokemon(one)
        for field in ("dealt", "taken", "entry"):
            plan.add(switch, field, NUMBER, 16, one)
        plan.add(switch, "faster", ONE_HOT, 3, one)

    def write_move(one: range) -> None:
        plan.add(move, "move", NUMBER, ANY, one)
        plan.add(move, "power", NUMBER, 32, one)
        plan.add(move, "type", ONE_HOT, lists["types"], one)
        plan.add(move, "category", ONE_HOT, lists["category"], one)
        plan.add(move, "accuracy", NUMBER, 25, one)
        plan.add(move, "priority", ABOVE, 8, one)
        plan.add(move, "priority", BELOW, 8, one)
        plan.add(move, "effectiveness", ONE_HOT, lists["effectiveness"], one)
        plan.add(move, "damage", NUMBER, 16, one)
        plan.add(move, "gimmick_damage", NUMBER, 16, one)
        plan.add(move, "pp", NUMBER, 64, one)

    entities = (
        plan.rows("mine", range(half), write_mine, actions=(FIRST_SWITCH,)),
        plan.rows("theirs", range(half, pokemon.repeat), write_pokemon, actions=()),
        plan.rows("moves", range(move.repeat), write_move, actions=(0, move.repeat)),
    )
    plan.add(damage, "dealt", NUMBER, 32, once)
    plan.add(damage, "taken", NUMBER, 32, once)
    return Plan(np.array(plan.steps, np.int64), plan.size, entities)


@cache
def mask_byte() -> int:
    """Where the mask begins in a view."""
    return load_schema().groups["turn"].byte("mask")


@kernel
def observe(seen, steps, mask_at, observation, mask, lo, hi):
    """Observation and mask of rows [lo, hi); `seen` is the views by bytes. Writes observation, mask."""
    actions = mask.shape[1]
    for i in range(lo, hi):
        row, out = seen[i], observation[i]
        out[:] = 0
        for k in range(steps.shape[0]):
            at, kind, argument, place = steps[k, 0], steps[k, 2], steps[k, 3], steps[k, 4]
            value = np.int64(row[at])
            if steps[k, 1] == 2:
                value += np.int64(row[at + 1]) << 8
            if kind == NUMBER:
                out[place] = min(CAP, (value + argument - 1) // argument)
            elif kind == ONE_HOT:
                if value < argument:
                    out[place + value] = 1
            elif kind == BITS:
                for bit in range(16):
                    out[place + bit] = (value >> bit) & 1
            elif kind == ABOVE:
                out[place] = max(0, value - argument)
            else:
                out[place] = max(0, argument - value)
        bits = np.int64(row[mask_at]) + (np.int64(row[mask_at + 1]) << 8)
        for action in range(actions):
            mask[i, action] = (bits >> action) & 1
