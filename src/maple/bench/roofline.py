"""The parts of training measured alone, and what the loop makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from maple.arena.node import NodeArena
from maple.bench.inference import record
from maple.bench.measure import machine
from maple.bench.train import MapleSide
from maple.core.config import Config
from maple.games import make_game

__all__ = ["bench_roofline"]

ROUNDS = 5


def _per_row(work: Callable[[], int], seconds: float) -> float:
    """Seconds for each row of repeated `work`."""
    began, rows = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        rows += work()
    return (time.perf_counter() - began) / rows


def bench_roofline(config: Config, seconds: float) -> dict[str, Any]:
    """Game, inference and learning per learned decision, each alone, interleaved with the whole loop."""
    slice_s = seconds / (4 * ROUNDS)
    parts: dict[str, list[float]] = {"game": [], "inference": [], "learning": [], "loop": []}
    with MapleSide(config) as side:
        trainer, arena = side.trainer, side.trainer.here
        side.slice(2.0)
        views, keys, played_per_row = record(side)
        bot = make_game(config.name, config.game).bot("random")

        def play() -> int:
            step = arena.recv()
            action = np.zeros(len(step.keys), np.int32)
            side.team.run(bot, len(action), step.view, 0, step.keys, action)
            arena.send(action)
            return len(action)

        def infer() -> int:
            for view, key in zip(views, keys, strict=True):
                trainer.learner.policy.choose(view, key, 0, greedy=False)
            return sum(map(len, views))

        def learn() -> int:
            return int(trainer.learner.update(0, 0.5)["rows"])

        for _ in range(ROUNDS):
            parts["loop"].append(1.0 / side.slice(slice_s))
            trainer.collect()
            parts["learning"].append(_per_row(learn, slice_s))
            trainer.learner.memory.carry()
            parts["inference"].append(_per_row(infer, slice_s))
            saved = arena.state()
            parts["game"].append(_per_row(play, slice_s) * played_per_row)
            if not isinstance(arena, NodeArena):  # games in another program cannot be put back, and go on
                arena.restore(saved)
    medians = {name: float(np.median(values)) for name, values in parts.items()}
    bound = medians["game"] + medians["inference"] + medians["learning"]
    return {
        "game": config.name,
        "algo": config.algo,
        "parts_us": {name: 1e6 * medians[name] for name in ("game", "inference", "learning")},
        "loop_us": 1e6 * medians["loop"],
        "roofline_steps_per_s": 1.0 / bound,
        "loop_steps_per_s": 1.0 / medians["loop"],
        "efficiency": bound / medians["loop"],
        "machine": machine(),
        "seed": config.seed,
    }
