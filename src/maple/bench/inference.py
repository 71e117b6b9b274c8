"""Inference by itself: decisions chosen a second, the peer's network beside it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from maple.arena.node import NodeArena
from maple.bench.measure import machine
from maple.bench.train import MapleSide
from maple.core.config import Config
from maple.core.step import Keys
from maple.nets.policy import IndexPolicy

__all__ = ["InferenceSide", "bench_inference", "record"]

ROUNDS = 15  # of play: all streets of OFC's three seats
WARM_UP_S = 0.3


class InferenceSide:
    """A run's policy on decisions of its own games, measured in slices."""

    def __init__(self, config: Config) -> None:
        self.side = MapleSide(config)
        self.policy = self.side.trainer.learner.policy
        self.views, self.keys, _ = record(self.side)
        self.slice(WARM_UP_S)

    def close(self) -> None:
        """End the arena and the threads."""
        self.side.trainer.arena.close()
        self.side.team.close()

    def slice(self, seconds: float) -> float:
        """Choose for `seconds`; returns decisions a second."""
        began, rows = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            for view, key in zip(self.views, self.keys, strict=True):
                self.policy.choose(view, key, 0, greedy=False)
                rows += len(view)
        return rows / (time.perf_counter() - began)

    def multiplications(self) -> int:
        """Of the dense layers, for one decision of a policy over indices (the first layer only adds rows)."""
        layers = [m for m in self.policy.modules() if isinstance(m, torch.nn.Linear)]
        return sum(layer.in_features * layer.out_features for layer in layers)

    @property
    def over_indices(self) -> bool:
        """Whether every decision costs the same."""
        return isinstance(self.policy, IndexPolicy)


def record(side: MapleSide) -> tuple[list[Any], list[Keys], float]:
    """The learner's rows of some rounds of play, and how many decisions were played for each.

    The tables are put back after; games in another program cannot be, and go on.
    """
    trainer, views, keys, played = side.trainer, [], [], 0
    saved = trainer.arena.state()
    for _ in range(ROUNDS):
        step = trainer.here.recv()
        player = None if trainer.league.mix.only_learner else trainer.seating.player[step.keys.table, step.keys.seat]
        acted = trainer.actor.act(step, player)
        views.append(step.view[acted.rows].copy())
        keys.append(step.keys.take(acted.rows))
        played += len(step.keys)
        trainer.here.send(acted.action)
    if not isinstance(trainer.arena, NodeArena):
        trainer.arena.restore(saved)
    return views, keys, played / sum(map(len, views))


def bench_inference(config: Config, seconds: float) -> dict[str, Any]:
    """Decisions a second and the size of a batch."""
    side = InferenceSide(config)
    try:
        speed = side.slice(seconds)
    finally:
        side.close()
    return {
        "game": config.name,
        "algo": config.algo,
        "decisions_per_s": speed,
        "batch": float(np.mean([len(view) for view in side.views])),
        "threads": side.side.team.threads,
        "seed": config.seed,
        "machine": machine(),
    }
