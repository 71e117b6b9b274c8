"""The arena for games in compiled kernels: all tables in this process, played in one call over a team of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.errors import ActionError
from maple.core.spec import GameSpec
from maple.core.step import Ended, Keys, Options, Outcome, Step
from maple.core.threads import Team
from maple.games.contract import Game

__all__ = ["NativeArena"]


class NativeArena:
    """Tables of a native game. Each has one decision waiting at any time, so a Step has a row for each table."""

    def __init__(
        self,
        game: Game,
        tables: int,
        seed: int,
        team: Team,
        *,
        observations: bool = True,
        options: bool = False,
        check: bool = True,
        first_table: int = 0,
        tables_per_deal: int = 1,
        owns_team: bool = False,
    ) -> None:
        self.spec: GameSpec = game.spec
        self.tables = tables
        self.game = game
        self._team = team
        self._owns_team = owns_team
        self._check = check
        spec = game.spec
        self._tables = game.tables(tables, seed, first_table, tables_per_deal)
        self._keys = Keys(
            table=np.arange(first_table, first_table + tables, dtype=np.int32),
            game=np.zeros(tables, np.int64),
            seat=np.zeros(tables, np.int8),
            decision=np.zeros(tables, np.int32),
        )
        self._reward = np.zeros((tables, len(spec.signals)), np.float32)
        self._view = np.zeros((tables, spec.view), np.uint64)
        self._action = np.zeros(tables, np.int32)
        self._observations = observations or check
        self._observation = np.zeros((tables, spec.observation if self._observations else 0), np.uint8)
        self._mask = np.zeros((tables, spec.actions if self._observations else 0), np.bool_)
        self._count = np.zeros(tables, np.int64)
        self._options = options
        team.run(self._tables.start, tables)

    def recv(self) -> Step:
        """Every table's waiting decision, encoded; every game that the last send() ended."""
        self._team.run(self._encode, self.tables)
        options = self._describe() if self._options else None
        return Step(self._keys, self._view, self._reward, self._observation, self._mask, options, self._ended())

    def send(self, action: NDArray[Any]) -> None:
        """Play one action at each table."""
        if self._check:
            self._refuse_illegal(action)
        self._action[:] = action
        self._team.run(self._tables.play, self.tables, self._action)

    def state(self) -> dict[str, NDArray[Any]]:
        """The tables' records and the games that ended in the last send()."""
        return {"tables": self._tables.state, "ended": self._tables.ended, "last_view": self._tables.last_view}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""
        for name, array in self.state().items():
            array[...] = state[name].view(array.dtype).reshape(array.shape)

    def close(self) -> None:
        """End the team of threads, if it is the arena's own."""
        if self._owns_team:
            self._team.close()

    def __enter__(self) -> NativeArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, lo: int, hi: int) -> None:
        self._tables.decisions(self._keys, self._reward, self._view, lo, hi)
        if self._observations:
            self.game.observe(self._view, self._observation, self._mask, lo, hi)

    def _describe(self) -> Options:
        spec = self.spec.options
        if spec is None:
            raise ActionError(f"{self.spec.name} does not describe its options; make the arena without options=True")
        self._team.run(self.game.count_options, self.tables, self._view, self._count)
        options = Options.allocate(spec, self.tables, int(self._count.sum()))
        np.cumsum(self._count, out=options.offset[1:])
        self._team.run(self.game.describe, self.tables, self._view, options, grain=8)
        return options

    def _ended(self) -> Ended:
        ended = self._tables.ended
        rows = np.flatnonzero(ended["how"] != Outcome.PLAYING)
        figures = ended[rows]
        return Ended(
            table=self._keys.table[rows],
            game=self._keys.game[rows] - 1,
            outcome=figures["how"],
            reward=figures["reward"][:, : self.spec.seats],
            figures=figures,
            last_view=self._tables.last_view[rows],
        )

    def _refuse_illegal(self, action: NDArray[Any]) -> None:
        chosen = np.asarray(action)
        known = (chosen >= 0) & (chosen < self.spec.actions)
        legal = known & self._mask[np.arange(self.tables), np.where(known, chosen, 0)]
        if not legal.all():
            row = int(np.flatnonzero(~legal)[0])
            raise ActionError(
                f"action {int(chosen[row])} is not legal for seat {int(self._keys.seat[row])} at table "
                f"{int(self._keys.table[row])} of {self.spec.name}; choose one where step.mask[{row}] is true"
            )
