"""Any arena as seen by a learner that knows one seat: every table always waits for its decision, bots play the others.

A table at which the learner is asked is held until it is asked at all of them. The learner's seat moves on with every
game and once more after each round, as in `gym_env`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import HOLD, Arena
from maple.core.errors import GameError, nearest
from maple.core.step import Ended, Keys, Outcome, Step
from maple.games.contract import Bot, Game

__all__ = ["Finished", "Lockstep", "find_bots"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A game that the learner took part in, at its end."""

    table: int
    earned: float  # by the learner, in the whole game
    decisions: int  # of the learner
    lost: bool
    truncated: bool
    last_seen: NDArray[Any] | None  # what the learner saw when the game was cut off


class Lockstep:
    """Tables of an arena that hands out observations. `observation` and `mask` are of the waiting decisions."""

    def __init__(self, arena: Arena, game: Game, bots: Sequence[Bot], seed: int) -> None:
        tables, spec = arena.tables, game.spec
        self.arena, self._game, self._seed, self._seats = arena, game, seed, spec.seats
        self._bots, self._filler = bots, game.bot("random")
        self.observation: NDArray[Any] = np.zeros((tables, spec.observation), spec.dtype)
        self.mask = np.zeros((tables, spec.actions), np.bool_)
        self.reward = np.zeros(tables, np.float32)  # of the last step
        self._action = np.zeros(tables, np.int32)
        self._ready = np.zeros(tables, np.bool_)  # whose decision waits for the learner
        self._due = np.zeros(tables, np.bool_)  # where the learner's action is still to be played
        self._earned, self._decisions = np.zeros(tables), np.zeros(tables, np.int64)  # in the game under way
        self._finished: list[Finished] = []
        self._step: Step
        self._go_on()

    @property
    def is_fresh(self) -> bool:
        """Whether the learner has not decided anything in the games under way."""
        return not self._decisions.any()

    def step(self, action: NDArray[Any]) -> list[Finished]:
        """Play the learner's actions up to its next decisions; returns the games that ended. Writes `reward`."""
        self._action[:] = action
        self._due[:], self._ready[:] = True, False
        self.reward[:] = 0.0
        self._finished = []
        self._send(self._step)
        self._go_on()
        return self._finished

    def abandon(self) -> None:
        """Go on to the next games: what is left of those that the learner took part in is played at random."""
        leaving = self._decisions > 0
        while leaving.any():
            step = self._step
            tables = step.keys.table
            action = np.full(len(tables), HOLD, np.int32)
            self._choose(self._filler, np.flatnonzero(leaving[tables]), step, action)
            self.arena.send(action)
            self._step = self.arena.recv()
            leaving[self._step.ended.table] = False
            gone = np.flatnonzero(~leaving)
            self._decisions[gone], self._earned[gone] = 0, 0.0
        self._ready[:] = False
        self._take(self._step)
        if not self._ready.all():
            self._send(self._step)
            self._go_on()

    def _go_on(self) -> None:
        """Play until every table waits for the learner."""
        while True:
            self._step = step = self.arena.recv()
            if len(step.ended.table):
                self._end(step.ended)
            self._take(step)
            if self._ready.all():
                return
            self._send(step)

    def _seat_at(self, table: NDArray[Any], game: NDArray[np.int64]) -> NDArray[np.int64]:
        """The learner's."""
        return (table + game + game // self._seats) % self._seats

    def _mine(self, keys: Keys) -> NDArray[np.bool_]:
        return np.equal(self._seat_at(keys.table, keys.game), keys.seat)

    def _take(self, step: Step) -> None:
        """Note the decisions that the learner has not seen yet. Writes observation, mask, reward."""
        tables = step.keys.table
        rows = np.flatnonzero(self._mine(step.keys) & ~(self._ready | self._due)[tables])
        fresh = tables[rows]
        self.observation[fresh], self.mask[fresh] = step.observation[rows], step.mask[rows]
        self._pay(fresh, np.where(step.keys.decision[rows] > 0, step.reward[rows, 0], 0.0))
        self._ready[fresh] = True

    def _pay(self, tables: NDArray[Any], reward: NDArray[Any]) -> None:
        self.reward[tables] += reward
        self._earned[tables] += reward

    def _send(self, step: Step) -> None:
        """Answer for the learner where its action is due, and for the bots; tables that are ready are held."""
        keys = step.keys
        action, playing = np.full(len(keys), HOLD, np.int32), ~self._ready[keys.table]
        rows = np.flatnonzero(playing & self._mine(keys))
        mine = keys.table[rows]
        action[rows] = self._action[mine]
        self._due[mine] = False
        self._decisions[mine] += 1
        who = (keys.seat - self._seat_at(keys.table, keys.game)) % self._seats
        for number, bot in enumerate(self._bots, 1):
            self._choose(bot, np.flatnonzero(playing & (who == number)), step, action)
        self.arena.send(action)

    def _choose(self, bot: Bot, rows: NDArray[np.intp], step: Step, action: NDArray[np.int32]) -> None:
        """A bot's choices for some rows. Writes action."""
        if len(rows):
            chosen = np.empty(len(rows), np.int32)
            bot(step.view[rows], self._seed, step.keys.take(rows), chosen, 0, len(rows))
            action[rows] = chosen

    def _end(self, ended: Ended) -> None:
        """Note the games that ended; one in which the learner decided nothing is none of its business."""
        seats = self._seat_at(ended.table, ended.game)
        cut = {int(row): view for row, view in zip(ended.cut, ended.last_view, strict=True)}
        for row, (table, seat) in enumerate(zip(ended.table.tolist(), seats.tolist(), strict=True)):
            took_part = self._decisions[table] > 0 or self._due[table]
            if took_part:
                self._pay(ended.table[row : row + 1], ended.reward[row, seat, :1])
                self._finished.append(
                    Finished(
                        table=table,
                        earned=float(self._earned[table]),
                        decisions=int(self._decisions[table]),
                        lost=bool(ended.outcome[row] == Outcome.LOST),
                        truncated=row in cut,
                        last_seen=self._encode(cut[row][seat]) if row in cut else None,
                    )
                )
            self._earned[table], self._decisions[table] = 0.0, 0
            self._ready[table] = self._due[table] = False

    def _encode(self, view: NDArray[np.uint64]) -> NDArray[Any] | None:
        spec = self._game.spec
        observation: NDArray[Any] = np.zeros((1, spec.observation), spec.dtype)
        if not view.any():
            return None
        self._game.observe(view.reshape(1, -1).copy(), observation, np.zeros((1, spec.actions), np.bool_), 0, 1)
        return observation.reshape(-1)


def find_bots(game: Game, opponents: str | Sequence[str]) -> list[Bot]:
    """Who plays the seats after the learner's, in their order."""
    others = game.spec.seats - 1
    names = [opponents] * others if isinstance(opponents, str) else list(opponents)
    if len(names) != others:
        raise GameError(f"{len(names)} opponents were given; {game.spec.name} has {others} seats beside the learner's")
    for name in names:
        if name not in game.spec.opponents:
            raise GameError(f"{game.spec.name} has no opponent {name!r}; {nearest(str(name), game.spec.opponents)}")
    return [game.bot(name) for name in names]
