"""Envs of a user's own, small enough to be checked by eye: what `tests.games.external.envs:NAME` makes."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from maple.core.spec import EntityGroup


class Walk(gymnasium.Env):
    """A walk on a line, with an action mask by `masks`: "method", "info", "observation" or "none".

    Ends at either end of the line, is cut off after `limit` steps. The reward is the place reached. Writes a line to
    the file `closes` when it is closed.
    """

    def __init__(
        self, masks: str = "method", limit: int = 12, floats: bool = True, size: int = 7, closes: str = ""
    ) -> None:
        self.masks, self.limit, self.size, self.closes = masks, limit, size, closes
        low, high = (-1.0, 1.0) if floats else (0, 1)
        self.box = spaces.Box(low, high, (size,), np.float32 if floats else np.uint8)
        self.observation_space = self.box
        if masks == "observation":
            self.observation_space = spaces.Dict({"where": self.box, "action_mask": spaces.Box(0, 1, (3,), np.int8)})
        if masks == "method":
            self.action_masks = self._mask
        self.action_space = spaces.Discrete(3)

    def close(self) -> None:
        if self.closes:
            with open(self.closes, "a") as file:
                file.write("closed\n")

    def _mask(self) -> np.ndarray:
        return np.array([True, self.steps % 2 == 0, True])

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        row = np.zeros(self.size, self.box.dtype)
        row[self.place] = 1
        info = {"action_mask": self._mask()} if self.masks == "info" else {}
        return ({"where": row, "action_mask": self._mask()} if self.masks == "observation" else row), info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(1, self.size - 1)), 0
        return self._seen()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.masks == "none" or self._mask()[action], "an action that the mask forbids"
        drift = int(self.np_random.integers(0, 2))
        self.place = min(max(self.place + (int(action) - 1) * (1 + drift), 0), self.size - 1)
        self.steps += 1
        observation, info = self._seen()
        over = self.place in (0, self.size - 1)
        return observation, float(self.place), over, self.steps >= self.limit and not over, info


class Recall(gymnasium.Env):
    """A cue is shown once; after `delay` blank sights it has to be named. Right is worth 1, all else nothing.

    With `masked`, only waiting (the last action) is open before the end, and only naming at the end.
    """

    def __init__(self, cues: int = 3, delay: int = 4, masked: bool = False) -> None:
        self.cues, self.delay, self.masked = cues, delay, masked
        self.observation_space = spaces.Box(0.0, 1.0, (cues + 1,), np.float32)
        self.action_space = spaces.Discrete(cues + 1)
        if masked:
            self.action_masks = self._mask

    def _mask(self) -> np.ndarray:
        naming = self.steps == self.delay
        return np.array([naming] * self.cues + [not naming])

    def _seen(self) -> np.ndarray:
        row = np.zeros(self.cues + 1, np.float32)
        if self.steps == 0:
            row[self.cue] = 1.0
        row[self.cues] = self.steps == self.delay
        return row

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cue, self.steps = int(self.np_random.integers(self.cues)), 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert not self.masked or self._mask()[action], "an action that the mask forbids"
        over = self.steps == self.delay
        reward = float(over and action == self.cue)
        self.steps = min(self.steps + 1, self.delay)
        return self._seen(), reward, over, False, {}


class Herd(gymnasium.Env):
    """Up to `most` animals, each there or not, at any place: point at the heaviest. One decision a game.

    The last action gives up; it is the only one that is not about an animal, and never worth anything.
    """

    def __init__(self, most: int = 6) -> None:
        self.most = most
        self.observation_space = spaces.Box(-1.0, 1.0, (2 + 3 * most,), np.float32)
        self.action_space = spaces.Discrete(most + 1)
        self.entities = [EntityGroup("animals", begin=2, count=most, width=3, present=1, actions=(0,))]

    def action_masks(self) -> np.ndarray:
        return np.append(self.animals[:, 1] > 0, True)

    def _seen(self) -> np.ndarray:
        return np.concatenate([[1.0, -1.0], self.animals.reshape(-1)]).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        there = np.zeros(self.most)
        there[self.np_random.permutation(self.most)[: self.np_random.integers(2, self.most + 1)]] = 1
        weights, noise = self.np_random.random(self.most), self.np_random.random(self.most)
        self.animals = np.stack([weights * there, there, noise], axis=1)
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._seen(), float(action == self.animals[:, 0].argmax()), True, False, {}


class Mixed(gymnasium.Env):
    """Every kind of observation at once, and actions of several parts that must add up to the number shown."""

    def __init__(self, start: int = 0) -> None:
        self.observation_space = spaces.Dict(
            {
                "number": spaces.Discrete(4, start=start),
                "pair": spaces.MultiDiscrete([2, 3]),
                "bits": spaces.MultiBinary(3),
                "image": spaces.Box(0, 255, (2, 2), np.uint8),
                "both": spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (2,), np.float64))),
            }
        )
        self.action_space = spaces.MultiDiscrete([2, 3], start=[0, 1])
        self.start = start

    def _seen(self) -> dict[str, Any]:
        self.value = self.np_random.integers(0, 4)
        self.last = {
            "number": self.start + self.value,
            "pair": np.array([1, 2]),
            "bits": np.array([1, 0, 1], np.int8),
            "image": np.full((2, 2), 200, np.uint8),
            "both": (1, np.array([0.5, -0.5])),
        }
        return self.last

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = 5
        return self._seen(), {}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        reward = float(int(action.sum()) - 1 == self.value)
        self.left -= 1
        return self._seen(), reward, self.left == 0, False, {}


class Nim(AECEnv):
    """Two take one to three of some sticks in turn; who takes the last wins. Cut off after `limit` moves."""

    metadata = {"name": "nim"}  # noqa: RUF012

    def __init__(self, sticks: int = 11, limit: int = 100) -> None:
        self.possible_agents = ["first", "second"]
        self.most, self.limit = sticks, limit
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Discrete(sticks + 1),
                    "action_mask": spaces.Box(0, 1, (3,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(3) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def observe(self, agent: str) -> dict[str, Any]:
        return {"observation": self.sticks, "action_mask": (np.arange(1, 4) <= self.sticks).astype(np.int8)}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.agents = list(self.possible_agents)
        self.sticks = int(np.random.default_rng(seed).integers(5, self.most + 1))
        self.moves = 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        assert 1 + action <= self.sticks
        other = self.agents[1 - self.agents.index(agent)]
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.sticks -= 1 + action
        self.moves += 1
        if self.sticks == 0:
            self.rewards = {agent: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
        elif self.moves >= self.limit:
            self.truncations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._accumulate_rewards()


class Match(ParallelEnv):
    """Two call heads or tails at once for `rounds` rounds; the first earns 1 when they agree, the second when not."""

    metadata = {"name": "match"}  # noqa: RUF012

    def __init__(self, rounds: int = 4, cut: bool = False, leaves: bool = False) -> None:
        self.possible_agents = ["even", "odd"]
        self.rounds, self.cut, self.leaves = rounds, cut, leaves

    def observation_space(self, agent: str) -> Any:
        return spaces.MultiBinary(4 if agent == "even" else 3)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def _seen(self) -> dict[str, Any]:
        return {a: np.resize(self.bits, 4 if a == "even" else 3).astype(np.int8) for a in self.agents}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        self.rng = np.random.default_rng(seed)
        self.agents, self.round = list(self.possible_agents), 0
        self.bits = self.rng.integers(0, 2, 4)
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        assert set(actions) == set(self.agents)
        agree = len(set(actions.values())) == 1
        self.round += 1
        self.bits = self.rng.integers(0, 2, 4)
        earned = {"even": float(agree), "odd": float(not agree)}
        over = self.round >= self.rounds
        gone = {agent: over or (self.leaves and agent == "odd" and self.round == 1) for agent in self.agents}
        found = (
            self._seen(),
            {agent: earned[agent] for agent in self.agents},
            {agent: gone[agent] and not self.cut for agent in self.agents},
            {agent: gone[agent] and self.cut for agent in self.agents},
            {agent: {} for agent in self.agents},
        )
        self.agents = [agent for agent in self.agents if not gone[agent]]
        return found


class Throw(ParallelEnv):
    """Rock, paper, scissors once; what a win with each is worth is in `worth`, a loss costs the same."""

    metadata = {"name": "throw"}  # noqa: RUF012

    def __init__(self, worth: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> None:
        self.possible_agents, self.worth = ["first", "second"], worth

    def observation_space(self, agent: str) -> Any:
        return spaces.MultiBinary(2)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        self.agents = list(self.possible_agents)
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self) -> dict[str, Any]:
        return {agent: np.ones(2, np.int8) for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        one, other = int(actions["first"]), int(actions["second"])
        earned = {1: self.worth[one], 2: -self.worth[other]}.get((one - other) % 3, 0.0)
        everyone, seen = list(self.agents), self._seen()
        self.agents = []
        ended = dict.fromkeys(everyone, True)
        infos = {agent: {} for agent in everyone}
        return seen, {"first": earned, "second": -earned}, ended, dict.fromkeys(everyone, False), infos


class Faulty(Walk):
    """A walk that fails in a way of one's choice, at step `at` of games whose seed is a multiple of `every`."""

    def __init__(self, fault: str = "raise", every: int = 3, at: int = 2) -> None:
        super().__init__("method", 12)
        self.fault, self.every, self.at = fault, every, at
        self.hoard: list[bytearray] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.cursed = seed is not None and seed % self.every == 0
        return super().reset(seed=seed, options=options)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        found = super().step(action)
        if not self.cursed or self.steps != self.at:
            return found
        match self.fault:
            case "raise":
                raise RuntimeError("the walk fell into a hole")
            case "exit":
                os._exit(7)
            case "segfault":
                ctypes.string_at(0)
            case "hang":
                while True:
                    pass
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "grow":
                self.hoard.append(bytearray(b"x") * (512 << 20))
                time.sleep(30)
            case "shape":
                return np.zeros(3, np.float32), *found[1:]
            case "nan":
                return found[0], float("nan"), *found[2:]
            case "nan at the end":
                return found[0] * np.nan, 0.0, False, True, {}
            case "nan observation":
                return found[0] * np.nan, 0.0, False, False, {}
        return found

    def _mask(self) -> np.ndarray:
        forbids = self.fault == "no action" and self.cursed and self.steps == self.at
        return np.zeros(3, np.bool_) if forbids else super()._mask()


class Lock(gymnasium.Env):
    """Four dials in a row: three of five positions are legal at each, one opens it, and only the end pays."""

    RIGHT = (1, 3, 0, 2)

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 1, (5,), np.uint8)
        self.action_space = spaces.Discrete(5)

    def action_masks(self) -> np.ndarray:
        return np.array([(action - self.RIGHT[self.dial]) % 5 < 3 for action in range(5)])

    def _seen(self) -> np.ndarray:
        return np.array([place == self.dial for place in range(4)] + [self.right], np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.dial, self.right = 0, True
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_masks()[action], "an action that the mask forbids"
        self.right = self.right and int(action) == self.RIGHT[self.dial]
        over = self.dial == 3
        self.dial = min(self.dial + 1, 3)
        return self._seen(), float(over and self.right), over, False, {}


class Preempted(Walk):
    """A walk whose machine is taken away at its so-many-th step, once."""

    left = 10

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        Preempted.left -= 1
        if Preempted.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().step(action)
