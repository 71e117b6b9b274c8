"""Training on battles beside the same bridge with a random policy: what learning costs on top of playing."""

from __future__ import annotations

from typing import Any

import numpy as np

from maple.arena.node import NodeArena
from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.showdown import BridgeSide
from maple.bench.train import PAIRS, MapleSide
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.errors import ConfigError

__all__ = ["bench_battle_training"]

WARM_UP_S = 10.0


def bench_battle_training(config: Config, seconds: float, warm_up_s: float = WARM_UP_S) -> dict[str, Any]:
    """Decisions played a second in training and in random play, same tables and processes; `seconds` a side."""
    if config.name != "showdown":
        raise ConfigError(f"{config.name} plays in no bridge; --peer bridge is for showdown")
    processes, slice_s = config.threads or available_cores(), seconds / PAIRS
    learned: list[float] = []
    with MapleSide(config) as maple:
        arena = maple.trainer.arena
        assert isinstance(arena, NodeArena)
        tables = arena.tables

        def train() -> float:
            before, wall = arena.counters.decisions, maple.wall_s
            learned.append(maple.slice(slice_s))
            return (arena.counters.decisions - before) / (maple.wall_s - wall)

        with BridgeSide(config.game, processes, -(-tables // processes), config.seed) as bridge:
            maple.slice(warm_up_s)
            bridge.slice(warm_up_s)
            played, random = interleave(train, lambda: bridge.slice(slice_s), PAIRS)
    efficiency, interval = ratio_interval(played, random)
    return {
        "game": config.name,
        "algo": config.algo,
        "maple": {
            "steps_per_s": float(np.median(learned[-PAIRS:])),
            "decisions_per_s": float(np.median(played)),
            "slices": played,
        },
        "bridge": {"name": bridge.name, "decisions_per_s": float(np.median(random)), "slices": random},
        "efficiency": efficiency,
        "efficiency_ci95": list(interval),
        "tables": tables,
        "processes": processes,
        "seed": config.seed,
        "machine": machine(),
    }
