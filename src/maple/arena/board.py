"""The arrays through which tables and an arena speak, in one flat block of memory that processes may share.

Who plays a table writes its rows in place; the arena reads them when told that they are ready. A row belongs to one
table for the whole run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import HOLD
from maple.core.spec import GameSpec
from maple.core.step import Ended, Keys, Outcome, Step
from maple.games.external.plan import Plan
from maple.games.external.tables import Place

__all__ = ["AT", "COMMANDS", "DONE", "LINE", "NOT_ASKED", "PLAYED", "REMEMBERED", "Board", "Ledger"]

# Columns of `control`, a row for each worker: commands given, commands done, the table it is at, nanoseconds it played.
COMMANDS, DONE, AT, PLAYED = 0, 1, 2, 3
LINE = 8  # columns: a cache line
REMEMBERED = 32  # plays of each table that are reported when its game is lost
NOT_ASKED = HOLD - 1  # in those: a seat that had nothing to decide
_ALIGN = 64

_TRUNCATED = int(Outcome.TRUNCATED)  # comparing with a member of the enum takes ten times as long
assert int(Outcome.PLAYING) == 0

Fields = dict[str, tuple[tuple[int, ...], Any]]


class Board:
    """Rows of `tables` tables and a control line for each of `workers` workers."""

    def __init__(self, buffer: Any, spec: GameSpec, tables: int, workers: int) -> None:
        self.tables, self.seats = tables, spec.seats
        arrays: dict[str, NDArray[Any]] = {}
        begin = 0
        for name, (shape, dtype) in _fields(spec, tables, workers).items():
            count = int(np.prod(shape))
            arrays[name] = np.frombuffer(buffer, dtype, count, begin).reshape(shape)
            begin += -(-count * np.dtype(dtype).itemsize // _ALIGN) * _ALIGN
        self.control: NDArray[np.int64] = arrays["control"]
        self.view: NDArray[np.uint64] = arrays["view"]  # (T, S, V)
        self.waiting: NDArray[np.bool_] = arrays["waiting"]  # (T, S)
        self.reward: NDArray[np.float32] = arrays["reward"]  # (T, S)
        self.action: NDArray[np.int32] = arrays["action"]  # (T, S)
        self.game: NDArray[np.int64] = arrays["game"]  # (T,) the game under way
        self.past: NDArray[np.int32] = arrays["past"]  # (REMEMBERED, T, S) the last plays' actions, in a ring
        self.plays: NDArray[np.int64] = arrays["plays"]  # (T,) so far of the range of tables that begins with this one
        self.since: NDArray[np.int64] = arrays["since"]  # (T,) how many they were when the game under way began
        self.last_view: NDArray[np.uint64] = arrays["last_view"]  # (T, S, V)
        self.last_reward: NDArray[np.float32] = arrays["last_reward"]  # (T, S)
        self.ended: NDArray[Any] = arrays["ended"]  # (T,) spec.figures of the game that the last play() ended
        self.how: NDArray[np.int8] = self.ended["how"]

    @staticmethod
    def size(spec: GameSpec, tables: int, workers: int) -> int:
        """Bytes of a board."""
        fields = _fields(spec, tables, workers).values()
        return sum(-(-int(np.prod(shape)) * np.dtype(dtype).itemsize // _ALIGN) * _ALIGN for shape, dtype in fields)

    def place(self, table: int) -> Place:
        """The rows of one table."""
        rows = (self.view, self.waiting, self.reward, self.last_view, self.last_reward)
        return Place(*(array[table] for array in rows))

    def last_actions(self, table: int, first: int, plan: Plan) -> list[Any]:
        """What the game under way at a table was last given, as its env takes it; `first` begins the table's range."""
        plays = int(self.plays[first])
        at = np.arange(max(int(self.since[table]), plays - REMEMBERED), plays) % REMEMBERED
        rows = self.past[at, table].tolist()
        played = [{s: a for s, a in enumerate(row) if a != NOT_ASKED} for row in rows if HOLD not in row]
        given = [{plan.agents[s]: plan.choice(s, a) for s, a in row.items()} for row in played]
        return given if plan.kind == "parallel" else [action for row in given for action in row.values()]


def _fields(spec: GameSpec, tables: int, workers: int) -> Fields:
    views = (tables, spec.seats, spec.view)
    return {
        "control": ((max(1, workers), LINE), np.int64),
        "view": (views, np.uint64),
        "last_view": (views, np.uint64),
        "waiting": ((tables, spec.seats), np.bool_),
        "reward": ((tables, spec.seats), np.float32),
        "last_reward": ((tables, spec.seats), np.float32),
        "action": ((tables, spec.seats), np.int32),
        "game": ((tables,), np.int64),
        "past": ((REMEMBERED, tables, spec.seats), np.int32),
        "plays": ((tables,), np.int64),
        "since": ((tables,), np.int64),
        "ended": ((tables,), spec.figures),
    }


class Ledger:
    """What an arena knows of its tables between Steps, and how it reads a Step off the board."""

    def __init__(self, board: Board, spec: GameSpec, plan: Plan, first_table: int) -> None:
        tables, seats = board.tables, board.seats
        self.board, self.spec, self.plan = board, spec, plan
        self.table = np.arange(first_table, first_table + tables, dtype=np.int32)
        self.game = np.zeros(tables, np.int64)
        self.decision = np.zeros((tables, seats), np.int32)
        self.lost = np.zeros(tables, np.bool_)  # tables whose game in flight was lost and has yet to be told of
        self._any_lost = False
        self._seat = np.zeros(tables, np.int8)
        self._rows: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        self._range = (0, 0)
        self._cached: dict[tuple[int, int], Step] = {}
        self._none_ended = self._ended(np.zeros(0, np.intp))

    def read(self, lo: int, hi: int, any_ended: bool, present: NDArray[np.bool_] | None = None) -> Step:
        """The Step of tables [lo, hi), or of those that are `present` (T,); each has its rows ready.

        `any_ended` is False where no game is known to have ended: looking for them costs more than all the rest.
        """
        ended = self._read_ended(lo, hi, present) if any_ended or self._any_lost else self._none_ended
        self._range = (lo, hi)
        if present is None and self.board.seats == 1:
            self._rows = None
            step = self._slices(lo, hi)
            return step if ended is self._none_ended else replace(step, ended=ended)
        waiting = self.board.waiting[lo:hi]
        if present is not None:
            waiting = waiting & present[lo:hi, None]
        at, seat = np.nonzero(waiting)
        at += lo
        self._rows = at, seat
        keys = Keys(self.table[at], self.game[at], seat.astype(np.int8), self.decision[at, seat])
        view, layout = self.board.view[at, seat], self.plan.layout
        seen = layout.observation_of(view), layout.mask_of(view)
        return Step(keys, view, self.board.reward[at, seat][:, None], *seen, None, ended)

    def answer(self, action: NDArray[Any]) -> None:
        """Write the actions for the rows of the last Step to the board."""
        if self._rows is None:
            lo, hi = self._range
            self.board.action[lo:hi, 0] = action
            decision = self.decision[lo:hi]
            np.add(decision, 1, decision)
        else:
            self.board.action[self._rows] = action
            self.decision[self._rows] += np.not_equal(action, HOLD)

    def lose(self, tables: NDArray[np.intp]) -> None:
        """Give up the games in flight of some tables; the next ones begin.

        Where a loss is yet to be told of, the game after that one is given up as well: it may be the one that kills
        whoever begins it, and both are told of as one loss.
        """
        self.lost[tables] = True
        self._any_lost = True
        self.game[tables] += 1
        self.decision[tables] = 0
        self.board.game[tables] = self.game[tables]

    def _slices(self, lo: int, hi: int) -> Step:
        """The rows of a range in a game with one seat: views of the board, always the same."""
        if (lo, hi) not in self._cached:
            rows, view = slice(lo, hi), self.board.view[lo:hi, 0]
            keys = Keys(self.table[rows], self.game[rows], self._seat[rows], self.decision[rows, 0])
            seen = self.plan.layout.observation_of(view), self.plan.layout.mask_of(view)
            self._cached[lo, hi] = Step(keys, view, self.board.reward[rows], *seen, None, self._none_ended)
        return self._cached[lo, hi]

    def _read_ended(self, lo: int, hi: int, present: NDArray[np.bool_] | None) -> Ended:
        over = self.board.how[lo:hi]  # what is not zero is over
        if present is not None:
            over = over * present[lo:hi]
        finished, lost = over.nonzero()[0] + lo, None
        if self._any_lost:
            lost = np.flatnonzero(self.lost[lo:hi]) + lo
            finished = finished[~self.lost[finished]]
            self.lost[lost] = False
            self._any_lost = bool(self.lost.any())
        self.game[finished] = self.board.game[finished]
        self.decision[finished] = 0
        return self._ended(finished, lost)

    def _ended(self, finished: NDArray[np.intp], lost: NDArray[np.intp] | None = None) -> Ended:
        figures = self.board.ended[finished]
        rows = finished
        if lost is not None and len(lost):
            gone = np.zeros(len(lost), self.spec.figures)
            gone["how"] = Outcome.LOST
            figures, rows = np.concatenate([figures, gone]), np.concatenate([finished, lost])
        cut = (figures["how"] == _TRUNCATED).nonzero()[0]
        last_view = self.board.last_view[rows[cut]]
        if len(cut):
            last_view[self.plan.layout.flag_of(last_view) == 0] = 0
        return Ended(
            table=self.table[rows],
            game=self.game[rows] - 1,
            outcome=figures["how"],
            reward=figures["reward"],
            figures=figures,
            cut=cut,
            last_view=last_view,
        )
