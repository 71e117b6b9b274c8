"""The arena for external games in worker processes that nothing takes down.

Tables lie in parts, and Steps go round: while the trainer thinks about one part, the others are played. Rows are
written in place in shared memory; a part costs a worker one byte in and one byte out.

A worker that dies, hangs or grows too large loses the games of its own tables. A process that stands by takes its place
and the next games begin; Steps meanwhile go on without these tables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maple.arena.board import AT, COMMANDS, DONE, LINE, PLAYED, Board, Ledger
from maple.arena.child import FATAL
from maple.arena.memory import SharedBlock
from maple.arena.patience import CROWDED_S, SHORT_S, Patience, let_others_run
from maple.arena.processes import Keeper, Watch, WorkerProcess
from maple.arena.readers import open_readers
from maple.arena.seeds import env_seed
from maple.arena.worker_main import ENDED
from maple.core.cores import available_cores
from maple.core.errors import ConfigError, GameError
from maple.core.spec import GameSpec
from maple.core.step import Ended, Outcome, Step
from maple.games.external.game import ExternalGame
from maple.perf import spans

__all__ = ["Parts", "WorkerArena"]

# One part, two that are each split among all workers, or one for each worker.
Parts = Literal["whole", "halves", "workers"]

LOOK_S = 0.005  # between two looks for workers that have died, while the others are always ready
GRACE_S = 0.25  # how long a Step waits for the last workers once the first is ready


class WorkerArena:
    """Tables of an external game, played by `workers` processes."""

    def __init__(
        self,
        game: ExternalGame,
        tables: int,
        seed: int,
        *,
        workers: int,
        parts: Parts = "halves",
        spares: int = 2,
        first_table: int = 0,
        tables_per_deal: int = 1,
        step_limit_s: float = 30.0,
        memory_mb: float = 0.0,
        max_deaths: int = 20,
        grace_s: float = GRACE_S,
        in_turn: bool = False,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        if workers > tables:
            raise ConfigError(f"{workers} workers cannot share {tables} tables; give at most as many workers as tables")
        self.spec: GameSpec = game.spec
        self._plan = game.plan
        self.tables, self.workers = tables, workers
        self._seed, self._per_deal, self._first = seed, tables_per_deal, first_table
        self._watch, self._max_deaths = Watch(step_limit_s, memory_mb), max_deaths
        self._log, self._grace_s = log, grace_s
        self._block = SharedBlock(Board.size(game.spec, tables, workers))
        self._board = Board(self._block.buffer, game.spec, tables, workers)
        self._ledger = Ledger(self._board, game.spec, game.plan, first_table)
        self._ranges = _split(tables, workers, parts)
        self._crew = [[n for n, (lo, hi) in enumerate(part) if lo < hi] for part in zip(*self._ranges, strict=True)]
        self._bounds = [(self._ranges[own[0]][n][0], self._ranges[own[-1]][n][1]) for n, own in enumerate(self._crew)]
        self._tables = [np.concatenate([np.arange(lo, hi) for lo, hi in ranges]) for ranges in self._ranges]
        self._worker_of = np.zeros(tables, np.intp)
        for worker, own in enumerate(self._tables):
            self._worker_of[own] = worker
        self._process: list[WorkerProcess | None] = [None] * workers
        self._control = self._board.control.reshape(-1).data
        self._all = list(range(workers))
        self._answering = self._all  # whose rows the last Step had
        self._pending: list[set[int]] = [set() for _ in self._crew]  # whose answer for a part is still to come
        self._given = [0] * workers  # commands
        self._ticket = [[0] * workers for _ in self._crew]  # the number of the last command for a part
        self._any_ended = [False] * len(self._crew)
        self._late: set[int] = set()  # whom Steps do not wait for, until they answer
        self._turn, self._begun, self._in_turn = 0, False, in_turn
        self._look_at = 0.0
        self._readers = open_readers()
        self._at_descriptor: dict[int, int] = {}
        self._deaths = np.zeros(workers, np.int64)
        self.lost_workers = 0
        self._died_at: dict[int, float] = {}
        self.replaced_s: list[float] = []  # from each death until its tables had their next decisions
        self._patience = Patience(CROWDED_S if workers >= available_cores() else SHORT_S)
        self._row_bytes = 8 * game.spec.view + 8  # of a decision in shared memory: what is seen, reward, action
        self._task = self._describe_task(game)
        self._keeper = Keeper(self._start, workers, spares, self._look_after)

    def _describe_task(self, game: ExternalGame) -> dict[str, Any]:
        """What every worker is told when it starts."""
        return {
            "name": game.spec.name,
            "arguments": game.settings.model_dump(),
            "count": max(len(own) for own in self._tables),
            "seed": self._seed,
            "max_deaths": self._max_deaths,
            "view": game.spec.view,
            "tables": self.tables,
            "workers": self.workers,
        }

    @property
    def starts(self) -> int:
        """Processes started so far."""
        return self._keeper.starts

    @property
    def pids(self) -> list[int]:
        """The processes that play now."""
        return [process.pid for process in self._process if process is not None]

    @property
    def played_s(self) -> list[float]:
        """Seconds that each of the processes that play now has played."""
        return [1e-9 * int(ns) for ns in self._board.control[:, PLAYED]]

    @property
    def replacing(self) -> bool:
        """Whether a worker has died whose tables have not gone on yet."""
        return bool(self._died_at)

    def recv(self) -> Step:
        """The waiting decisions of the part whose turn it is, and every game that ended there."""
        if not self._begun:
            self._begin()
        self._turn = part = self._await_part()
        late, crew = self._pending[part], self._crew[part]
        any_ended, self._any_ended[part] = self._any_ended[part], False
        lo, hi = self._bounds[part]
        if not late:
            self._answering = crew
            step = self._ledger.read(lo, hi, any_ended)
        else:
            self._answering = [number for number in crew if number not in late]
            present = np.isin(self._worker_of, self._answering)
            step = self._ledger.read(lo, hi, True, present)
        if len(step.ended.table):
            self._note_finished(step.ended)
        spans.count("messages", 2 * len(self._answering))
        spans.count("bytes", len(step.view) * self._row_bytes)
        return step

    def send(self, action: NDArray[Any]) -> None:
        """Have the part of the last Step played on."""
        part = self._turn
        self._ledger.answer(action)
        code, control, given = bytes([part]), self._control, self._given
        for number in self._answering:
            process = self._process[number]
            if process is None:
                continue
            given[number] += 1
            self._ticket[part][number] = given[number]
            self._pending[part].add(number)
            with suppress(BrokenPipeError):  # the end of its answers tells the rest
                os.write(process.commands, code)
            # After the byte: a worker that sees the counter move finds it, and need not sleep for it.
            control[number * LINE + COMMANDS] = given[number]
        self._turn = (part + 1) % len(self._crew)

    def state(self) -> dict[str, NDArray[Any]]:
        """The games' numbers: an env itself cannot be saved."""
        return {"game": self._ledger.game.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Give up the games that were in flight and go on with the next ones."""
        self._ledger.game[:] = state["game"]
        self._ledger.lose(np.arange(self.tables))

    def close(self) -> None:
        """Let all processes close their envs and end.

        The keeper goes last: they die with the thread that started them.
        """
        with spans.span("env_close"):
            for number, process in enumerate(self._process):
                self._process[number] = None
                if process is not None:
                    process.close()
            self._keeper.close()
        self._block.close()

    def __enter__(self) -> WorkerArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, number: int) -> WorkerProcess:
        return WorkerProcess("maple.arena.worker_main", number, self._task, self._block, self._log)

    def _begin(self) -> None:
        with spans.span("env_reset"):
            for number, process in enumerate(self._keeper.several(self.workers)):
                self._seat(number, process)
        self._begun = True

    def _seat(self, number: int, process: WorkerProcess) -> None:
        """Give a slot's tables to a process, which begins their next games."""
        self._board.control[number] = 0
        own = [part for part, crew in enumerate(self._crew) if number in crew]
        self._given[number] = len(own)  # each part's beginning counts as a command
        self._board.control[number, COMMANDS] = len(own)
        self._board.control[number, AT] = self._tables[number][0]
        for ticket, part in enumerate(own, 1):
            self._ticket[part][number] = ticket
            self._pending[part].add(number)
        self._process[number] = process
        self._readers.register(process.answers)
        self._at_descriptor[process.answers] = number
        ranges = [[int(lo), int(hi)] for lo, hi in self._ranges[number]]
        slot = {"number": number, "ranges": ranges, "first_table": self._first, "tables_per_deal": self._per_deal}
        process.take(slot)

    def _await_part(self) -> int:
        """Wait for the next part: whichever is ready first, or the one whose turn it is."""
        began = time.perf_counter()
        if began > self._look_at:  # the counters do not tell of a worker that has died
            self._look(0)
        part = self._ready_part()
        if part is None:
            with spans.span(spans.IDLE):
                part = self._wait()
        self._patience.waited(time.perf_counter() - began)
        return part

    def _wait(self) -> int:
        """Watch for answers as long as they usually take, then sleep."""
        until = time.perf_counter() + self._patience.limit_s()
        while time.perf_counter() < until:
            let_others_run()
            if (part := self._ready_part()) is not None:
                return part
        first, clock = 0.0, time.perf_counter
        while True:
            self._look(0.02)
            if (part := self._ready_part()) is not None:
                return part
            waiting = [n for n in self._awaited() if self._anybody(n)]
            first = first or (clock() if waiting else 0.0)
            if first and clock() - first > self._grace_s:
                self._late.update(*(self._pending[n] for n in waiting))

    def _ready_part(self) -> int | None:
        """Take the answers that are there; the first part that nobody is waited for."""
        for part in self._awaited():
            self._take_answers(part)
            pending = self._pending[part]
            if not pending or (pending <= self._late and len(pending) < len(self._crew[part])):
                return part
        return None

    def _awaited(self) -> Iterator[int]:
        """The parts that may come next, those before others that have waited for longer."""
        for part in (*range(self._turn, len(self._crew)), *range(self._turn)):
            yield part
            if self._in_turn and not self._pending[part] <= self._late:
                return  # it is this one's turn; only where all of its workers are late is it passed over

    def _take_answers(self, part: int) -> None:
        """Take the answers for a part that are there, by the workers' counters."""
        ticket, control = self._ticket[part], self._control
        for number in tuple(self._pending[part]):
            if control[number * LINE + DONE] >= ticket[number]:
                self._collect(number)

    def _anybody(self, part: int) -> bool:
        """Whether somebody is ready: in this part, or if it is all one worker's in any other."""
        crew = self._crew[part]
        if len(self._pending[part]) < len(crew):
            return True
        others = zip(self._pending, self._crew, strict=True)
        return len(crew) < self.workers and any(len(pending) < len(own) for pending, own in others)

    def _look(self, wait_s: float) -> None:
        """Take the answers that have come, or come within a moment; fill places that are free."""
        self._look_at = time.perf_counter() + LOOK_S
        for descriptor in self._readers.ready(wait_s):
            self._collect(self._at_descriptor[descriptor])
        self._keeper.check()
        if None in self._process:
            self._fill()

    def _collect(self, number: int) -> None:
        """Read one answer of a worker."""
        process = self._process[number]
        if process is None:
            return
        code = os.read(process.answers, 1)  # a system call, not the counter alone, is what makes its rows visible here
        if not code:
            self._bury(number, process)
        elif code == FATAL:
            raise GameError(process.last_words())
        else:
            part = code[0] & ~ENDED
            self._pending[part].discard(number)
            self._late.discard(number)
            if number in self._died_at:
                self.replaced_s.append(time.perf_counter() - self._died_at.pop(number))
            self._any_ended[part] |= code[0] >= ENDED

    def _bury(self, number: int, process: WorkerProcess) -> None:
        """A worker is dead: its games are lost, its place is free."""
        how = process.how_it_ended()
        repeats = self._what_repeats(number)
        self._log(f"{process.name} (pid {process.pid}) {how} {repeats}; its {len(self._tables[number])} games are lost")
        self._readers.unregister(process.answers)
        process.close()
        self._process[number] = None
        for pending, crew in zip(self._pending, self._crew, strict=True):
            pending.update({number} & set(crew))
        if isfinite(self._grace_s):
            self._late.add(number)  # nobody waits for its successor
        self._ledger.lose(self._tables[number])
        self.lost_workers += 1
        self._died_at.setdefault(number, time.perf_counter())
        self._deaths[number] += 1
        if self._deaths[number] >= self._max_deaths:
            raise GameError(
                f"worker {number} of {self.spec.name} died {self._deaths[number]} times without finishing a game; the "
                f"last time it {how} {repeats}"
            )
        self._fill()

    def _fill(self) -> None:
        """Seat processes that stand by where a place is free, first where it has been for longest."""
        free = sorted((n for n, process in enumerate(self._process) if process is None), key=self._died_at.__getitem__)
        for number in free:
            spare = self._keeper.spare(wanted=len(free))
            if spare is None:
                return
            self._seat(number, spare)

    def _what_repeats(self, number: int) -> str:
        """The seed and the last actions of the table that a worker was at."""
        at = int(self._board.control[number, AT])
        game = int(self._board.game[at])
        seed = env_seed(self._seed, (self._first + at) // self._per_deal, game)
        first = next(lo for lo, hi in self._ranges[number] if lo <= at < hi)
        actions = self._board.last_actions(at, first, self._plan)
        return f"at table {self._first + at}, game {game}: reset(seed={seed}), last actions {actions}"

    def _note_finished(self, ended: Ended) -> None:
        told = ended.table[ended.outcome != Outcome.LOST] - self._first
        self._deaths[self._worker_of[told]] = 0

    def _look_after(self) -> None:
        """Look after all workers; the keeper's thread calls this a few times a second."""
        for number, process in enumerate(self._process):
            if process is not None:
                control = self._board.control[number]
                busy = bool(control[DONE] < control[COMMANDS])
                self._watch.look(number, process, busy, (int(control[AT]), int(control[DONE])))


def _split(tables: int, workers: int, parts: Parts) -> list[list[tuple[int, int]]]:
    """For each worker its range of tables in each part, an empty one where it has none."""
    if parts == "workers":
        own = [(tables * n // workers, tables * (n + 1) // workers) for n in range(workers)]
        return [[own[n] if n == part else (0, 0) for part in range(workers)] for n in range(workers)]
    count = min(2 if parts == "halves" else 1, tables // workers)
    ranges: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
    for begin, end in pairwise(tables * part // count for part in range(count + 1)):
        cuts = [begin + (end - begin) * worker // workers for worker in range(workers + 1)]
        for worker in range(workers):
            ranges[worker].append((cuts[worker], cuts[worker + 1]))
    return ranges
