"""What Maple does not play, or only just, each for a reason of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from tests.games.external.envs import Match, Walk


def no_env() -> int:
    return 3


class Continuous(Walk):
    """A walk whose actions are numbers on a line, which Maple does not play."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1, 1, (1,))


class Wide(Walk):
    """A walk with too many combinations of actions."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.MultiDiscrete([20, 20, 20])


class Words(Walk):
    """A walk that is described in words."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Text(10)


class Bare(gymnasium.Env):
    """An env that declares nothing."""


class Paying(Walk):
    """A walk that pays in a currency of its own."""

    def __init__(self, coin: str) -> None:
        super().__init__()
        self.coin = {"nothing": None, "one": np.array([1.5]), "two": np.array([1.0, 2.0]), "word": "much"}[coin]

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = super().step(action)
        return observation, self.coin, terminated, truncated, info


class Old(Walk):
    """A walk as Gym's old interface had it: reset() gives an observation alone, step() four things."""

    def __init__(self, masks: str = "none", what: str = "reset") -> None:
        super().__init__(masks)
        self.what = what

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        found = super().reset(seed=seed)
        return found[0] if self.what == "reset" else found

    def step(self, action: int) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.what == "step":
            return observation, reward, terminated or truncated, info
        return observation, reward, np.array([terminated, truncated]), False, info


class Unclosable(Walk):
    """A walk that cannot be closed."""

    def close(self) -> None:
        raise RuntimeError("the door is stuck")


class Leaver(Walk):
    """A walk that leaves Python in its second step, in games of every other seed; or where it is asked for masks."""

    def __init__(self, where: str = "step") -> None:
        super().__init__("method")
        self.where = where

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.leaves = seed is not None and seed % 2 == 0
        return super().reset(seed=seed)

    def step(self, action: int) -> Any:
        if self.where == "step" and self.leaves and self.steps == 1:
            sys.exit("nothing to do here")
        return super().step(action)

    def _mask(self) -> np.ndarray:
        if self.where == "mask" and self.leaves and self.steps == 1:
            sys.exit("nothing to do here")
        return super()._mask()


class Deserted(Match):
    """A game that nobody comes to."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed)
        self.agents = []
        return {}, {}


class Company(Match):
    """A game to which `odd` comes after the first round, or a stranger does; or `odd` leaves and comes back."""

    def __init__(self, who: str = "odd") -> None:
        super().__init__(rounds=4, leaves=who == "back")
        self.who = who

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        observations, infos = super().reset(seed)
        if self.who != "back":
            self.agents = ["even"]
        return {agent: observations[agent] for agent in self.agents}, infos

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        found = super().step(actions)
        if self.round == 2 and self.agents:
            stranger = "stranger" if self.who == "stranger" else "odd"
            self.agents = ["even", stranger]
            found[0][stranger] = np.ones(3, np.int8)
            found[1][stranger] = 0.5
        return found


class Loud(Walk):
    """A walk that talks all the time."""

    def __init__(self, words: int = 1) -> None:
        print("made")  # noqa: T201
        super().__init__("none")
        self.words = words

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        print("begun")  # noqa: T201
        return super().reset(seed=seed)

    def step(self, action: int) -> Any:
        print("stepped " * self.words)  # noqa: T201
        return super().step(action)

    def close(self) -> None:
        print("closed")  # noqa: T201


class Emulated(Walk):
    """A walk with a program of its own beside it, whose number is left in a folder; it ends its process at a step."""

    def __init__(self, folder: str, fault: bool = False, hoard_mb: int = 0) -> None:
        super().__init__("none")
        code = f"import time; hoard = b'x' * ({hoard_mb} << 20); time.sleep(600)"
        self.program = subprocess.Popen([sys.executable, "-c", code])
        (Path(folder) / str(self.program.pid)).touch()
        self.fault = fault

    def step(self, action: int) -> Any:
        if self.fault:
            os._exit(3)
        return super().step(action)

    def close(self) -> None:
        self.program.kill()
        self.program.wait()


class Closing(ParallelEnv):
    """Two seats, of two actions and of three, cut off after two rounds; a call is closed in the round after it.

    In the end the masks are by the same rule ("called"), close all, or are not there ("unsaid").
    """

    metadata = {"name": "closing"}  # noqa: RUF012

    def __init__(self, closes: str = "called") -> None:
        self.possible_agents, self.closes = ["few", "many"], closes

    def observation_space(self, agent: str) -> Any:
        return spaces.MultiBinary(2)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2 if agent == "few" else 3)

    def _infos(self, called: dict[str, int], over: bool) -> dict[str, Any]:
        if over and self.closes == "unsaid":
            return {agent: {} for agent in self.possible_agents}
        masks = {agent: np.ones(self.action_space(agent).n, np.int8) for agent in self.possible_agents}
        for agent, action in called.items():
            masks[agent][action] = 0
        return {agent: {"action_mask": mask * (not over or self.closes == "called")} for agent, mask in masks.items()}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        self.agents, self.round = list(self.possible_agents), 0
        return {agent: np.ones(2, np.int8) for agent in self.agents}, self._infos({}, False)

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        self.round += 1
        over, everyone = self.round == 2, list(self.agents)
        seen = {agent: np.ones(2, np.int8) for agent in everyone}
        infos = self._infos(actions, over)
        self.agents = [] if over else everyone
        return seen, dict.fromkeys(everyone, 0.0), dict.fromkeys(everyone, False), dict.fromkeys(everyone, over), infos
