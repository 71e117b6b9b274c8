"""The training loop: recv, act, store, send; update when enough was played.

Which weights act on which decision depends on counts alone, never on timing: what the clock decides (when to save, when
a `--minutes` budget is spent) changes no decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.arena.node import NodeArena
from maple.arena.workers import WorkerArena
from maple.core.errors import ConfigError
from maple.core.step import Ended, Outcome, Step
from maple.games.contract import Bot
from maple.perf.spans import span
from maple.training.actor import Acted, Actor
from maple.training.fleet.fleet import Fleet
from maple.training.league import League
from maple.training.learners import Learner, Net, frozen_copy
from maple.training.rivals import Rival
from maple.training.seating import LEARNER, SNAPSHOT, Seating, Shares, learner_seat

__all__ = ["Budget", "Counters", "Exploiter", "HurriedError", "Round", "Trainer", "Update"]


Finished = tuple[NDArray[Any], NDArray[np.int64]]  # the figures of games, and a seat of each that the learner had


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
    updates: int = 0  # rounds of learning
    minibatches: int = 0
    games: int = 0  # without the lost ones
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


@dataclass(frozen=True, slots=True)
class Round:
    """Some play, and the learning that followed."""

    figures: dict[str, float]
    games: NDArray[Any]
    seats: NDArray[np.int64]
    act_s: float
    learn_s: float


@dataclass(frozen=True, slots=True)
class Exploiter:
    """Who learned to beat the learner as it was, and how often it did."""

    policy: Net
    games: float
    wins: float


class HurriedError(Exception):
    """Nothing more is waited for: a stop was asked for, and what is under way takes too long."""


@dataclass(slots=True)
class Trainer:
    """One run's moving parts."""

    arena: Arena | Fleet  # of actors, who play and decide by themselves
    actor: Actor
    learner: Learner
    seating: Seating
    league: League
    budget: Budget
    horizon: int  # decisions between two reports; learners that learn more often do so in rounds
    # Trains one against a learner as it is, the run's so-many-th; nothing comes of it where it is told to stop.
    exploit: Callable[[Learner, int, Callable[[], bool]], Exploiter | None]
    guide: Bot | None = None  # whom the learner studies first, for so many steps
    study_steps: int = 0
    study_share: float = 0.0  # of the tables where the guide plays on after that
    rivals: Sequence[Rival] = ()  # agents of other runs, by their numbers as players
    clock: Callable[[], float] = time.monotonic
    counters: Counters = field(default_factory=Counters)
    stopping: Callable[[], bool] = lambda: False  # asked now and then by what takes long between two updates
    hurry: Callable[[], bool] = lambda: False  # whether a stop cannot wait for the end of the play under way
    _exploited: dict[str, float] = field(default_factory=dict)  # what is to be told of the last exploiter

    @property
    def here(self) -> Arena:
        """The arena where the trainer itself decides."""
        if isinstance(self.arena, Fleet):
            raise ConfigError("this is measured where the trainer decides; set actors.count=0")
        return self.arena

    @property
    def processes(self) -> tuple[int, int]:
        """How many processes that play have died since this one began, and how many were started."""
        match self.arena:
            case WorkerArena() as arena:
                return arena.lost_workers, arena.starts
            case Fleet() as fleet:
                return fleet.lost_actors, fleet.starts
            case NodeArena() as arena:
                return arena.counters.crashes + arena.counters.hangs, arena.counters.starts
        return 0, 0

    @property
    def pool(self) -> dict[str, float]:
        """What happened to the other program's processes and what a decision cost them, where there are any."""
        return self.arena.report() if isinstance(self.arena, NodeArena) else {}

    def run(self, after_update: Callable[[Update], bool]) -> bool:
        """Train until the budget is spent or `after_update` answers False; False where it was left in a hurry.

        What was played since the update before is then half a rollout, of which nothing can be saved.
        """
        try:
            self._run(after_update)
        except HurriedError:
            return False
        return True

    def _run(self, after_update: Callable[[Update], bool]) -> None:
        last = self.clock()
        go_on = self.progress() < 1.0
        while go_on:
            rounds: list[Round] = []
            until = self.counters.steps + self.horizon
            while not rounds or (self.counters.steps < until and self.progress() < 1.0 and not self.hurry()):
                if self.league.exploiter_is_due and not self._add_exploiter():
                    go_on = False  # it is trained once the run goes on
                    break
                rounds.append(self.round())
                last, before = self.clock(), last
                self.counters.elapsed_s += last - before
            with span("log"):
                news = self._told(rounds) if rounds else None
            told = news is None or after_update(news)
            go_on = go_on and told and self.progress() < 1.0

    def round(self) -> Round:
        """Play until learning is due, and learn."""
        started = self.clock()
        with span("env_parallel_execution"):
            self.learner.begin(self.counters.updates, self.progress())
            self.actor.guided = 1.0 if self.counters.steps < self.study_steps else self.study_share
            self.actor.guide = self.guide if self.actor.guided else None
            games, seats = self.collect()
        played = self.clock()
        with span("update"):
            figures = self.learner.update(self.counters.updates, self.progress())
            self.learner.memory.carry()
            studied = {"studied": self.actor.guided} if self.actor.guide is not None else {}
            figures |= self._remember() | self._lag() | studied
        self.counters.updates += 1
        self.counters.minibatches += int(figures["minibatches"])
        return Round(figures, games, seats, played - started, self.clock() - played)

    def _told(self, rounds: list[Round]) -> Update:
        """What some rounds have to tell together: means of the learner's figures, all games."""
        names = {name: None for done in rounds for name in done.figures}
        return Update(
            counters=self.counters,
            progress=self.progress(),
            figures={n: float(np.mean([r.figures[n] for r in rounds if n in r.figures])) for n in names},
            games=np.concatenate([done.games for done in rounds]),
            seats=np.concatenate([done.seats for done in rounds]),
            act_s=sum(done.act_s for done in rounds),
            learn_s=sum(done.learn_s for done in rounds),
        )

    def collect(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Play until learning is due; returns the games that ended and a seat of each that the learner had."""
        self._seat_first_games()
        arena = self.arena
        games = self._fetch(arena) if isinstance(arena, Fleet) else self._play(arena)
        ended, seats = (np.concatenate(column) for column in zip(*games, strict=True))
        return ended, seats

    def _fetch(self, fleet: Fleet) -> list[Finished]:
        """Take over what actors have played; returns the games that ended in each round."""
        games: list[Finished] = []
        known = (self.league.shares, self.actor.snapshots)
        blocks = fleet.collect(self.learner.policy, self.counters.updates, *known, self.check_time)
        while True:
            with span("env_observe"):  # waiting for actors is what waiting for envs is without them
                played = next(blocks, None)
            if played is None:
                break
            with span("rollout_store"):
                games.append(self._finish(played.ended, played.judged, fleet.shares))
                about = (played.table, played.seat, played.reward, played.view)
                self.learner.memory.add(*about, played.choice)
                self.counters.steps += len(played.table)
        return games

    def _play(self, arena: Arena) -> list[Finished]:
        """Play until the memory is full; returns the games that ended in each round."""
        games: list[Finished] = []
        while not self.learner.memory.full:
            self.check_time()
            with span("env_observe"):
                step = arena.recv()
            with span("rollout_store"):
                games.append(self._finish(step.ended, self.actor.beyond))
                player = None if self.league.mix.only_learner else self.seating.player[step.keys.table, step.keys.seat]
            with span("agent_action_selection"):
                acted = self.actor.act(step, player)
            with span("rollout_store"):
                self._store(step, acted)
            with span("env_step"):
                arena.send(acted.action)
            self.counters.steps += len(acted.rows)
        return games

    def check_time(self) -> None:
        """Leave what is under way if a stop cannot wait for it any longer."""
        if self.hurry():
            raise HurriedError

    def _store(self, step: Step, acted: Acted) -> None:
        """Keep the learner's rows."""
        rows = acted.rows
        self.learner.memory.add(
            step.keys.table[rows],
            step.keys.seat[rows],
            step.reward[rows],
            step.view[rows],
            acted.choice,
        )

    def progress(self) -> float:
        """How much of the budget is spent, from 0 to 1; a run ends only after an update."""
        return self.budget.progress(self.counters.steps, self.counters.elapsed_s)

    def _seat_first_games(self) -> None:
        if self.counters.steps == 0:
            tables = np.arange(self.arena.tables, dtype=np.int32)
            games = np.zeros(self.arena.tables, np.int64)
            self.seating.seat(tables, games, self.league.shares, self.actor.guides(tables))

    def _finish(
        self, ended: Ended, beyond: Callable[[Ended], NDArray[np.float32]], shares: Shares | None = None
    ) -> Finished:
        """Close what ended games left open and seat the next ones; returns their figures and a learner's seat.

        `shares` say by what the next ones' players were drawn, if not by the league's of now.
        """
        self.learner.memory.finish(ended, beyond)
        whole, player = ended.outcome != Outcome.LOST, self.seating.player[ended.table]
        told = whole & ~self.seating.guided[ended.table]  # a guide's results are its own
        self.league.note(player[told], ended.figures["score"][told][:, : player.shape[1]])
        seats = np.argmax(player == LEARNER, axis=1)
        if self.league.mix.only_learner:
            seats = learner_seat(ended.table, ended.game, self.arena.spec.seats)
        drawn = shares or self.league.shares
        self.seating.seat(ended.table, ended.game + 1, drawn, self.actor.guides(ended.table))
        self.counters.games += int(whole.sum())
        self.counters.lost += len(whole) - int(whole.sum())
        return ended.figures, seats

    def _remember(self) -> dict[str, float]:
        """Count results, and take a snapshot if one is due."""
        cause = self.league.settle(self.counters.steps)
        rate = self.league.pool_win_rate()
        figures, self._exploited = self._exploited, {}
        if rate is not None:
            figures["pool_win_rate"] = rate
        if cause is not None:
            self.take_snapshot(cause)
        return figures

    def _lag(self) -> dict[str, float]:
        """How many updates the weights that played were behind those that learned."""
        return {"policy_lag": self.arena.lag} if isinstance(self.arena, Fleet) else {}

    def take_snapshot(self, cause: str) -> None:
        """Freeze the learner, after an update."""
        self._admit(self.league.freeze(self.counters.steps, cause), frozen_copy(self.learner.policy))

    def _add_exploiter(self) -> bool:
        """Train an exploiter of the learner and add it to the pool; False where it was told to stop.

        It is trained from its beginning to its end between two rounds, so a checkpoint holds none that is half done,
        and one that was cut off is trained again the same way.
        """
        with span("exploiter"):
            found = self.exploit(self.learner, len(self.league.taken), self.stopping)
        if found is None:
            return False
        self._admit(self.league.admit(self.counters.steps, found.games, found.wins), found.policy)
        self._exploited = {"exploiter_win_rate": found.wins / max(found.games, 1.0)}
        return True

    def _admit(self, number: int, policy: Net) -> None:
        """Let a frozen policy play; those that are neither drawn from nor in a game are dropped."""
        self.actor.snapshots[number] = policy
        self.counters.snapshots = number + 1
        needed = {*self.league.pool, *(int(code) - SNAPSHOT for code in np.unique(self.seating.player))}
        for old in set(self.actor.snapshots) - needed:
            del self.actor.snapshots[old]
