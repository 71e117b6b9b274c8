"""The loop that a user would write, and as many of them as there are workers: what arenas are measured against."""

from __future__ import annotations

import time
from itertools import pairwise
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Self

import numpy as np

from maple.bench.burn import BurnEnv

__all__ = ["Closing", "PlainLoops", "SerialLoop"]


class Closing:
    """Sides are closed at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what the side started."""


class SerialLoop(Closing):
    """The loop that a user would write: one process, the same arrays, which are all that a learner needs of a step."""

    def __init__(self, envs: int, seed: int = 0, **arguments: Any) -> None:
        self._seed = seed
        self._envs = [BurnEnv(**arguments) for _ in range(envs)]
        self._masked = arguments["masks"] == "method"
        found = [env.reset(seed=seed + number)[0] for number, env in enumerate(self._envs)]
        self._observation = np.stack(found)
        self._reward = np.zeros(envs, np.float32)
        self._terminated, self._truncated = np.zeros(envs, np.bool_), np.zeros(envs, np.bool_)
        self._game, self._decision = np.zeros(envs, np.int64), np.zeros(envs, np.int32)
        self._score = np.zeros(envs)
        self._mask = np.ones((envs, 8), np.bool_)

    def slice(self, seconds: float) -> float:
        """Play for `seconds`."""
        rows, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            action = self._mask.argmax(axis=1)
            for i, env in enumerate(self._envs):
                observation, reward, terminated, truncated, _ = env.step(int(action[i]))
                if terminated or truncated:
                    observation, _ = env.reset(seed=self._seed + int(self._game[i]))
                    self._finish(i, reward)
                self._observation[i] = observation
                self._reward[i] = reward
                self._terminated[i], self._truncated[i] = terminated, truncated
                if self._masked:
                    self._mask[i] = env.action_masks()
            self._score += self._reward
            self._decision += 1
            rows += len(self._envs)
        return rows / passed

    def _finish(self, i: int, reward: float) -> None:
        """Keep the figures of a game that has ended; the next one begins."""
        self.figures = (int(self._decision[i]) + 1, float(self._score[i]) + reward)
        self._game[i] += 1
        self._decision[i], self._score[i] = -1, 0.0


class PlainLoops(Closing):
    """So many of them at once, each with its share of the envs in a process that nobody talks to: the cores' limit."""

    def __init__(self, envs: int, processes: int, seed: int = 0, **arguments: Any) -> None:
        spawn, shares = get_context("spawn"), [envs * k // processes for k in range(processes + 1)]
        self._lines: list[Any] = []  # a kind of its own on Windows
        self._processes = []
        for lo, hi in pairwise(shares):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(theirs, hi - lo, seed, arguments), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._lines.append(ours)
        for line in self._lines:
            line.recv()  # it has made its envs

    def slice(self, seconds: float) -> float:
        """Have all of them play for `seconds`."""
        for line in self._lines:
            line.send(seconds)
        return float(sum(line.recv() for line in self._lines))

    def close(self) -> None:
        """End the processes."""
        for line, process in zip(self._lines, self._processes, strict=True):
            line.close()
            process.join()


def _serve(line: Any, envs: int, seed: int, arguments: dict[str, Any]) -> None:
    """Play whenever told to, until the line ends."""
    loop = SerialLoop(envs, seed, **arguments)
    line.send(True)
    while True:
        try:
            line.send(loop.slice(line.recv()))
        except EOFError:
            return
