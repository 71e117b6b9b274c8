"""Actors seen from the trainer: blocks are asked for ahead, and learned from in the order of their numbers.

Block k is played with the weights of update k - lag, by every actor, whatever the clock says: so what is learned
depends on counts alone, and actors play the next block while the trainer learns from this one.

An actor that dies, hangs or grows too large loses the games of its tables; a process that stands by goes on with the
block that it was in, and with the next games.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.board import Board
from maple.arena.child import FATAL
from maple.arena.memory import SharedBlock
from maple.arena.processes import Keeper, Watch, WorkerProcess
from maple.arena.readers import open_readers
from maple.arena.seeds import env_seed
from maple.core.config import Config
from maple.core.errors import ConfigError, GameError
from maple.core.spec import GameSpec
from maple.games.external.game import ExternalGame
from maple.perf import spans
from maple.training.fleet.actor_main import COMMAND
from maple.training.fleet.blocks import AT, DONE, GIVEN, ROUNDS, STOP, Blocks, Played, Sizes
from maple.training.learners import Net
from maple.training.seating import OpponentMix, Shares

__all__ = ["Fleet"]

LOOK_S = 0.05


class Fleet:
    """Actors that play the tables of an external game for a trainer."""

    def __init__(
        self,
        config: Config,
        game: ExternalGame,
        tables: int,
        net: Net,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.spec: GameSpec = game.spec
        self._plan = game.plan
        self.tables, self.lag = tables, 0.0
        self._actors, self._ahead = min(config.actors.count, tables), config.actors.lag
        self._config, self._log = config, log
        _refuse_unfit(config, game)
        self._cuts = [tables * actor // self._actors for actor in range(self._actors + 1)]
        most = max(hi - lo for lo, hi in pairwise(self._cuts))
        sizes = self._sizes(net, most)
        self._shared = SharedBlock(Blocks.size(game.spec, sizes))
        self._blocks = Blocks(self._shared.buffer, game.spec, sizes)
        self._task = {
            "config": config.model_dump(mode="json"),
            "sizes": asdict(sizes),
            "tables": tables,
            "count": most,
            "view": game.spec.view,
        }
        self._game = np.zeros(tables, np.int64)  # under way after the blocks that were learned from
        self._reached = np.zeros(tables, np.int64)  # under way after the blocks that were written
        self._lost = False  # whether games were given up before the first block
        self._process: list[WorkerProcess | None] = [None] * self._actors
        self._deaths = [0] * self._actors
        self._done = [0] * self._actors  # blocks that each has written
        self._finished = [0] * self._actors  # games of the block that each is at, when last looked
        self._first = self._given = -1  # the first block, and the next to ask for
        self._versions: dict[int, int] = {}  # of the blocks that were asked for
        self.shares: Shares | None = None  # by which the games began of the block that was collected last
        self._readers = open_readers()
        self._at_descriptor: dict[int, int] = {}
        self.lost_actors = 0
        limits = config.workers
        self._watch, self._max_deaths = Watch(limits.step_limit_s, limits.memory_mb), limits.max_deaths
        self._keeper = Keeper(self._start, self._actors, limits.spares, self._look_after)

    def _sizes(self, net: Net, tables: int) -> Sizes:
        config, seats = self._config, self.spec.seats
        mix, kinds = OpponentMix.parse(config.opponents, self.spec.opponents), 1 + bool(config.league.exploiter_every)
        pool = kinds * config.snapshots.keep if mix.uses_past else 0
        horizon = max(self._horizon(actor) for actor in range(self._actors))
        return Sizes(
            actors=self._actors,
            tables=tables,
            kept=self._ahead + 1,
            weights=sum(weight.numel() for weight in net.state_dict().values()),
            rows=horizon + tables * seats,
            ended=horizon + 4 * tables,
            value=1,
            state=getattr(net, "state_width", 0),
            players=1 + len(mix.bots) + pool,
            frozen=pool + kinds * (self._ahead + 1) if mix.uses_past else 0,  # an update adds one of each kind at most
        )

    def _horizon(self, actor: int) -> int:
        """Decisions of a block: the actor's share by its tables."""
        cuts, horizon = self._cuts, self._config.horizon
        return horizon * cuts[actor + 1] // self.tables - horizon * cuts[actor] // self.tables

    def collect(
        self,
        net: Net,
        number: int,
        shares: Shares,
        snapshots: Mapping[int, Net],
        waiting: Callable[[], None] = lambda: None,
    ) -> Iterator[Played]:
        """What actors played for the `number`-th update, in the order in which one process would have played it.

        They are given the weights of now and who is drawn for a seat, and asked for as many blocks as they may be
        ahead. `waiting` is called while they play, and may raise.
        """
        self._blocks.publish(net, number, shares, snapshots)
        if self._first < 0:
            self._begin(number)
        for block in range(self._given, number + self._ahead + 1):
            self._versions[block] = max(self._first, block - self._ahead)
            for actor in range(self._actors):
                self._ask(actor, block)
        self._given = number + self._ahead + 1
        with spans.span(spans.IDLE):
            while min(self._done) <= number:
                waiting()
                self._look()
        self.lag = float(np.mean([number - self._blocks.played_with(actor, number) for actor in range(self._actors)]))
        self.shares = self._blocks.shares(self._versions.pop(number))
        for together in zip_longest(*(self._blocks.rounds(actor, number) for actor in range(self._actors))):
            for played in together:
                if played is not None:
                    self._game[played.ended.table] = played.ended.game + 1
                    spans.count("bytes", played.bytes)
                    yield played
        spans.count("messages", 2 * self._actors)

    def settle(self) -> float:
        """Wait until actors have played all that they were asked for; returns the seconds that it took."""
        began = time.perf_counter()
        with spans.span(spans.IDLE):
            while min(self._done) < self._given:
                self._look()
        return time.perf_counter() - began

    def state(self) -> dict[str, NDArray[Any]]:
        """The games' numbers: an env itself cannot be saved."""
        return {"game": self._game.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Give up the games that were in flight and go on with the next ones."""
        self._game[:] = self._reached[:] = state["game"]
        self._lost = True

    @property
    def starts(self) -> int:
        """Processes started so far."""
        return self._keeper.starts

    @property
    def pids(self) -> list[int]:
        """The processes that play now."""
        return [process.pid for process in self._process if process is not None]

    def close(self) -> None:
        """Let all processes close their envs and end.

        The keeper goes last: they die with the thread that started them.
        """
        self._blocks.control[:, STOP] = 1
        with spans.span("env_close"):
            for number, process in enumerate(self._process):
                self._process[number] = None
                if process is not None:
                    self._readers.unregister(process.answers)
                    process.close()
            self._keeper.close()
        self._shared.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, number: int) -> WorkerProcess:
        return WorkerProcess("maple.training.fleet.actor_main", number, self._task, self._shared, self._log)

    def _begin(self, number: int) -> None:
        self._first = self._given = number
        self._done = [number] * self._actors
        with spans.span("env_reset"):
            for actor, process in enumerate(self._keeper.several(self._actors)):
                self._seat(actor, process, self._lost)

    def _seat(self, actor: int, process: WorkerProcess, lost: bool) -> None:
        """Give an actor's tables to a process."""
        self._blocks.control[actor] = 0
        self._process[actor] = process
        self._readers.register(process.answers)
        self._at_descriptor[process.answers] = actor
        lo, hi = self._cuts[actor : actor + 2]
        games = self._reached[lo:hi].tolist() if lost else None
        if lost:
            self._reached[lo:hi] += 1  # these begin now, and one of them may kill whoever begins it
        horizon = self._horizon(actor)
        process.take({"number": actor, "tables": [lo, hi], "horizon": horizon, "lost": games})
        process.name = f"actor {actor}"

    def _ask(self, actor: int, block: int) -> None:
        process = self._process[actor]
        if process is None:
            return  # whoever takes its place is asked for all that is missing
        self._blocks.control[actor, GIVEN] += 1
        with suppress(BrokenPipeError):  # the end of its answers tells the rest
            os.write(process.commands, COMMAND.pack(block, self._versions[block]))

    def _look(self) -> None:
        """Take the answers that have come, or come within a moment; fill places that are free."""
        for descriptor in self._readers.ready(LOOK_S):
            self._hear(self._at_descriptor[descriptor])
        self._keeper.check()
        free = [actor for actor, process in enumerate(self._process) if process is None]
        for actor in free:
            spare = self._keeper.spare(wanted=len(free))
            if spare is None:
                return
            self._seat(actor, spare, lost=True)
            for block in range(self._done[actor], self._given):
                self._ask(actor, block)

    def _hear(self, actor: int) -> None:
        """Read one answer of an actor."""
        process = self._process[actor]
        assert process is not None
        code = os.read(process.answers, 1)
        if code == FATAL:
            raise GameError(process.last_words())
        if not code:
            self._bury(actor, process)
            return
        self._note_games(actor)
        self._done[actor] += 1
        self._finished[actor] = 0

    def _note_games(self, actor: int) -> None:
        """Take over which games an actor has reached in the block that it is at."""
        tables, games, finished = self._blocks.games(actor, self._done[actor])
        np.maximum.at(self._reached, tables, games + 1)  # games given up since then have higher numbers
        if finished > self._finished[actor]:
            self._deaths[actor], self._finished[actor] = 0, finished

    def _bury(self, actor: int, process: WorkerProcess) -> None:
        """An actor is dead: its games are lost, its place is free."""
        how = process.how_it_ended()
        self._note_games(actor)
        repeats = self._what_repeats(actor)
        lo, hi = self._cuts[actor : actor + 2]
        self._log(f"{process.name} (pid {process.pid}) {how} {repeats}; its {hi - lo} games are lost")
        self._readers.unregister(process.answers)
        process.close()
        self._process[actor] = None
        self.lost_actors += 1
        self._deaths[actor] += 1
        if self._deaths[actor] >= self._max_deaths:
            raise GameError(
                f"actor {actor} of {self.spec.name} died {self._deaths[actor]} times without finishing a game; the "
                f"last time it {how} {repeats}"
            )

    def _what_repeats(self, actor: int) -> str:
        """The seed of the game that an actor was at, and the last actions there."""
        at, (lo, hi) = int(self._blocks.control[actor, AT]), self._cuts[actor : actor + 2]
        board = Board(self._blocks.board_of(actor).data, self.spec, hi - lo, 1)
        game = int(board.game[at])
        seed, actions = env_seed(self._config.seed, lo + at, game), board.last_actions(at, 0, self._plan)
        return f"at table {lo + at}, game {game}: reset(seed={seed}), last actions {actions}"

    def _look_after(self) -> None:
        """Look after all actors; the keeper's thread calls this a few times a second."""
        for actor, process in enumerate(self._process):
            if process is not None:
                control = self._blocks.control[actor]
                busy = bool(control[DONE] < control[GIVEN])
                self._watch.look(actor, process, busy, (int(control[AT]), int(control[ROUNDS])))


def _refuse_unfit(config: Config, game: ExternalGame) -> None:
    """Say what actors cannot do."""
    mix = OpponentMix.parse(config.opponents, game.spec.opponents)
    if config.algo != "ppo":
        raise ConfigError(f"actors send back whole rollouts, which --algo {config.algo} does not learn from; use ppo")
    if mix.runs:
        raise ConfigError(
            f"actors know the run's own weights and scripted opponents alone, so --opponents {config.opponents} cannot "
            "be played by them; leave run: out or set actors.count=0"
        )
