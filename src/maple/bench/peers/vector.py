"""Vector envs that people use today, on the env that arenas are measured with."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from maple.bench.burn import BurnEnv
from maple.core.errors import MissingExtraError

__all__ = ["GymnasiumAsync", "Sb3Subproc"]


class _VectorSide(ABC):
    """A vector env that is measured in slices."""

    _env: Any
    _envs: int

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._env.close()

    @abstractmethod
    def _step(self) -> None:
        """One legal step of every env."""

    def slice(self, seconds: float) -> float:
        """Play for `seconds`; returns env steps a second."""
        rows, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            self._step()
            rows += self._envs
        return rows / passed


class GymnasiumAsync(_VectorSide):
    """Gymnasium's AsyncVectorEnv: a process an env, observations in shared memory, masks in the infos."""

    def __init__(self, envs: int, rounds: int, seed: int = 0) -> None:
        makers = [partial(BurnEnv, rounds=rounds, masks="info") for _ in range(envs)]
        self._env = AsyncVectorEnv(makers, context="forkserver")
        _, infos = self._env.reset(seed=seed)
        self._mask = np.stack(infos["action_mask"])
        self._envs = envs

    def _step(self) -> None:
        *_, infos = self._env.step(self._mask.argmax(axis=1))
        self._mask = np.stack(infos["action_mask"])


class Sb3Subproc(_VectorSide):
    """Stable-Baselines3's SubprocVecEnv: a process an env, a pickle a step, a second round trip for masks."""

    def __init__(self, envs: int, rounds: int, seed: int = 0) -> None:
        try:
            from stable_baselines3.common.vec_env import SubprocVecEnv
        except ImportError:
            raise MissingExtraError(
                "stable-baselines3 is not installed; get it with pip install 'maple-rl[peers]'"
            ) from None
        makers: list[Any] = [partial(BurnEnv, rounds=rounds) for _ in range(envs)]
        self._env = SubprocVecEnv(makers, start_method="forkserver")
        self._env.seed(seed)
        self._env.reset()
        self._envs = envs

    def _step(self) -> None:
        mask = np.stack(self._env.env_method("action_masks"))
        self._env.step(mask.argmax(axis=1))
