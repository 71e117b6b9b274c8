"""From a view to an observation for networks over plain indices: small numbers and one-hots, by a plan.

A plan is a list of what to read and how to write it, made once from the schema. Ids (species, moves, items, abilities)
stay in the view: a network over plain numbers could do nothing with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.games.showdown.schema import Group, load_schema

__all__ = ["Plan", "mask_byte", "observation_plan", "observe"]

NUMBER, ONE_HOT, BITS, ABOVE, BELOW = range(5)
CAP = 8  # larger bytes would drown the others in a first layer


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read and how to write it; a row of `steps` is byte, size, kind, argument, place in the observation."""

    steps: NDArray[np.int64]  # (S, 5)
    size: int  # bytes of the observation


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


@cache
def observation_plan() -> Plan:
    """The plan of this version's schema."""
    schema, plan = load_schema(), _Planner()
    turn, side, pokemon = (schema.groups[name] for name in ("turn", "side", "pokemon"))
    move, switch, damage = (schema.groups[name] for name in ("move", "switch", "damage"))
    lists = {name: len(values) for name, values in schema.lists.items()}
    once, active = range(1), range(0, 12, 6)
    for field in ("request", "gimmick", "weather", "terrain"):
        plan.add(turn, field, ONE_HOT, lists[field], once)
    plan.add(turn, "number", NUMBER, 8, once)
    plan.add(turn, "trapped", ONE_HOT, 3, once)
    plan.add(turn, "rooms", NUMBER, 1, once)
    plan.add(turn, "faster", ONE_HOT, 3, once)
    for field in ("conditions", "remaining", "seen", "spent"):
        plan.add(side, field, NUMBER, 1, range(2))
    everyone = range(pokemon.repeat)
    plan.add(pokemon, "hp", NUMBER, 32, everyone)
    plan.add(pokemon, "flags", ONE_HOT, 16, everyone)
    plan.add(pokemon, "status", ONE_HOT, lists["status"], everyone)
    plan.add(pokemon, "types", ONE_HOT, lists["types"], everyone, apart=False)
    plan.add(pokemon, "tera", ONE_HOT, lists["types"], everyone)
    plan.add(pokemon, "terastallized", NUMBER, 1, everyone)
    plan.add(pokemon, "boosts", ABOVE, 6, active)
    plan.add(pokemon, "boosts", BELOW, 6, active)
    plan.add(pokemon, "volatiles", BITS, 0, active)
    moves = range(move.repeat)
    plan.add(move, "power", NUMBER, 32, moves)
    plan.add(move, "type", ONE_HOT, lists["types"], moves)
    plan.add(move, "category", ONE_HOT, lists["category"], moves)
    plan.add(move, "accuracy", NUMBER, 25, moves)
    plan.add(move, "priority", ABOVE, 8, moves)
    plan.add(move, "priority", BELOW, 8, moves)
    plan.add(move, "effectiveness", ONE_HOT, lists["effectiveness"], moves)
    plan.add(move, "damage", NUMBER, 16, moves)
    plan.add(move, "gimmick_damage", NUMBER, 16, moves)
    plan.add(move, "pp", NUMBER, 64, moves)
    team = range(switch.repeat)
    for field in ("dealt", "taken", "entry"):
        plan.add(switch, field, NUMBER, 16, team)
    plan.add(switch, "faster", ONE_HOT, 3, team)
    plan.add(damage, "dealt", NUMBER, 32, once)
    plan.add(damage, "taken", NUMBER, 32, once)
    return Plan(np.array(plan.steps, np.int64), plan.size)


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
