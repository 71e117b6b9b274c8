"""Envs that fail outside of a step: while they are made, or while a game begins."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.games.external.envs import Match, Nim, Walk


class Stumble(Walk):
    """A walk that ends its process, hangs or sees nothing when a game begins with a multiple of `every` as its seed."""

    def __init__(self, fault: str = "exit", every: int = 7) -> None:
        super().__init__("method", 6)
        self.fault, self.every = fault, every

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed and seed % self.every == 0:
            match self.fault:
                case "exit":
                    os._exit(9)
                case "hang":
                    time.sleep(60)
                case "nan":
                    return super().reset(seed=seed)[0] * np.nan, {}
        return super().reset(seed=seed, options=options)


class ShakyNim(Nim):
    """Nim that ends its process, or raises, at the third move where the sticks were a multiple of three."""

    def __init__(self, fault: str = "exit") -> None:
        super().__init__()
        self.fault = fault

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        super().reset(seed, options)
        self.cursed = self.sticks % 3 == 0

    def step(self, action: int | None) -> None:
        super().step(action)
        if self.cursed and self.moves == 3:
            _fail(self.fault)


class ShakyMatch(Match):
    """A match that ends its process, or raises, when they call heads and tails after the second round."""

    def __init__(self, fault: str = "exit") -> None:
        super().__init__(rounds=9)
        self.fault = fault

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        found = super().step(actions)
        if self.round >= 3 and actions == {"even": 0, "odd": 1}:
            _fail(self.fault)
        return found


class Dials(gymnasium.Env):
    """Takes two numbers a step; ends its process, or raises, at 11 and 6 in the fourth step of a game or later."""

    def __init__(self, fault: str = "exit", steps: int = 40) -> None:
        self.fault, self.limit = fault, steps
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.MultiDiscrete([3, 2], start=[10, 5])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps >= 4 and list(action) == [11, 6]:
            _fail(self.fault)
        return np.zeros(2, np.float32), 0.0, False, self.steps >= self.limit, {}


def _fail(fault: str) -> None:
    if fault == "raise":
        raise RuntimeError("it fell apart")
    os._exit(7)


class Unmade(Walk):
    """A walk that cannot be made when it is the `refuse_from`th, or a later one before the `refuse_to`th.

    `mark` is a file that counts them; the first step of the third raises if `fault` says so.
    """

    def __init__(
        self, mark: str, refuse_from: int, refuse_to: int, fault: str = "raise", words: str = "the port is taken"
    ) -> None:
        with open(mark, "a") as file:
            file.write("made\n")
        with open(mark) as file:
            self.number = len(file.readlines())
        if refuse_from <= self.number < refuse_to:
            raise OSError(words)
        super().__init__("method", 12)
        self.fault = fault

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.number == 3 and self.fault == "raise":
            raise RuntimeError("it fell apart")
        return super().step(action)
