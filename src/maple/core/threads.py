"""A team of threads, each of which takes pieces of a batch from beginning to end.

Kernels and torch release the GIL, so two threads are two cores. Neither Numba's parallel loops nor torch's own threads
are used: they join after every operation, and then wait for whichever core was busy with something else. Training OFC
on two cores, torch's threads gave no more than one core alone; pieces give nearly twice that (maple bench train ofc).

Between calls the threads watch a counter for a moment before they sleep: a team that is awake starts and joins several
times faster than a pool of futures, whose threads have to be woken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from maple.core.kernels import add_shared, cycles, kernel, let_others_run, load_shared
from maple.perf.spans import IDLE, current, span, split

__all__ = ["Team", "meet"]

WATCH = 400_000  # looks at the counter before going to sleep: some 250 µs
# Looks after that. Whoever raised the counter still holds the GIL for a moment, and to wait for the GIL is to sleep.
SETTLE = 20_000
PATIENCE = 2**13 - 1  # looks at a meeting place before offering the core to somebody else


@kernel
def _watch(address, wanted, looks, settle):
    """Look at a shared counter until it has reached `wanted`, at most `looks` times, and `settle` times more."""
    for _ in range(looks):
        if load_shared(address) >= wanted:
            for _ in range(settle):
                load_shared(address)
            return True
    return False


@kernel
def meet(crew):
    """Wait until all threads of a crew are here; whether they are: False once one has failed. Writes crew.

    `crew` is what Team.together() hands to each thread: its number, how many they are, where they meet, how often they
    have met, how many cycles it has waited, and from 5 on what the kernel counts of cycles by itself.
    """
    crew[3] += 1
    add_shared(crew[2], 1)
    looks, began = 0, cycles()
    while load_shared(crew[2]) < crew[1] * crew[3]:
        looks += 1
        if looks & PATIENCE == 0:
            if load_shared(crew[2] + 64):
                return False
            let_others_run()
    crew[4] += cycles() - began
    return True


@kernel
def _now():
    return cycles()


class _Signal:
    """A counter that one thread raises and another waits for, first watching, then asleep."""

    def __init__(self) -> None:
        self._cell = np.zeros(8, np.int64)  # a cache line of its own
        self._address = int(self._cell.ctypes.data)
        self._wake = threading.Semaphore(0)
        self._asleep = False
        self.watched_s = 0.0

    def raise_to(self, value: int) -> None:
        # Both sides look at the flag and the counter under the GIL, so a wake-up is never missed.
        self._cell[0] = value
        if self._asleep:
            self._asleep = False
            self._wake.release()

    def wait_for(self, value: int) -> None:
        with span(IDLE):
            while not self._watched(value):
                self._asleep = True
                if self._cell[0] < value:
                    self._wake.acquire()  # a wake-up too many only means one more look
                self._asleep = False

    def _watched(self, value: int) -> bool:
        began = time.thread_time()  # by the wall's clock, a busy machine would count what others did meanwhile
        reached = bool(_watch(self._address, value, WATCH, SETTLE))
        self.watched_s += time.thread_time() - began
        return reached


class _Worker:
    """A thread that does what it is handed, time after time."""

    def __init__(self, name: str) -> None:
        self._start, self._finish = _Signal(), _Signal()
        self._round = 0
        self._work: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], None] | None) -> None:
        """Start on `work`; None ends the thread."""
        self._work = work
        self._round += 1
        self._start.raise_to(self._round)

    def join(self) -> BaseException | None:
        """Wait until the work is done; returns what it raised."""
        self._finish.wait_for(self._round)
        error, self._error = self._error, None
        return error

    @property
    def watched_s(self) -> float:
        """Seconds that it and its caller spent watching for each other."""
        return self._start.watched_s + self._finish.watched_s

    def end(self) -> None:
        """End the thread."""
        self.begin(None)
        with span(IDLE):
            self._thread.join()

    def _live(self) -> None:
        for number in count(1):
            self._start.wait_for(number)
            if self._work is None:
                return
            try:
                self._work()
            except BaseException as error:  # join() hands it to the caller, who raises it
                self._error = error
            self._work = None
            self._finish.raise_to(number)


def _within(name: str, work: Callable[[int], Any], number: int) -> None:
    with span(name):
        work(number)


class Team:
    """`threads` threads that run kernels over ranges; the calling thread is one of them."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._met_s = 0.0
        if threads > 1:  # loaded here: Numba's clocks of loading are not made for threads that load at once
            with span("build"):
                _watch(np.zeros(1, np.int64).ctypes.data, 0, 1, 0)
        self._workers = [_Worker(f"maple-team-{i}") for i in range(1, threads)]

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        while self._workers:
            self._workers.pop().end()

    @property
    def watched_s(self) -> float:
        """Seconds of processor time that went into watching for each other instead of work."""
        return self._met_s + sum(worker.watched_s for worker in self._workers)

    def each(self, work: Callable[[int], Any], parts: int) -> None:
        """Call work(0) … work(parts - 1), each by whichever thread is free; an error is raised when all are done."""
        numbers = count()

        def pull(_: int) -> None:
            while (part := next(numbers)) < parts:
                work(part)

        self._together(pull, min(parts, self.threads))

    def together(self, kernel: Callable[..., Any], threads: int, *args: Any, counted: Sequence[str] = ()) -> None:
        """Call kernel(crew, *args) on the first `threads` threads at once; in it they wait for each other by meet().

        `counted` names the spans whose cycles the kernel counts, in crew[5] and the places behind it.
        """
        room = np.zeros(16, np.int64)  # arrivals and the flag of failure, each in a cache line of its own
        address = int(room.ctypes.data)
        waited = [0.0] * threads  # processor time

        def work(number: int) -> None:
            crew = np.array([number, threads, address, 0, 0, *(0 for _ in counted)], np.int64)
            began, cycle, cpu = time.perf_counter(), _now(), time.thread_time()
            try:
                kernel(crew, *args)
            except BaseException:
                room[8] = 1  # nobody waits for a thread that never comes
                raise
            wall = time.perf_counter() - began
            per_cycle = wall / (_now() - cycle)
            waited[number] = crew[4] * per_cycle * min(1.0, (time.thread_time() - cpu) / wall)
            split({IDLE: crew[4] * per_cycle, **{name: crew[5 + i] * per_cycle for i, name in enumerate(counted)}})

        self._together(work, threads)
        self._met_s += sum(waited)

    def _together(self, work: Callable[[int], Any], threads: int) -> None:
        """Call work(i) on thread i of the first `threads`; the calling thread is number 0.

        The others count the work under the name of the span that the caller has open.
        """
        helpers, name = self._workers[: threads - 1], current()
        for number, worker in enumerate(helpers, 1):
            worker.begin(partial(work, number) if name is None else partial(_within, name, work, number))
        try:
            work(0)
        finally:
            errors = [worker.join() for worker in helpers]
        for error in errors:
            if error is not None:
                raise error

    def run(self, kernel: Callable[..., Any], rows: int, *args: Any, grain: int = 64) -> None:
        """Call kernel(*args, lo, hi) over ranges that make up [0, rows); a range has at least `grain` rows."""
        parts = max(1, min(self.threads, rows // grain))
        if parts == 1:
            kernel(*args, 0, rows)
            return
        # The same thread gets the same range each time, so that its rows are still in its core's cache.
        bounds = [rows * part // parts for part in range(parts + 1)]
        self._together(lambda part: kernel(*args, bounds[part], bounds[part + 1]), parts)
