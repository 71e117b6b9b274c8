"""Where the network decides: in the trainer, for tables that it or workers play, or in actors beside the envs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from maple.bench.burn import rounds_per_us
from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.train import MapleSide
from maple.core.config import Config
from maple.core.sources import load_config
from maple.games.external.game import DEFAULTS
from maple.training.fleet.fleet import Fleet

__all__ = ["bench_actors"]

ENV = "maple.bench.burn:BurnEnv"
TURNS = 5  # pairs of slices, after one that is warm-up


def _slice(side: MapleSide, seconds: float) -> float:
    """Learned decisions a second; what actors were asked for ahead is waited for, so that nobody plays meanwhile."""
    began, steps = side.wall_s, side.steps
    side.slice(seconds)
    settled = 0.0
    if isinstance(side.trainer.arena, Fleet):
        settled = side.trainer.arena.settle()
    return (side.steps - steps) / (side.wall_s - began + settled)


def _config(cost_us: float, envs: int, settings: Sequence[str], seed: int, extra: Sequence[str]) -> Config:
    burnt = round(cost_us * rounds_per_us())
    given = [f"tables={envs}", f"env.rounds={burnt}", "env.masks=method", *settings, *extra]
    return load_config(ENV, settings=given, defaults=DEFAULTS, flags={"steps": 1, "seed": seed})


def bench_actors(
    costs_us: Sequence[float],
    envs: int,
    actors: int,
    settings: Sequence[str],
    seconds: float,
    log: Callable[[str], None],
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Training with actors beside training as it is chosen without, in turns (A B B A …), for envs of each cost."""
    results = []
    for cost in costs_us:
        log(f"envs of {cost:g} µs a step")
        with ExitStack() as stack:
            ways = {"trainer": [], "actors": [f"actors.count={actors}"]}
            sides = {
                name: stack.enter_context(MapleSide(_config(cost, envs, settings, seed, extra)))
                for name, extra in ways.items()
            }
            turns = [partial(_slice, side, seconds / TURNS) for side in sides.values()]
            speeds = dict(zip(ways, interleave(turns[0], turns[1], TURNS), strict=True))
            lag = sides["actors"].trainer.arena
            assert isinstance(lag, Fleet)
        ratio, interval = ratio_interval(speeds["actors"], speeds["trainer"])
        found: dict[str, Any] = {"step_cost_us": cost, "envs": envs, "actors_count": actors, "policy_lag": lag.lag}
        found |= {name: {"steps_per_s": float(np.median(each)), "slices": each} for name, each in speeds.items()}
        results.append(found | {"ratio": ratio, "ratio_ci95": list(interval), "seed": seed, "machine": machine()})
    return results
