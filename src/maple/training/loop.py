"""The training loop: recv, act, store, send; update when the rollout is full.

Which weights act on which decision depends on counts alone, never on timing: what the clock decides (when to save, when
a `--minutes` budget is spent) changes no decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.core.step import Ended, Keys, Outcome, Step
from maple.learn.rollout import Rollout
from maple.perf.spans import span
from maple.training.actor import Acted, Actor
from maple.training.learners import AfterstateLearner, PpoLearner, frozen_copy
from maple.training.seating import LEARNER, SNAPSHOT, Seating, learner_seat

__all__ = ["Budget", "Counters", "Trainer", "Update"]


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a run goes on: a number of learned decisions, minutes of wall-clock, whichever comes first."""

    steps: int | None
    minutes: float | None

    def progress(self, steps: int, elapsed_s: float) -> float:
        """From 0 to 1."""
        by_steps = steps / self.steps if self.steps else 0.0
        by_time = elapsed_s / (60 * self.minutes) if self.minutes else 0.0
        return min(1.0, max(by_steps, by_time))


@dataclass(slots=True)
class Counters:
    """What has happened in the run so far, resumes included."""

    steps: int = 0  # the learner's decisions
    updates: int = 0
    games: int = 0
    lost: int = 0
    snapshots: int = 0
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Update:
    """What is told after each update."""

    counters: Counters
    progress: float
    figures: dict[str, float]  # of the learner
    games: NDArray[Any]  # the figures of the games that ended since the last update
    seats: NDArray[np.int64]  # a seat of each that the learner had
    act_s: float
    learn_s: float


@dataclass(slots=True)
class Trainer:
    """One run's moving parts."""

    arena: Arena
    actor: Actor
    learner: AfterstateLearner | PpoLearner
    rollout: Rollout
    seating: Seating
    budget: Budget
    seed: int
    snapshot_every: int
    snapshot_keep: int
    clock: Callable[[], float] = time.monotonic
    counters: Counters = field(default_factory=Counters)

    def run(self, after_update: Callable[[Update], bool]) -> None:
        """Train until the budget is spent or `after_update` answers False."""
        last = self.clock()
        go_on = self.progress() < 1.0
        while go_on:
            started = self.clock()
            with span("env_parallel_execution"):
                games, seats = self.collect()
            played = self.clock()
            with span("update"):
                figures = self.learner.update(self.rollout.batch(), self.counters.updates, self.progress())
                self.rollout.carry()
                self._remember()
            self.counters.updates += 1
            learned = self.clock()
            self.counters.elapsed_s += learned - last
            last, progress = learned, self.progress()
            update = Update(self.counters, progress, figures, games, seats, played - started, learned - played)
            go_on = after_update(update) and progress < 1.0

    def collect(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Play until the rollout is full; returns the games that ended and a seat of each that the learner had."""
        self._seat_first_games()
        games: list[tuple[NDArray[Any], NDArray[np.int64]]] = []
        while not self.rollout.full:
            with span("env_observe"):
                step = self.arena.recv()
            with span("rollout_store"):
                games.append(self._finish(step.ended))
                player = None if self.seating.only_learner else self.seating.player[step.keys.table, step.keys.seat]
            with span("agent_action_selection"):
                acted = self.actor.act(step, player)
            with span("rollout_store"):
                self._store(step, acted)
            with span("env_step"):
                self.arena.send(acted.action)
            self.counters.steps += len(acted.rows)
        ended, seats = (np.concatenate(column) for column in zip(*games, strict=True))
        return ended, seats

    def _store(self, step: Step, acted: Acted) -> None:
        """Keep the learner's rows."""
        rows, choice = acted.rows, acted.choice
        self.rollout.add(
            step.keys.table[rows],
            step.keys.seat[rows],
            step.reward[rows],
            step.view[rows],
            choice.action,
            choice.log_prob,
            choice.value,
            choice.explored,
        )

    def progress(self) -> float:
        """How much of the budget is spent, from 0 to 1; a run ends only after an update."""
        return self.budget.progress(self.counters.steps, self.counters.elapsed_s)

    def _seat_first_games(self) -> None:
        if self.counters.steps == 0:
            tables = np.arange(self.arena.tables, dtype=np.int32)
            self.seating.seat(tables, np.zeros(self.arena.tables, np.int64), [])

    def _finish(self, ended: Ended) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Close what ended games left open and seat the next ones; returns their figures and a learner's seat."""
        last_value = np.zeros((len(ended.table), self.arena.spec.seats, self.rollout.bootstrap.shape[1]), np.float32)
        if len(ended.cut):
            last_value[ended.cut] = self._beyond(ended)
        self.rollout.finish(ended.table, ended.outcome, ended.reward, last_value)
        seats = np.argmax(self.seating.player[ended.table] == LEARNER, axis=1)
        if self.seating.only_learner:
            seats = learner_seat(ended.table, ended.game, self.arena.spec.seats)
        self.seating.seat(ended.table, ended.game + 1, self._pool())
        self.counters.games += len(ended.table)
        self.counters.lost += int((ended.outcome == Outcome.LOST).sum())
        return ended.figures, seats

    def _beyond(self, ended: Ended) -> NDArray[np.float32]:
        """What each seat of a truncated game could still expect, by the policy's own judgement."""
        views = ended.last_view  # (K, seats, V)
        flat = views.reshape(-1, views.shape[2])
        value = np.zeros((len(flat), self.rollout.bootstrap.shape[1]), np.float32)
        rows = np.flatnonzero(flat.any(axis=1))
        if len(rows):
            game, seat = np.divmod(rows, views.shape[1])
            at = ended.cut[game]
            keys = Keys(ended.table[at], ended.game[at], seat.astype(np.int8), np.zeros(len(rows), np.int32))
            with span("agent_value_calculation"):
                value[rows] = self.learner.policy.choose(flat[rows], keys, self.seed, greedy=True).value
        return value.reshape(*views.shape[:2], -1)

    def _remember(self) -> None:
        """Take a snapshot when one is due, and drop those that are neither drawn from nor still in a game."""
        if self.seating.mix.uses_past and self.counters.steps >= (self.counters.snapshots + 1) * self.snapshot_every:
            self.actor.snapshots[self.counters.snapshots] = frozen_copy(self.learner.policy)
            self.counters.snapshots += 1
            needed = {*self._pool(), *(int(code) - SNAPSHOT for code in np.unique(self.seating.player))}
            for number in set(self.actor.snapshots) - needed:
                del self.actor.snapshots[number]

    def _pool(self) -> list[int]:
        """The snapshots that new games draw from: the newest."""
        return sorted(self.actor.snapshots)[-self.snapshot_keep :]
