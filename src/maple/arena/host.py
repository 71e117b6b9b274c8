"""Plays a range of tables, one env each, into their rows: in a worker process, or in the trainer's own.

An exception in an env loses the game at that table alone: the env is made anew and the next game begins. An env that
breaks its contract ends the run, with a sentence that names what repeats it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from maple.arena.board import BEAT, TABLES, Board
from maple.core.errors import GameError
from maple.core.step import Outcome
from maple.games.external.locate import make_env
from maple.games.external.plan import Plan, examine
from maple.games.external.spaces import ContractError
from maple.games.external.tables import Table, open_table

__all__ = ["Host", "env_seed"]

_LOST = int(Outcome.LOST)


def env_seed(seed: int, deal: int, game: int) -> int:
    """What an env is reset with: a function of the run's seed, the table's deal and the game's number alone."""
    return int(np.random.SeedSequence((seed, deal, game)).generate_state(1)[0])


class Host:
    """Envs for some tables. They are made at once and begin when told to `take` tables of a board."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        count: int,
        seed: int,
        max_deaths: int,
        tell: Callable[[str], None],
    ) -> None:
        self._name, self._arguments, self._seed = name, dict(arguments), seed
        self._max_deaths, self._tell = max_deaths, tell
        self._envs = [self._make() for _ in range(count)]
        self.plan: Plan = examine(self._envs[0], name)

    def take(self, board: Board, tables: list[int], first_table: int, tables_per_deal: int, worker: int) -> None:
        """Play these tables from now on; every one begins the game that the board says."""
        self._board, self._first, self._per_deal = board, first_table, tables_per_deal
        self._beat = board.control[worker, BEAT : BEAT + 1]
        self._steps = 0
        self._deaths = dict.fromkeys(tables, 0)
        self._tables: dict[int, Table] = {}
        for table, env in zip(tables, self._envs, strict=False):
            self._tables[table] = open_table(env, self.plan, board.place(table))
        self._observation = None if self.plan.layout.is_bytes else self.plan.layout.observation_of(board.view)

    def begin(self, lo: int, hi: int) -> None:
        """Begin the first game at tables [lo, hi)."""
        self._board.how[lo:hi] = Outcome.PLAYING
        for table in range(lo, hi):
            self._begin(table)

    def play(self, lo: int, hi: int) -> None:
        """Play the actions on the board at tables [lo, hi); what ends is recorded and the next game begins."""
        board, tables, beat, steps = self._board, self._tables, self._beat, self._steps
        board.how[lo:hi] = 0
        for table, action in enumerate(board.action[lo:hi].tolist(), lo):
            steps += TABLES
            beat[0] = steps + table
            try:
                how = tables[table].play(action)
            except ContractError as error:
                raise self._breach(table, error) from None
            except Exception:
                self._lose(table)
                continue
            if how:
                self._finish(table, how)
        self._steps = steps + TABLES
        if self._observation is not None and not np.isfinite(self._observation[lo:hi].sum()):
            self._find_nan(lo, hi)

    def close(self) -> None:
        """Close the envs."""
        for env in self._envs:
            env.close()

    def _make(self) -> Any:
        return make_env(self._name, self._arguments)

    def _seed_of(self, table: int) -> int:
        return env_seed(self._seed, (self._first + table) // self._per_deal, int(self._board.game[table]))

    def _begin(self, table: int) -> None:
        while True:
            self._steps += TABLES
            self._beat[0] = self._steps + table
            try:
                self._tables[table].begin(self._seed_of(table))
                return
            except ContractError as error:
                raise self._breach(table, error) from None
            except Exception:
                self._record_loss(table)

    def _finish(self, table: int, how: int) -> None:
        """Record the game that ended and begin the next one."""
        played, record = self._tables[table], self._board.ended[table]
        record["how"], record["hands"], record["length"] = how, 1, played.length
        record["reward"][:, 0] = self._board.last_reward[table]
        record["score"] = played.score
        self._deaths[table] = 0
        self._board.game[table] += 1
        self._begin(table)

    def _lose(self, table: int) -> None:
        self._record_loss(table)
        self._begin(table)

    def _record_loss(self, table: int) -> None:
        """An env raised: its game is lost, a new env takes its place."""
        seed, played = self._seed_of(table), self._tables[table]
        trace = traceback.format_exc()
        self._tell(f"table {self._first + table} lost its game with seed {seed} at step {played.length + 1}:\n{trace}")
        self._deaths[table] += 1
        if self._deaths[table] > self._max_deaths:
            last = trace.strip().splitlines()[-1]
            raise GameError(
                f"{self._name} failed {self._deaths[table]} times at table {self._first + table} without finishing a "
                f"game, last with reset(seed={seed}) at step {played.length + 1}: {last}"
            )
        board = self._board
        board.ended[table] = 0
        board.how[table] = _LOST
        board.game[table] += 1
        at = list(self._tables).index(table)
        self._envs[at] = self._make()
        self._tables[table] = open_table(self._envs[at], self.plan, board.place(table))

    def _breach(self, table: int, error: ContractError) -> ContractError:
        step = self._tables[table].length
        return ContractError(
            f"{self._name} {error} at step {step} after reset(seed={self._seed_of(table)}); mend the env or wrap it"
        )

    def _find_nan(self, lo: int, hi: int) -> None:
        assert self._observation is not None
        for table in range(lo, hi):
            if not np.isfinite(self._observation[table][self._board.waiting[table]]).all():
                raise self._breach(table, ContractError("gave an observation that is not finite"))
