"""Arenas for envs of the user's own: workers, `auto`, a plain loop and peers on the same env, interleaved.

As many plain loops at once as there are workers, which share nothing, show what the cores themselves could do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from types import TracebackType
from typing import Any, Protocol

from maple.arena.choose import external_arena
from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.bench.burn import rounds_per_us
from maple.bench.loops import Closing, PlainLoops, SerialLoop
from maple.bench.measure import machine, ratio_interval
from maple.core.cores import available_cores
from maple.games import make_game
from maple.games.external.game import ExternalGame

__all__ = ["STEP_COSTS_US", "ArenaSide", "bench_arena", "overhead_us"]

STEP_COSTS_US = (0.0, 10.0, 50.0, 200.0, 1000.0)
ROUNDS = 7  # of slices at least; the first is warm-up and dropped
SLICE_S = 0.25  # at most: many short turns tell sides apart on a machine whose speed changes from second to second


class Side(Protocol):
    """Something that plays envs and can be measured in slices."""

    def __enter__(self) -> Side: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def slice(self, seconds: float) -> float:
        """Play for `seconds`; returns env steps a second."""


class ArenaSide(Closing):
    """A Maple arena; every decision takes the first action that its mask leaves open."""

    def __init__(self, arena: SerialArena | WorkerArena) -> None:
        self._arena = arena

    @property
    def workers(self) -> int:
        """Processes that play; 0 where this one does."""
        return self._arena.workers if isinstance(self._arena, WorkerArena) else 0

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


def _sides(envs: int, workers: int, rounds: int, peers: bool, seed: int) -> dict[str, Callable[[], Any]]:
    arguments: dict[str, Any] = {"rounds": rounds, "masks": "method"}

    def arena(count: Any) -> ArenaSide:
        game = make_game("maple.bench.burn:BurnEnv", arguments)
        assert isinstance(game, ExternalGame)
        return ArenaSide(external_arena(game, envs, seed, count, available_cores()))

    sides: dict[str, Callable[[], Any]] = {
        "auto": lambda: arena("auto"),  # first: it measures, and the others' spare processes are not on their way yet
        "maple": lambda: arena(workers),
        "serial": lambda: SerialLoop(envs, seed, **arguments),
        "limit": lambda: PlainLoops(envs, workers, seed, **arguments),
        "unmasked": lambda: ArenaSide(_unmasked(envs, workers, rounds, seed)),
    }
    if peers:
        from maple.bench.peers.vector import GymnasiumAsync, Sb3Subproc

        sides["gymnasium_async"] = lambda: GymnasiumAsync(envs, rounds, seed)
        sides["sb3_subproc"] = lambda: Sb3Subproc(envs, rounds, seed)
    return sides


def _unmasked(envs: int, workers: int, rounds: int, seed: int) -> SerialArena | WorkerArena:
    game = make_game("maple.bench.burn:BurnEnv", {"rounds": rounds, "masks": "none"})
    assert isinstance(game, ExternalGame)
    return external_arena(game, envs, seed, workers, available_cores())


def _measure(sides: dict[str, Callable[[], Any]], seconds: float) -> tuple[dict[str, list[float]], int]:
    """Speeds of all sides, slice by slice, each round in the other order, and how many workers `auto` had.

    The first round is dropped.
    """
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    with ExitStack() as stack:
        running = {name: stack.enter_context(make()) for name, make in sides.items()}
        rounds = max(ROUNDS, round(seconds / SLICE_S))
        for number in range(rounds):
            names = list(running) if number % 2 == 0 else list(reversed(running))
            for name in names:
                speed = running[name].slice(seconds / rounds)
                if number:
                    speeds[name].append(speed)
        return speeds, running["auto"].workers


def _ratios(speeds: dict[str, list[float]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pairs = [("maple", other) for other in speeds if other not in ("maple", "auto")] + [("auto", "serial")]
    for a, b in pairs:
        ratio, interval = ratio_interval(speeds[a], speeds[b])
        found[f"{a}_over_{b}"] = {"ratio": ratio, "ratio_ci95": list(interval)}
    return found


def overhead_us(speeds: dict[str, list[float]], workers: int) -> float:
    """What a step takes more, over all workers, than where plain loops keep as many cores as busy: the median round's.

    Beside one plain loop the cores' own loss would count: each of them is slower when all are busy.
    """
    return 1e6 * median(workers / ours - workers / plain for ours, plain in zip(speeds["maple"], speeds["limit"]))


def bench_arena(
    costs_us: Sequence[float],
    envs: int,
    workers: int,
    peers: bool,
    seconds: float,
    tell: Callable[[str], None],
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Steps a second of every side at each step cost; `seconds` is per side and cost."""
    per_us, results = rounds_per_us(), []
    for cost_us in costs_us:
        rounds = round(cost_us * per_us)
        tell(f"measuring envs of {cost_us:g} µs a step")
        speeds, auto = _measure(_sides(envs, workers, rounds, peers, seed), seconds)
        means = {name: sum(values) / len(values) for name, values in speeds.items()}
        results.append(
            {
                "step_cost_us": cost_us,
                "envs": envs,
                "workers": workers,
                "auto_workers": auto,
                **{name: {"steps_per_s": means[name], "slices": speeds[name]} for name in speeds},
                "overhead_us_per_step": overhead_us(speeds, workers),
                "ratios": _ratios(speeds),
                "seed": seed,
                "machine": machine(),
            }
        )
    return results
