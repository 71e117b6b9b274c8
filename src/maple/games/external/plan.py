"""What an environment is: its seats, where its masks come from, and the row that holds all that a seat sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv

from maple.core.errors import GameError
from maple.core.spec import EntityGroup
from maple.games.external.entities import entities_of
from maple.games.external.spaces import FAILURES, MASK, ContractError, actions_of, opened, shape_of

__all__ = ["Plan", "RowLayout", "examine"]

Kind = Literal["gym", "aec", "parallel"]
MaskFrom = Literal["nowhere", "method", "info", "observation"]


@dataclass(frozen=True, slots=True)
class RowLayout:
    """A view: the observation's numbers, a byte for each action if there are masks, and one that is never zero."""

    observation: int
    is_bytes: bool
    actions: int
    masked: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the observation."""
        return np.dtype(np.uint8 if self.is_bytes else np.float32)

    @property
    def _mask_at(self) -> int:
        return self.observation * self.dtype.itemsize

    @property
    def _flag_at(self) -> int:
        return self._mask_at + (self.actions if self.masked else 0)

    @property
    def words(self) -> int:
        """64-bit words of a view."""
        return self._flag_at // 8 + 1

    def observation_of(self, view: NDArray[np.uint64]) -> NDArray[Any]:
        """(…, O) the observations in views, without a copy."""
        return view.view(np.uint8)[..., : self._mask_at].view(self.dtype)

    def mask_of(self, view: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """(…, A) the masks in views, without a copy; of an env without masks, all true."""
        if not self.masked:
            return np.broadcast_to(np.True_, (*view.shape[:-1], self.actions))
        return view.view(np.uint8)[..., self._mask_at : self._flag_at].view(np.bool_)

    def flag_of(self, view: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """(…) the byte that tells a view from none."""
        flag: NDArray[np.uint8] = view.view(np.uint8)[..., self._flag_at]
        return flag


@dataclass(frozen=True, slots=True)
class Plan:
    """An environment as Maple plays it."""

    name: str
    kind: Kind
    agents: tuple[Any, ...]  # a seat each
    mask_from: MaskFrom
    layout: RowLayout
    energy: float  # what the squares of a typical observation add up to
    entities: tuple[EntityGroup, ...] = ()  # that it says its observations show
    # what the env is given for each index of a seat's actions; None where that is the index itself
    choices: tuple[list[Any] | None, ...] = field(default=(), compare=False)

    @property
    def seats(self) -> int:
        """How many play."""
        return len(self.agents)

    def choice(self, seat: int, action: int) -> Any:
        """What the env is given for a seat's action, in plain numbers."""
        choices = self.choices[seat]
        return action if choices is None else np.asarray(choices[action]).tolist()


def examine(env: Any, name: str) -> Plan:
    """Read an environment's spaces, and one reset, for what it is."""
    if isinstance(env, gymnasium.Env):
        kind: Kind = "gym"
    elif isinstance(env, AECEnv | ParallelEnv):
        kind = "aec" if isinstance(env, AECEnv) else "parallel"
    else:
        raise GameError(
            f"{name} makes a {type(env).__name__}; Maple plays gymnasium.Env, pettingzoo.AECEnv and "
            "pettingzoo.ParallelEnv"
        )
    agents, pairs = _declared(env, kind, name)
    if not agents:
        raise GameError(f"{name} has no possible_agents; list everybody who may ever play")
    shapes = [shape_of(observed, name) for observed, _ in pairs]
    actions = [actions_of(acted, name) for _, acted in pairs]
    counts = [each.count for each in actions]
    mask_from = _mask_source(env, kind, pairs[0][0], name)
    alike = len(set(counts)) == 1
    layout = RowLayout(
        observation=max(shape.width for shape in shapes) + (len(agents) if len(agents) > 1 else 0),
        is_bytes=all(shape.is_bytes for shape in shapes),
        actions=max(counts),
        masked=mask_from != "nowhere" or not alike,
    )
    energy = max(shape.energy for shape in shapes)
    entities = entities_of(env, layout.observation, layout.actions, name)
    choices = tuple(each.choices for each in actions)
    return Plan(name, kind, agents, mask_from, layout, energy, entities, choices)


def _declared(env: Any, kind: Kind, name: str) -> tuple[tuple[Any, ...], list[tuple[Any, Any]]]:
    """The agents of an environment, and each one's spaces of observations and actions."""
    try:
        if kind == "gym":
            return ("player",), [(env.observation_space, env.action_space)]
        agents = tuple(env.possible_agents)
        return agents, [(env.observation_space(agent), env.action_space(agent)) for agent in agents]
    except AttributeError as error:
        raise GameError(
            f"{name} has no {error.name}; declare it in __init__, as Gymnasium and PettingZoo ask for"
        ) from error
    except FAILURES as error:
        raise GameError(f"{name} cannot tell its spaces: {type(error).__name__}: {error}") from error


def _mask_source(env: Any, kind: Kind, observed: spaces.Space[Any], name: str) -> MaskFrom:
    if isinstance(observed, spaces.Dict) and MASK in observed.spaces:
        return "observation"
    if kind == "gym" and env.has_wrapper_attr("action_masks"):
        return "method"
    try:
        info = _first_info(env, kind)
    except ContractError as error:
        raise ContractError(f"{name} {error} (seed 0); mend the env or wrap it") from None
    except FAILURES as error:
        raise GameError(f"{name} cannot be reset with seed 0: {type(error).__name__}: {error}") from error
    return "info" if isinstance(info, Mapping) and MASK in info else "nowhere"


def _first_info(env: Any, kind: Kind) -> Any:
    """What an environment tells beside its first observation."""
    found = env.reset(seed=0)
    if kind == "gym":
        return opened(found)[1]
    if not env.agents:
        raise ContractError("has no agents after reset()")
    if kind == "aec":
        return env.infos[env.agent_selection]
    return opened(found)[1].get(env.agents[0], {})
