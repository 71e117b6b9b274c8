"""An env whose step costs what it is told to, in work really done: what arenas are measured with."""

from __future__ import annotations

import os
import signal
import sys
import time
from itertools import repeat
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

__all__ = ["BurnEnv", "rounds_per_us"]

ACTIONS, WIDTH, LENGTH = 8, 8, 128
HOARD = 512 << 20  # bytes that a game which grows takes


def _burn(rounds: int) -> None:
    for _ in repeat(None, rounds):
        pass


def rounds_per_us(seconds: float = 0.2) -> float:
    """How many rounds of an empty loop burn a microsecond of processor time here: the best of several tries."""
    rounds, best, until = 20_000, 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.process_time()
        _burn(rounds)
        best = max(best, rounds / max(1e-9, time.process_time() - began) / 1e6)
    return best


class BurnEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Games of 128 steps with eight actions, some of them masked; a step burns `rounds` rounds of an empty loop.

    `masks` says where they come from: "method", "info" or "none". With `fault_every`, games whose seed it divides do
    something terrible in their fifth step; what it is follows from the seed.
    """

    def __init__(self, rounds: int = 0, masks: str = "method", fault_every: int = 0) -> None:
        self.observation_space = spaces.Box(-1, 1, (WIDTH,), np.float32)
        self.action_space: spaces.Space[Any] = spaces.Discrete(ACTIONS)
        self._rounds, self._in_info, self._fault_every = rounds, masks == "info", fault_every
        if masks == "method":
            self.action_masks = self._mask
        rng = np.random.default_rng(0)
        self._observations = rng.uniform(-1, 1, (LENGTH + 1, WIDTH)).astype(np.float32)
        self._masks = rng.uniform(size=(LENGTH + 1, ACTIONS)) < 0.6
        self._masks[np.arange(LENGTH + 1), rng.integers(0, ACTIONS, LENGTH + 1)] = True
        self._at, self._seed = 0, 0

    def _mask(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self._masks[self._at]
        return mask

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._masks[self._at]} if self._in_info else {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a game."""
        self._at, self._seed = 0, seed or 0
        return self._observations[0], self._info()

    def step(self, action: int | np.integer[Any]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Burn, then move on."""
        if self._rounds:
            _burn(self._rounds)
        self._at += 1
        if self._fault_every and self._at == 5 and self._seed % self._fault_every == 0:
            self._fail()
        return self._observations[self._at], float(action), self._at == LENGTH, False, self._info()

    def _fail(self) -> None:
        match self._seed // self._fault_every % 16:
            case 0:
                os._exit(9)
            case 1:
                if sys.platform == "win32":
                    os.kill(os.getpid(), signal.SIGTERM)
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            case 2:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 3:
                while True:
                    pass
            case 4:
                self._hoard = b"x" * HOARD
                time.sleep(3600)
            case _:
                raise RuntimeError("a fault that was asked for")
