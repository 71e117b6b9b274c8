"""The arena for games in another program: a pool of long-lived processes that play tables in lanes.

Each process has a few lanes of tables. A Step is one lane's wave, of whichever is ready, so that processes play while
the trainer thinks and a slow one holds up nobody. Lanes that take turns in a fixed order wait for each other, but for a
process that is late by a quarter of a second, which means that it hangs or was just replaced.
One that dies, hangs or has grown too large is replaced; only games that died with it are lost, and they are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import HOLD, refuse_illegal
from maple.arena.node_notes import PoolCounters, PoolNotes
from maple.arena.node_pool import Gone, NodePool, PoolLimits
from maple.arena.node_process import NodeProcess, Transport, Wave
from maple.core.errors import ActionError, GameError, MapleError
from maple.core.spec import GameSpec
from maple.core.step import Ended, Keys, Options, Outcome, Step
from maple.games.bridged import Bridged
from maple.games.contract import Game
from maple.perf import spans

__all__ = ["NodeArena"]

LANES = 2  # of each process: it plays one while the trainer thinks about the other
MEMORY_MB = 1024  # that a process may hold, unless it is said
RECYCLE_AFTER = 20_000  # battles of one process
GRACE_S = 0.25  # how long a turn waits once somebody else is ready
LOOK_S = 0.02


@dataclass(slots=True)
class _Lane:
    """Tables that are played together."""

    number: int
    process: int
    tables: NDArray[np.int64]
    games: NDArray[np.int64]  # the game that each table is at
    at: int  # where its area of the shared block begins
    wave: Wave | None = None
    dry: bool = False  # its process is retiring and all its games have ended
    battles: int = 0
    refusals: int = 0
    held: Step | None = None  # what was not answered, and comes again


class NodeArena:
    """Tables of a bridged game. A Step has a row for each waiting seat of one lane."""

    def __init__(
        self,
        game: Game,
        tables: int,
        seed: int,
        *,
        processes: int,
        lanes: int = LANES,
        observations: bool = True,
        options: bool = False,
        check: bool = True,
        first_table: int = 0,
        tables_per_deal: int = 1,
        transport: Transport = "auto",
        limits: PoolLimits | None = None,
        recycle_after: int = RECYCLE_AFTER,
        grace_s: float = GRACE_S,
        in_turn: bool = False,
        log: Callable[[str], None] = lambda _: None,
        note: Callable[[str], None] = lambda _: None,
        keep: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        """`log` is told what happens to processes, `note` what a user should know, `keep` is given every anomaly."""
        if not isinstance(game, Bridged):
            raise MapleError(f"{game.spec.name} does not play in another program")
        self.spec: GameSpec = game.spec
        self.tables = tables
        self.game = game
        self.counters = PoolCounters()
        self._notes = PoolNotes(self.counters, log, keep)
        self._bridged: Bridged = game
        self._program = game.program(seed, tables_per_deal)
        self._observations, self._options, self._check = observations or check, options, check
        pooled, limits = self._program.pooled, limits or PoolLimits()
        self._memory_mb, self._max_deaths = limits.memory_mb or MEMORY_MB, limits.max_deaths
        self._recycle_after, self._grace_s, self._in_turn = recycle_after, grace_s, in_turn
        count = max(1, min(processes, tables)) if pooled else 1
        self._lanes = self._cut(tables, first_table, count, lanes if pooled else 1)
        self._first_table = first_table
        self._ledger = game.ledger(tables)
        self._nothing = self._close_games(np.zeros(0, self._program.ended))
        self._turn = 0
        self._late: set[int] = set()  # processes that turns do not wait for, until they answer
        self._deaths = [0] * count  # of each process, since it last finished a game
        self._died_at: dict[int, float] = {}
        self.replaced_s: list[float] = []  # from each death until its tables had their next decisions
        self._current: _Lane | None = None
        self._carried: list[Ended] = []  # what ended in lanes that had no decision to go with it
        self._mask, self._keys = np.zeros((0, self.spec.actions), np.bool_), self._no_keys()
        self._last: Step | None = None
        block_bytes = sum(self._area(lane) for lane in self._lanes if lane.process == 0)
        self._pool = NodePool(self._program, block_bytes, transport, limits, self.counters, log, game.refuse)
        try:
            self._open(count)
            remark = game.remark(self._pool.processes[0].wait_ready())
            if remark:
                note(remark)
        except BaseException:
            self.close()
            raise

    def recv(self) -> Step:
        """The wave of the lane that is next, encoded; every game that ended with it."""
        if self._current is not None:
            raise ActionError("send() answers a Step before the next recv()")
        self._look(0.0)
        while True:
            lane = self._next()
            if lane.held is not None:
                return self._again(lane, lane.held)
            process = self._pool.processes[lane.process]
            wave = process.ahead[lane.number].pop(0)
            self._count(lane, process, wave)
            if not process.retiring or len(wave.rows):
                return self._step(lane, wave)
            self._carried.append(self._ended(lane, wave.ended))
            lane.dry = True
            self._renew(lane.process)

    def send(self, action: NDArray[Any]) -> None:
        """Answer every row of the last Step, or hold all of them."""
        lane = self._current
        if lane is None or lane.wave is None:
            raise ActionError("send() answers a Step; call recv() first")
        chosen = np.asarray(action)
        if HOLD in chosen:
            if (chosen != HOLD).any():
                raise ActionError("the tables of a lane are held together; make the arena with a lane for each table")
            lane.held, self._current = self._last, None
            return
        if self._check:
            refuse_illegal(self.spec, self._keys, self._mask, chosen)
        self._pool.processes[lane.process].act(lane.number, lane.wave.epoch, chosen.astype(np.int16))
        lane.wave, self._current = None, None

    def state(self) -> dict[str, NDArray[Any]]:
        """The game that each table is at: battles under way live in another program and cannot be saved."""
        games = np.zeros(self.tables, np.int64)
        for lane in self._lanes:
            games[lane.tables - self._first_table] = lane.games
        return {"games": games}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Begin the games after those that were under way, which are reported as lost."""
        count = len(self._pool.processes)
        self._pool.close()
        for lane in self._lanes:
            lane.games = np.asarray(state["games"])[lane.tables - self._first_table].astype(np.int64)
            lane.dry = False
        self._turn, self._current, self._carried = 0, None, []
        self._late.clear()
        self._open(count, lost=True)

    def close(self) -> None:
        """End all processes."""
        with spans.span("env_close"):
            self._pool.close()

    def __enter__(self) -> NodeArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Of the processes that play."""
        return [process.popen.pid for process in self._pool.processes]

    @property
    def replacing(self) -> bool:
        """Whether a process has died whose tables have not gone on yet."""
        return bool(self._died_at)

    @property
    def anomalies(self) -> list[dict[str, Any]]:
        """The first hundred, each with what repeats it."""
        return self._notes.anomalies

    @property
    def records(self) -> list[dict[str, Any]]:
        """Of finished games, where the game keeps them."""
        return self._notes.records

    def report(self) -> dict[str, float]:
        """The counters, with what a decision cost."""
        return self.counters.report()

    def _cut(self, tables: int, first: int, processes: int, lanes: int) -> list[_Lane]:
        """Lanes in the order in which they take turns: the first of every process, then the second …"""
        found = []
        for process, own in enumerate(np.array_split(np.arange(first, first + tables), processes)):
            at = 0
            for number, part in enumerate(np.array_split(own, min(lanes, len(own)))):
                found.append(_Lane(number, process, part, np.zeros(len(part), np.int64), at))
                at += self._area(found[-1])
        return sorted(found, key=lambda lane: (lane.number, lane.process))

    def _area(self, lane: _Lane) -> int:
        return len(lane.tables) * (self.spec.seats * self._program.row.itemsize + self._program.ended.itemsize)

    def _open(self, processes: int, lost: bool = False) -> None:
        self._pool.open(processes)
        for number in range(processes):
            self._assign(number, lost)

    def _assign(self, number: int, lost: bool) -> None:
        """Hand a process's tables to whoever plays for it now; with `lost`, their games under way are gone."""
        process = self._pool.processes[number]
        for lane in self._lanes:
            if lane.process != number:
                continue
            if lost and not lane.dry:
                self._carried.append(self._lost(lane))
                lane.games += 1
            lane.dry, lane.wave, lane.battles, lane.refusals, lane.held = False, None, 0, 0, None
            process.assign(lane.number, lane.tables.tolist(), lane.games.tolist(), lane.at)

    def _next(self) -> _Lane:
        """The lane that is next: any that is ready, or the one whose turn it is, unless it is late."""
        ready_s = 0.0  # when somebody else first was
        while True:
            if not self._in_turn:
                order = (*range(self._turn, len(self._lanes)), *range(self._turn))
                self._turn = next((n for n in order if self._is_ready(self._lanes[n])), self._turn)
            lane = self._lanes[self._turn]
            ready = self._is_ready(lane)
            if ready or lane.held is not None or lane.dry or (lane.process in self._late and self._anybody()):
                self._turn = (self._turn + 1) % len(self._lanes)
                if ready:
                    self._late.discard(lane.process)
                if ready or lane.held is not None:
                    return lane
                continue
            self._look(LOOK_S)
            if self._anybody():
                ready_s = ready_s or time.monotonic()
                if time.monotonic() - ready_s > self._grace_s:
                    self._late.add(lane.process)

    def _is_ready(self, lane: _Lane) -> bool:
        return bool(self._pool.processes[lane.process].ahead.get(lane.number))

    def _anybody(self) -> bool:
        return any(self._is_ready(lane) for lane in self._lanes)

    def _look(self, wait_s: float) -> None:
        """Take in what has come, or comes within a moment; replace who is gone."""
        for gone in self._pool.look(wait_s):
            self._bury(gone)

    def _bury(self, gone: Gone) -> None:
        """A process is dead or as good as dead: its games are lost, the next ones begin elsewhere."""
        number = gone.number
        self._notes.log(f"Node process {number} is replaced, its battles are lost: {gone.words}")
        self.counters.hangs += gone.hung
        self.counters.crashes += not gone.hung
        self._deaths[number] += 1
        if self._deaths[number] >= self._max_deaths:
            raise GameError(
                f"Node process {number} died {self._deaths[number]} times without finishing a battle: {gone.words}"
            )
        self._died_at.setdefault(number, time.monotonic())
        self._pool.replace(number, kill=True)
        if isfinite(self._grace_s):
            self._late.add(number)  # nobody waits for its successor
        self._assign(number, lost=True)

    def _renew(self, number: int) -> None:
        """Replace a retiring process once all its lanes are dry."""
        if all(lane.dry for lane in self._lanes if lane.process == number):
            self.counters.recycled += 1
            self._pool.replace(number, kill=False)
            self._assign(number, lost=False)

    def _count(self, lane: _Lane, process: NodeProcess, wave: Wave) -> None:
        counters = self.counters
        counters.waves += 1
        counters.decisions += len(wave.rows)
        counters.bytes += wave.bytes + 2 * len(wave.rows)
        spans.count("bytes", wave.bytes + 2 * len(wave.rows))
        spans.count("messages", 2)
        if lane.process in self._died_at:
            self.replaced_s.append(time.monotonic() - self._died_at.pop(lane.process))
        if wave.battles > lane.battles:
            self._deaths[lane.process] = 0
        counters.battles += wave.battles - lane.battles
        counters.refusals += wave.refusals - lane.refusals
        lane.battles, lane.refusals = wave.battles, wave.refusals
        self._notes.file(process.notes)
        process.notes.clear()
        if len(wave.ended):
            counters.lost += int((wave.ended["outcome"] == Outcome.LOST).sum())
        played = self._played(lane.process)
        full = wave.memory_mib > self._memory_mb or played > self._recycle_after
        if full and self._program.pooled and not any(each.retiring for each in self._pool.processes):
            self._notes.log(f"Node process {lane.process} is recycled after {played} battles at {wave.memory_mib} MiB")
            process.retire()

    def _played(self, number: int) -> int:
        return sum(lane.battles for lane in self._lanes if lane.process == number)

    def _step(self, lane: _Lane, wave: Wave) -> Step:
        lane.wave, self._current = wave, lane
        rows, n = wave.rows, len(wave.rows)
        self._keys = Keys(
            table=rows["table"].astype(np.int32),
            game=rows["game"].astype(np.int64),
            seat=rows["seat"].astype(np.int8),
            decision=rows["decision"].astype(np.int32),
        )
        view = np.ascontiguousarray(rows["view"])
        observation = np.zeros((n, self.spec.observation if self._observations else 0), np.uint8)
        self._mask = np.zeros((n, self.spec.actions if self._observations else 0), np.bool_)
        if self._observations:
            self.game.observe(view, observation, self._mask, 0, n)
        ended = Ended.join([*self._carried, self._ended(lane, wave.ended)])
        self._carried = []
        reward = self._ledger.pay(rows["table"] - self._first_table, rows["seat"], rows["decision"], rows["earned"])
        options = self._describe(view) if self._options else None
        self._last = Step(self._keys, view, reward[:, None], observation, self._mask, options, ended)
        return self._last

    def _again(self, lane: _Lane, held: Step) -> Step:
        """What a lane asked before and was not answered."""
        self._current, lane.held = lane, None
        self._keys, self._mask = held.keys, held.mask
        self._last = replace(held, ended=Ended.join([*self._carried, self._nothing]))
        self._carried = []
        return self._last

    def _describe(self, view: NDArray[np.uint64]) -> Options:
        spec = self.spec.options
        if spec is None:
            raise ActionError(f"{self.spec.name} does not describe its options; make the arena without options=True")
        count = np.zeros(len(view), np.int64)
        self.game.count_options(view, count, 0, len(view))
        options = Options.allocate(spec, len(view), int(count.sum()))
        np.cumsum(count, out=options.offset[1:])
        self.game.describe(view, options, 0, len(view))
        return options

    def _ended(self, lane: _Lane, found: NDArray[Any]) -> Ended:
        if not len(found):
            return self._nothing  # most waves; making it anew was a quarter of what a wave costs here
        lane.games[np.searchsorted(lane.tables, found["table"])] = found["game"].astype(np.int64) + 1
        return self._close_games(found)

    def _close_games(self, found: NDArray[Any]) -> Ended:
        reward, parts = self._ledger.close(found["table"] - self._first_table, found["earned"])
        cut = np.flatnonzero(found["outcome"] == Outcome.TRUNCATED)
        return Ended(
            table=found["table"].astype(np.int32),
            game=found["game"].astype(np.int64),
            outcome=found["outcome"].astype(np.int8),
            reward=reward[:, :, None],
            figures=self._bridged.figures(found, reward, parts),
            cut=cut,
            last_view=np.ascontiguousarray(found["last_view"][cut]),
        )

    def _lost(self, lane: _Lane) -> Ended:
        """All games of a lane, gone with their process."""
        gone = np.zeros(len(lane.tables), self._program.ended)
        gone["table"], gone["game"], gone["outcome"] = lane.tables, lane.games, Outcome.LOST
        self.counters.lost += len(gone)
        kept = lane.games.copy()
        ended = self._ended(lane, gone)
        lane.games = kept
        return ended

    @staticmethod
    def _no_keys() -> Keys:
        return Keys(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int32))
