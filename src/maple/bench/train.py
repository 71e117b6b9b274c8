"""Training end to end, alone or in one run with a peer."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import torch

from maple.arena.base import HOLD
from maple.arena.native import NativeArena
from maple.bench.measure import interleave, machine, ratio_interval
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.training.build import build_trainer
from maple.training.fleet.fleet import Fleet
from maple.training.loop import Trainer, Update

__all__ = ["MapleSide", "Side", "bench_train", "later_on"]

PAIRS = 5
UNBOUNDED = 10**15
MOST_SPREAD = 64  # decisions that tables are ahead of others at most, when they are first measured


class Side(Protocol):
    """Something that learns and can be measured in slices."""

    name: str
    updates_per_s: list[float]  # of each slice

    def slice(self, seconds: float) -> float:
        """Learn for whole updates until `seconds` have passed; returns learned decisions a second."""


class MapleSide:
    """A Maple run that is measured in slices of whole updates.

    It goes on for ever and as it would later on, unless `bounded` by its config: what it would study first is left out.
    """

    def __init__(self, config: Config, *, bounded: bool = False) -> None:
        threads = config.threads or available_cores()
        torch.set_num_threads(1)
        self.team = Team(threads)
        if not bounded:
            config = later_on(config)
        game = make_game(config.name, config.game)
        self.trainer: Trainer = build_trainer(config, game, self.team)
        if not bounded and isinstance(self.trainer.arena, NativeArena):
            _spread(self.trainer.arena, game, self.team)
        self.cpu_s = self.wall_s = 0.0
        self.steps = 0
        self.updates_per_s: list[float] = []

    def __enter__(self) -> MapleSide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.trainer.arena.close()
        self.trainer.learner.close()
        self.team.close()

    def _worked_s(self) -> float:
        """Processor time of this process so far, less what its threads spent watching for each other."""
        return time.process_time() - self.team.watched_s

    def slice(self, seconds: float, after_update: Callable[[Update], None] | None = None) -> float:
        """Train for whole updates until `seconds` have passed; returns learned decisions a second."""
        began, cpu, steps = time.perf_counter(), self._worked_s(), self.trainer.counters.steps
        minibatches = self.trainer.counters.minibatches

        def go_on(update: Update) -> bool:
            if after_update is not None:
                after_update(update)
            return time.perf_counter() - began < seconds

        self.trainer.run(go_on)
        if isinstance(self.trainer.arena, Fleet):
            self.trainer.arena.settle()  # what was asked for ahead is played in this slice's time, not in the next
        wall, done = time.perf_counter() - began, self.trainer.counters.steps - steps
        self.wall_s, self.cpu_s = self.wall_s + wall, self.cpu_s + self._worked_s() - cpu
        self.steps += done
        self.updates_per_s.append((self.trainer.counters.minibatches - minibatches) / wall)
        return done / wall


def later_on(config: Config) -> Config:
    """A run without end and without what happens once, at its start."""
    dqn = {"study": None, "warmup": min(config.dqn.warmup, config.dqn.horizon)}
    return config.model_copy(
        update={
            "steps": UNBOUNDED,
            "minutes": None,
            "ppo": config.ppo.model_copy(update={"study": None}),
            "dqn": config.dqn.model_copy(update=dqn),
        }
    )


def _spread(arena: NativeArena, game: Game, team: Team) -> None:
    """Let the tables be at different decisions of their games.

    Where all games are about as long, tables that began together stay together, and a slice is slow or fast by the
    decision that they have come to. Spread out, each slice has some of all.
    """
    bot, action = game.bot("random"), np.empty(arena.tables, np.int32)
    decisions = _length(game, team)
    for number in range(1, decisions + 1):
        step = arena.recv()
        team.run(bot, arena.tables, step.view, 0, step.keys, action)
        action[arena.tables * number // decisions :] = HOLD
        arena.send(action)
    arena.recv()
    arena.send(np.full(arena.tables, HOLD))  # what ended is nobody's


def _length(game: Game, team: Team) -> int:
    """Decisions of a game at random, or MOST_SPREAD."""
    bot, action = game.bot("random"), np.empty(1, np.int32)
    with NativeArena(game, 1, 0, team) as arena:
        for number in range(MOST_SPREAD):
            step = arena.recv()
            if len(step.ended.table):
                return number
            bot(step.view, 0, step.keys, action, 0, 1)
            arena.send(action)
    return MOST_SPREAD


def bench_train(
    config: Config, seconds: float, peer: Callable[[], AbstractContextManager[Side]] | None
) -> dict[str, Any]:
    """Steps a second of Maple, and beside a peer their ratio; `seconds` is per side."""
    slice_s = seconds / PAIRS
    with MapleSide(config) as maple:
        maple.slice(min(2.0, slice_s))
        maple.cpu_s, maple.wall_s, maple.steps = 0.0, 0.0, 0
        found: dict[str, Any] = {"game": config.name, "algo": config.algo, "machine": machine(), "seed": config.seed}
        if peer is None:
            speeds = [maple.slice(slice_s) for _ in range(PAIRS)]
            others: list[float] = []
        else:
            with peer() as side:
                speeds, others = interleave(lambda: maple.slice(slice_s), lambda: side.slice(slice_s), PAIRS)
                theirs = side.updates_per_s[-PAIRS:]
                found["peer"] = {"name": side.name, **_speeds(others, theirs), "slices": others}
            ratio, interval = ratio_interval(speeds, others)
            found |= {"ratio": ratio, "ratio_ci95": list(interval)}
            ratio, interval = ratio_interval(maple.updates_per_s[-PAIRS:], theirs)
            found |= {"updates_ratio": ratio, "updates_ratio_ci95": list(interval)}
        cores = config.threads or available_cores()
        found["maple"] = {
            **_speeds(speeds, maple.updates_per_s[-PAIRS:]),
            "slices": speeds,
            "cpu_use": maple.cpu_s / (maple.wall_s * cores),
        }
    return found


def _speeds(steps: list[float], updates: list[float]) -> dict[str, float]:
    """Learned decisions and updates, a minibatch each, a second; and how many updates for each decision."""
    return {
        "steps_per_s": sum(steps) / len(steps),
        "updates_per_s": sum(updates) / len(updates),
        "update_ratio": sum(updates) / sum(steps),
    }
