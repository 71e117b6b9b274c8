"""Where the network decides: in the trainer, for tables that it or workers play, or in actors beside the envs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from maple.bench.burn import rounds_per_us
from maple.bench.measure import machine, ratio_interval
from maple.bench.train import MapleSide
from maple.core.config import Config
from maple.core.sources import load_config
from maple.games.external.game import DEFAULTS
from maple.training.fleet.fleet import Fleet

__all__ = ["bench_actors"]

ENV = "maple.bench.burn:BurnEnv"
TURNS = 5
WARM_S = 1.0


def _slice(side: MapleSide, seconds: float) -> float:
    """Learned decisions a second; what actors were asked for ahead is waited for, so that nobody plays meanwhile."""
    began, steps = side.wall_s, side.steps
    side.slice(seconds)
    settled = 0.0
    if isinstance(side.trainer.arena, Fleet):
        settled = side.trainer.arena.settle()
    return (side.steps - steps) / (side.wall_s - began + settled)


def _config(cost_us: float, envs: int, settings: Sequence[str], extra: Sequence[str]) -> Config:
    burnt = round(cost_us * rounds_per_us())
    given = [f"tables={envs}", f"env.rounds={burnt}", "env.masks=method", *settings, *extra]
    return load_config(ENV, settings=given, defaults=DEFAULTS, flags={"steps": 1})


def bench_actors(
    costs_us: Sequence[float],
    envs: int,
    actors: int,
    settings: Sequence[str],
    seconds: float,
    log: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Training with actors beside training as it is chosen without, in turns, for envs of each cost."""
    results = []
    for cost in costs_us:
        log(f"envs of {cost:g} µs a step")
        with ExitStack() as stack:
            ways = {"trainer": [], "actors": [f"actors.count={actors}"]}
            sides = {
                name: stack.enter_context(MapleSide(_config(cost, envs, settings, extra)))
                for name, extra in ways.items()
            }
            for side in sides.values():
                _slice(side, WARM_S)
            speeds: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(TURNS):
                for name, side in sides.items():
                    speeds[name].append(_slice(side, seconds / TURNS))
            lag = sides["actors"].trainer.arena
            assert isinstance(lag, Fleet)
        ratio, interval = ratio_interval(speeds["actors"], speeds["trainer"])
        found: dict[str, Any] = {"step_cost_us": cost, "envs": envs, "actors_count": actors, "policy_lag": lag.lag}
        found |= {name: {"steps_per_s": float(np.median(each)), "slices": each} for name, each in speeds.items()}
        results.append(found | {"ratio": ratio, "ratio_ci95": list(interval), "machine": machine()})
    return results
