"""Bridge processes: those that play, by number, and those that stand by for whoever dies.

A spare plays itself warm until it is needed. It can be given tables at any moment, even while it loads: what it is told
waits in its pipe. So nobody waits for a replacement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maple.arena.node_notes import PoolCounters
from maple.arena.node_process import NodeProcess, ProcessGoneError, Transport
from maple.arena.readers import open_readers
from maple.games.bridged import Program
from maple.perf import spans

__all__ = ["Gone", "NodePool", "PoolLimits"]

WARM_S = 3.0  # a spare plays so long by itself, and is then as fast as an old hand
WATCH_S = 0.1  # between looks for processes that hang
FAILED_SPARES = 3  # one after the other, before none is started any more
SIGNS_S = 60.0  # a program that plays elsewhere gives a sign of life every ten seconds


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """What a process may cost before it is replaced, and how many stand by."""

    step_limit_s: float = 30.0  # a wave that takes longer means that the process hangs
    memory_mb: float = 0.0  # one that holds more is recycled between battles; 0 for a GiB
    max_deaths: int = 20  # of one process without a finished battle, at which the arena gives up
    spares: int = 2


@dataclass(frozen=True, slots=True)
class Gone:
    """A process that plays no more."""

    number: int
    hung: bool
    words: str  # its last, not an error: a traceback would keep its memory and descriptors


class NodePool:
    """Keeps a process for each number; all reads are of what has come."""

    def __init__(
        self,
        program: Program,
        block_bytes: int,
        transport: Transport,
        limits: PoolLimits,
        counters: PoolCounters,
        log: Callable[[str], None],
        refuse: Callable[[Mapping[str, Any]], Exception],
    ) -> None:
        self._program, self._block_bytes, self._transport = program, block_bytes, transport
        self._wanted = limits.spares if program.pooled else 0
        self._silence_s = limits.step_limit_s if program.pooled else max(SIGNS_S, limits.step_limit_s)
        self._counters, self._log, self._refuse = counters, log, refuse
        self.processes: list[NodeProcess] = []
        self._spares: list[NodeProcess] = []
        self._failed_spares = 0
        self._readers = open_readers()
        self._at_descriptor: dict[int, NodeProcess] = {}
        self._watched_s = 0.0

    def open(self, count: int) -> None:
        """Start the processes that play; what the program refuses to play is told."""
        self.processes += [self._start(0.0) for _ in range(count)]
        for process in self.processes:
            process.wait_ready()
            self._check(process)

    def look(self, wait_s: float) -> list[Gone]:
        """Take in what has come, or comes within `wait_s`; who is gone. A spare is started if one is missing."""
        if wait_s:
            with spans.span(spans.IDLE):
                found = self._readers.ready(wait_s)
        else:
            found = self._readers.ready(0.0)
        gone = dict(self._take_in(found))
        now, hung = time.monotonic(), set[NodeProcess]()
        if now - self._watched_s > WATCH_S:
            self._watched_s = now
            everybody = (*self.processes, *self._spares)
            hung = {process for process in everybody if process.is_silent(self._silence_s, now)} - gone.keys()
            gone |= dict.fromkeys(hung, f"a bridge process said nothing for {self._silence_s:g} s")
            self._stock()
        for process in [spare for spare in self._spares if spare in gone]:
            self._drop_spare(process, gone[process])
        return [
            Gone(number, process in hung, gone[process])
            for number, process in enumerate(self.processes)
            if process in gone
        ]

    def replace(self, number: int, kill: bool) -> NodeProcess:
        """Put a spare in a process's place, one that is ready if there is one, or else a process that only starts."""
        old = self.processes[number]
        if kill:
            old.popen.kill()
        with spans.span("env_reset"):
            self._close(old)
            ready = [spare for spare in self._spares if spare.ready is not None]
            fresh = next(iter(ready or self._spares), None)
            if fresh is None:
                fresh = self._start(0.0)
            else:
                self._spares.remove(fresh)
            self.processes[number] = fresh
        return fresh

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.dismiss()
        for spare in self._spares:
            spare.popen.kill()
        for process in [*self.processes, *self._spares]:
            self._close(process)
        self.processes, self._spares = [], []

    def _take_in(self, descriptors: list[int]) -> Iterator[tuple[NodeProcess, str]]:
        """Read what has come from these; those that are gone, with their last words."""
        for descriptor in descriptors:
            process = self._at_descriptor[descriptor]
            starting = process.ready is None
            try:
                process.take_in()
                self._check(process)
            except ProcessGoneError as error:
                yield process, str(error)
            else:
                if starting and process.ready is not None:
                    self._failed_spares = 0

    def _check(self, process: NodeProcess) -> None:
        if process.ready is not None and "failed" in process.ready:
            raise self._refuse(process.ready["failed"])

    def _start(self, warm_s: float) -> NodeProcess:
        self._counters.starts += 1
        spans.count("process_starts")
        process = NodeProcess.start(self._program, self._block_bytes, self._transport, warm_s)
        self._readers.register(process.answers)
        self._at_descriptor[process.answers] = process
        return process

    def _stock(self) -> None:
        """Start a spare if one is missing, one at a time: those that play need the cores."""
        starting = any(process.ready is None for process in (*self.processes, *self._spares))
        if len(self._spares) >= self._wanted or starting or self._failed_spares >= FAILED_SPARES:
            return
        try:
            self._spares.append(self._start(WARM_S))
        except OSError as error:  # no memory or no descriptors are left; who plays goes on
            self._note_failed_spare(str(error))

    def _drop_spare(self, spare: NodeProcess, words: str) -> None:
        self._spares.remove(spare)
        spare.popen.kill()
        self._close(spare)
        self._note_failed_spare(words)

    def _note_failed_spare(self, words: str) -> None:
        self._failed_spares += 1
        end = "; no other is started" if self._failed_spares >= FAILED_SPARES else ""
        self._log(f"a Node process that stood by is gone{end}: {words}")

    def _close(self, process: NodeProcess) -> None:
        self._readers.unregister(process.answers)
        del self._at_descriptor[process.answers]
        process.close()
