"""Arenas for envs of the user's own: workers, `auto`, a plain loop and peers on the same env, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from maple.arena.base import Arena
from maple.arena.choose import choose_workers, external_arena, step_cost_s
from maple.bench.burn import BurnEnv, rounds_per_us
from maple.bench.measure import machine, ratio_interval
from maple.core.cores import available_cores
from maple.games import make_game
from maple.games.external.game import ExternalGame

__all__ = ["STEP_COSTS_US", "ArenaSide", "bench_arena"]

STEP_COSTS_US = (0.0, 10.0, 50.0, 200.0, 1000.0)
ROUNDS = 7  # of slices; the first is warm-up and dropped


class Side(Protocol):
    """Something that plays envs and can be measured in slices."""

    def __enter__(self) -> Side: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def slice(self, seconds: float) -> float:
        """Play for `seconds`; returns env steps a second."""


class _Closing:
    """Sides are closed at the end."""

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what the side started."""


class ArenaSide(_Closing):
    """A Maple arena; every decision takes the first action that its mask leaves open."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def slice(self, seconds: float) -> float:
        """Play for `seconds`."""
        arena, rows, began = self._arena, 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            step = arena.recv()
            arena.send(step.mask.argmax(axis=1))
            rows += len(step.view)
        return rows / passed

    def close(self) -> None:
        """End the arena."""
        self._arena.close()


class SerialLoop(_Closing):
    """The loop that a user would write: one process, the same arrays, which are all that a learner needs of a step."""

    def __init__(self, envs: int, **arguments: Any) -> None:
        self._envs = [BurnEnv(**arguments) for _ in range(envs)]
        self._masked = arguments["masks"] == "method"
        found = [env.reset(seed=seed)[0] for seed, env in enumerate(self._envs)]
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
                    observation, _ = env.reset(seed=int(self._game[i]))
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


def _sides(envs: int, workers: int, rounds: int, masks: str, peers: bool) -> dict[str, Callable[[], Any]]:
    arguments = {"rounds": rounds, "masks": masks}

    def arena(count: Any) -> ArenaSide:
        game = make_game("maple.bench.burn:BurnEnv", arguments)
        assert isinstance(game, ExternalGame)
        return ArenaSide(external_arena(game, envs, 0, count, available_cores()))

    sides: dict[str, Callable[[], Any]] = {
        "maple": lambda: arena(workers),
        "auto": lambda: arena("auto"),
        "serial": lambda: SerialLoop(envs, **arguments),
    }
    if masks == "method":
        sides["unmasked"] = lambda: ArenaSide(_unmasked(envs, workers, rounds))
    if peers:
        from maple.bench.peers.vector import GymnasiumAsync, Sb3Subproc

        sides["gymnasium_async"] = lambda: GymnasiumAsync(envs, rounds)
        sides["sb3_subproc"] = lambda: Sb3Subproc(envs, rounds)
    return sides


def _unmasked(envs: int, workers: int, rounds: int) -> Arena:
    game = make_game("maple.bench.burn:BurnEnv", {"rounds": rounds, "masks": "none"})
    assert isinstance(game, ExternalGame)
    return external_arena(game, envs, 0, workers, available_cores())


def _measure(sides: dict[str, Callable[[], Any]], slice_s: float) -> dict[str, list[float]]:
    """Speeds of all sides, slice by slice, each round in the other order; the first round is dropped."""
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    with ExitStack() as stack:
        running = {name: stack.enter_context(make()) for name, make in sides.items()}
        for number in range(ROUNDS):
            names = list(running) if number % 2 == 0 else list(reversed(running))
            for name in names:
                speed = running[name].slice(slice_s)
                if number:
                    speeds[name].append(speed)
    return speeds


def _ratios(speeds: dict[str, list[float]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pairs = [("maple", other) for other in speeds if other not in ("maple", "auto")] + [("auto", "serial")]
    for a, b in pairs:
        ratio, interval = ratio_interval(speeds[a], speeds[b])
        found[f"{a}_over_{b}"] = {"ratio": ratio, "ratio_ci95": list(interval)}
    return found


def bench_arena(
    costs_us: Sequence[float], envs: int, workers: int, peers: bool, seconds: float, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Steps a second of every side at each step cost; `seconds` is per side and cost."""
    per_us, results = rounds_per_us(), []
    for cost_us in costs_us:
        rounds = round(cost_us * per_us)
        tell(f"measuring envs of {cost_us:g} µs a step")
        speeds = _measure(_sides(envs, workers, rounds, "method", peers), seconds / ROUNDS)
        means = {name: sum(values) / len(values) for name, values in speeds.items()}
        game = make_game("maple.bench.burn:BurnEnv", {"rounds": rounds})
        assert isinstance(game, ExternalGame)
        auto = choose_workers(step_cost_s(game) or 0.0, envs, available_cores())
        results.append(
            {
                "step_cost_us": cost_us,
                "envs": envs,
                "workers": workers,
                "auto_workers": auto,
                **{name: {"steps_per_s": means[name], "slices": speeds[name]} for name in speeds},
                "overhead_us_per_step": 1e6 * (workers / means["maple"] - 1 / means["serial"]),
                "ratios": _ratios(speeds),
                "machine": machine(),
            }
        )
    return results
