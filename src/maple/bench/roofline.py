"""The parts of training measured alone, and what the loop makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from maple.bench.measure import machine
from maple.bench.train import MapleSide
from maple.core.config import Config
from maple.core.step import Keys

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
    with MapleSide(config) as side:
        side.slice(2.0)
        trainer = side.trainer
        views, keys, per_round = _record(side)
        batch = trainer.rollout.batch()
        action = np.zeros(trainer.arena.tables, np.int32)
        bot = trainer.arena.game.bot("random")  # type: ignore[attr-defined]

        def play() -> int:
            step = trainer.arena.recv()
            side.team.run(bot, trainer.arena.tables, step.view, 0, step.keys, action)
            trainer.arena.send(action)
            return trainer.arena.tables

        def infer() -> int:
            for view, key in zip(views, keys, strict=True):
                trainer.learner.policy.choose(view, key, 0, greedy=False)
            return sum(map(len, views))

        def learn() -> int:
            trainer.learner.update(batch, 0, 0.5)
            return len(batch.closed)

        parts: dict[str, list[float]] = {"game": [], "inference": [], "learning": [], "loop": []}
        for _ in range(ROUNDS):
            trainer.rollout.carry()
            parts["loop"].append(1.0 / side.slice(slice_s))
            batch, state = _fill(side), trainer.arena.state()
            saved = {name: array.copy() for name, array in state.items()}
            parts["game"].append(_per_row(play, slice_s) * per_round)
            trainer.arena.restore(saved)
            parts["inference"].append(_per_row(infer, slice_s))
            parts["learning"].append(_per_row(learn, slice_s))
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


def _record(side: MapleSide) -> tuple[list[Any], list[Keys], float]:
    """The learner's rows of as many rounds as a rollout has, and tables played for each learned decision."""
    trainer, views, keys, rows = side.trainer, [], [], 0
    rounds = 15
    for _ in range(rounds):
        step = trainer.arena.recv()
        player = None if trainer.seating.only_learner else trainer.seating.player[step.keys.table, step.keys.seat]
        acted = trainer.actor.act(step, player)
        views.append(step.view[acted.rows].copy())
        keys.append(step.keys.take(acted.rows))
        rows += len(acted.rows)
        trainer.arena.send(acted.action)
    return views, keys, rounds * trainer.arena.tables / rows


def _fill(side: MapleSide) -> Any:
    """A full rollout to learn from."""
    trainer = side.trainer
    kept: list[Any] = []
    update = trainer.learner.update

    def keep(batch: Any, number: int, progress: float) -> dict[str, float]:
        kept.append(batch)
        return update(batch, number, progress)

    trainer.learner.update = keep  # type: ignore[method-assign]
    trainer.run(lambda _: False)
    trainer.learner.update = update  # type: ignore[method-assign]
    return kept[0]
