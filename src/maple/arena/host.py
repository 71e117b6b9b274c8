"""Plays a range of tables, one env each, into their rows: in a worker process, or in the trainer's own.

An exception in an env loses the game at that table alone: the env is made anew and the next game begins. An env that
breaks its contract ends the run, with a sentence that names what repeats it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from maple.arena.board import AT, Board
from maple.core.errors import GameError
from maple.core.step import Outcome
from maple.games.external.locate import make_env
from maple.games.external.plan import Plan, examine
from maple.games.external.spaces import ContractError
from maple.games.external.tables import Table, open_table

__all__ = ["Host", "env_seed"]

_LOST = int(Outcome.LOST)
_64 = (1 << 64) - 1


def env_seed(seed: int, deal: int, game: int) -> int:
    """What an env is reset with: a function of the run's seed, the table's deal and the game's number alone.

    The hash of `maple.core.rng`, in plain numbers: workers do without Numba, and NumPy's takes ten times as long.
    """
    word = seed
    for value in (deal, game):
        word = ((word ^ value) + 0x9E3779B97F4A7C15) & _64
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _64
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _64
        word ^= word >> 31
    return word >> 33


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
        self._at = board.control[worker, AT : AT + 1].data
        self._deaths = dict.fromkeys(tables, 0)
        self._place_of = {table: place for place, table in enumerate(tables)}
        self._tables: dict[int, Table] = {}
        for table, env in zip(tables, self._envs, strict=False):
            self._tables[table] = open_table(env, self.plan, board.place(table))
        self._action = board.action[:, 0] if board.seats == 1 else board.action
        self._observation = None if self.plan.layout.is_bytes else self.plan.layout.observation_of(board.view)
        self._figures = tuple(board.ended[name] for name in ("how", "hands", "length", "reward", "score"))
        self._ended: set[int] = set()  # tables whose record in `ended` is of the last play

    def begin(self, lo: int, hi: int) -> bool:
        """Begin the first game at tables [lo, hi); whether one was lost already."""
        self._board.how[lo:hi] = Outcome.PLAYING
        for table in range(lo, hi):
            self._begin(table)
        return bool(self._ended)

    def play(self, lo: int, hi: int) -> bool:
        """Play the actions on the board at tables [lo, hi); what ends is recorded and the next game begins.

        Returns whether anything ended.
        """
        at, tables = self._at, self._tables
        if self._ended:
            self._board.how[lo:hi] = 0
            self._ended.difference_update(range(lo, hi))
        any_ended = False
        for table, action in enumerate(self._action[lo:hi].tolist(), lo):
            at[0] = table
            try:
                how = tables[table].play(action)
            except ContractError as error:
                raise self._breach(table, error) from None
            except Exception:
                self._lose(table)
                any_ended = True
                continue
            if how:
                self._finish(table, how)
                any_ended = True
        if self._observation is not None and not isfinite(np.add.reduce(self._observation[lo:hi], axis=None)):
            self._find_nan(lo, hi)
        return any_ended

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
            self._at[0] = table
            try:
                self._tables[table].begin(self._seed_of(table))
                return
            except ContractError as error:
                raise self._breach(table, error) from None
            except Exception:
                self._record_loss(table)

    def _finish(self, table: int, how: int) -> None:
        """Record the game that ended and begin the next one."""
        played = self._tables[table]
        hows, hands, lengths, rewards, scores = self._figures
        hows[table], hands[table], lengths[table] = how, 1, played.length
        rewards[table, :, 0] = self._board.last_reward[table]
        scores[table] = played.score
        self._ended.add(table)
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
        self._ended.add(table)
        at = self._place_of[table]
        self._envs[at].close()
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
