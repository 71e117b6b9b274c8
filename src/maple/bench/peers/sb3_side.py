"""A Stable-Baselines3 run as one side of a benchmark, measured in slices."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

__all__ = ["NEEDED", "Sb3LearningSide"]

NEEDED = "the peer needs sb3-contrib; install it with: pip install 'maple-rl[peers]'"


class Sb3LearningSide:
    """Learns `stride` steps at a time, between which it looks at the clock."""

    def __init__(self, env: Any, model: Any, stride: int, updates_per_step: float | None = None) -> None:
        self.env, self.model, self._stride, self._updates_per_step = env, model, stride, updates_per_step
        self.updates_per_s: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.env.close()

    def slice(self, seconds: float) -> float:
        """Learn until `seconds` have passed; returns steps a second."""
        began, steps, updates = time.perf_counter(), self.model.num_timesteps, self._updates
        while time.perf_counter() - began < seconds:
            self.model.learn(total_timesteps=self._stride, reset_num_timesteps=False)
        wall = time.perf_counter() - began
        self.updates_per_s.append((self._updates - updates) / wall)
        return float((self.model.num_timesteps - steps) / wall)

    @property
    def _updates(self) -> float:
        """Minibatches learned from; where the model counts epochs instead, by the steps taken."""
        if self._updates_per_step is None:
            return float(self.model._n_updates)
        return float(self.model.num_timesteps * self._updates_per_step)
