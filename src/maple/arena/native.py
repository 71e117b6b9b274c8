"""The arena for games in compiled kernels: all tables in this process, played in one call over a team of threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import HOLD, refuse_illegal
from maple.core.errors import ActionError
from maple.core.spec import GameSpec
from maple.core.step import Ended, Keys, Options, Outcome, Step
from maple.core.threads import Team
from maple.games.contract import Game, Tables

__all__ = ["NativeArena"]


@dataclass(frozen=True, slots=True)
class _Block:
    """Tables [lo, hi) that play by the same options; the arrays are their rows of the arena's."""

    tables: Tables
    lo: int
    hi: int
    keys: Keys
    reward: NDArray[np.float32]
    view: NDArray[np.uint64]
    action: NDArray[np.int32]


class NativeArena:
    """Tables of a native game. Each has one decision waiting at any time, so a Step has a row for each table.

    `variants` are games of the same shape with other options, and how many of the tables (the last ones) play them.
    """

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
        variants: Sequence[tuple[Game, int]] = (),
        owns_team: bool = False,
    ) -> None:
        spec = game.spec
        self.spec: GameSpec = spec
        self.tables = tables
        self.game = game
        self._team = team
        self._owns_team = owns_team
        self._check = check
        self._options = options
        self._observations = observations or check
        self._keys = Keys(
            table=np.arange(first_table, first_table + tables, dtype=np.int32),
            game=np.zeros(tables, np.int64),
            seat=np.zeros(tables, np.int8),
            decision=np.zeros(tables, np.int32),
        )
        self._reward = np.zeros((tables, len(spec.signals)), np.float32)
        self._view = np.zeros((tables, spec.view), np.uint64)
        self._action = np.zeros(tables, np.int32)
        self._observation = np.zeros((tables, spec.observation if self._observations else 0), np.uint8)
        self._mask = np.zeros((tables, spec.actions if self._observations else 0), np.bool_)
        self._count = np.zeros(tables, np.int64)
        self._blocks: list[_Block] = []
        lo = 0
        for rules, count in ((game, tables - sum(count for _, count in variants)), *variants):
            own = rules.tables(count, seed, first_table + lo, tables_per_deal)
            self._blocks.append(self._block(own, lo, lo + count))
            lo += count
        team.run(self._start, tables)

    def recv(self) -> Step:
        """Every table's waiting decision, encoded; every game that the last send() ended."""
        self._team.run(self._encode, self.tables)
        options = self._describe() if self._options else None
        return Step(self._keys, self._view, self._reward, self._observation, self._mask, options, self._ended())

    def send(self, action: NDArray[Any]) -> None:
        """Play one action at each table, but those that are held."""
        if self._check:
            refuse_illegal(self.spec, self._keys, self._mask, action)
        self._action[:] = action
        self._team.run(self._play_some if HOLD in self._action else self._play, self.tables)

    def state(self) -> dict[str, NDArray[Any]]:
        """The tables' records and the games that ended in the last send()."""
        state = {}
        for name, arrays in self._arrays().items():
            # zeros, for np.concatenate leaves garbage between the fields of records, and a checkpoint saves their bytes
            joined = np.zeros((self.tables, *arrays[0].shape[1:]), arrays[0].dtype)
            for block, array in zip(self._blocks, arrays, strict=True):
                joined[block.lo : block.hi] = array
            state[name] = joined
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""
        for name, arrays in self._arrays().items():
            for block, array in zip(self._blocks, arrays, strict=True):
                rows = np.ascontiguousarray(state[name][block.lo : block.hi])
                array[...] = rows.view(array.dtype).reshape(array.shape)

    def close(self) -> None:
        """End the team of threads, if it is the arena's own."""
        if self._owns_team:
            self._team.close()

    def __enter__(self) -> NativeArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _block(self, tables: Tables, lo: int, hi: int) -> _Block:
        rows, keys = slice(lo, hi), self._keys
        own = Keys(keys.table[rows], keys.game[rows], keys.seat[rows], keys.decision[rows])
        return _Block(tables, lo, hi, own, self._reward[rows], self._view[rows], self._action[rows])

    def _arrays(self) -> dict[str, list[NDArray[Any]]]:
        blocks = [block.tables for block in self._blocks]
        return {
            "tables": [tables.state for tables in blocks],
            "ended": [tables.ended for tables in blocks],
            "last_view": [tables.last_view for tables in blocks],
        }

    def _within(self, lo: int, hi: int) -> Iterator[tuple[_Block, int, int]]:
        """The blocks that tables [lo, hi) belong to, and the range in each."""
        for block in self._blocks:
            a, b = max(lo, block.lo), min(hi, block.hi)
            if a < b:
                yield block, a - block.lo, b - block.lo

    def _start(self, lo: int, hi: int) -> None:
        for block, a, b in self._within(lo, hi):
            block.tables.start(a, b)

    def _encode(self, lo: int, hi: int) -> None:
        for block, a, b in self._within(lo, hi):
            block.tables.decisions(block.keys, block.reward, block.view, a, b)
        if self._observations:
            self.game.observe(self._view, self._observation, self._mask, lo, hi)

    def _play(self, lo: int, hi: int) -> None:
        for block, a, b in self._within(lo, hi):
            block.tables.play(block.action, a, b)

    def _play_some(self, lo: int, hi: int) -> None:
        """Play the tables that are not held, a run of neighbours at a time; at the others nothing ends."""
        for block, a, b in self._within(lo, hi):
            held = block.action[a:b] == HOLD
            block.tables.ended["how"][a:b][held] = Outcome.PLAYING
            edges = np.flatnonzero(np.diff(~held, prepend=False, append=False)) + a
            for begin, end in edges.reshape(-1, 2):
                block.tables.play(block.action, begin, end)

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
        found = [np.flatnonzero(block.tables.ended["how"] != Outcome.PLAYING) for block in self._blocks]
        pairs = list(zip(self._blocks, found, strict=True))
        rows = np.concatenate([own + block.lo for block, own in pairs])
        figures = np.concatenate([block.tables.ended[own] for block, own in pairs])
        cut = np.flatnonzero(figures["how"] == Outcome.TRUNCATED)
        views = [
            block.tables.last_view[own[block.tables.ended["how"][own] == Outcome.TRUNCATED]] for block, own in pairs
        ]
        return Ended(
            table=self._keys.table[rows],
            game=self._keys.game[rows] - 1,
            outcome=figures["how"],
            reward=figures["reward"][:, : self.spec.seats],
            figures=figures,
            cut=cut,
            last_view=np.concatenate(views),
        )
