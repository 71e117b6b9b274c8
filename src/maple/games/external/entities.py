"""What an environment says of the entities in its observations: its attribute `entities`."""

from __future__ import annotations

from typing import Any

import gymnasium

from maple.core.errors import GameError
from maple.core.spec import EntityGroup

__all__ = ["entities_of"]

HOW = "list them as maple.EntityGroup(name, begin, count, width)"


def entities_of(env: Any, observation: int, actions: int, name: str) -> tuple[EntityGroup, ...]:
    """The groups that an environment declares, if it does; checked against its observation and actions."""
    if isinstance(env, gymnasium.Env):
        declared = env.get_wrapper_attr("entities") if env.has_wrapper_attr("entities") else ()
    else:
        declared = getattr(env, "entities", ())  # PettingZoo has no place for it
    groups = tuple(declared)
    if not all(isinstance(group, EntityGroup) for group in groups):
        raise GameError(f"{name} has `entities` that Maple cannot read; {HOW}")
    seen: set[int] = set()
    pointed: set[int] = set()
    if len({group.name for group in groups}) < len(groups):
        raise GameError(f"{name} has two groups of `entities` of the same name; give each its own")
    for group in groups:
        columns, about = set(range(group.begin, group.end)), set(group.pointing)
        within = group.present is None or 0 <= group.present < group.width
        if not columns or group.begin < 0 or group.end > observation or not within:
            raise GameError(f"the entities {group.name!r} of {name} are not within its {observation} numbers; {HOW}")
        if seen & columns or pointed & about or len(about) < len(group.pointing):
            raise GameError(
                f"the entities {group.name!r} of {name} share numbers or actions with others; separate them"
            )
        if about and not about <= set(range(actions)):
            raise GameError(f"the entities {group.name!r} of {name} have actions beyond its {actions}; begin earlier")
        seen |= columns
        pointed |= about
    return groups
