"""A team of threads, each of which does a share of the rows from beginning to end.

Kernels and torch release the GIL, so two threads are two cores. Neither Numba's parallel loops nor torch's own threads
are used: they join after every operation, and then wait for whichever core was busy with something else. Training OFC
on two cores, torch's threads gave no more than one core alone; shares give nearly twice that (maple bench train ofc).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from typing import Any

__all__ = ["Team"]


class Team:
    """`threads` threads that run kernels over ranges; the calling thread is one of them."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="maple-team")

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def each(self, work: Callable[[int], Any], parts: int) -> None:
        """Call work(0) … work(parts - 1), each by whichever thread is free; an error is raised when all are done."""
        numbers = count()

        def pull() -> None:
            while (part := next(numbers)) < parts:
                work(part)

        others = [self._pool.submit(pull) for _ in range(min(self.threads, parts) - 1)]
        try:
            pull()
        finally:
            wait(others)
        for other in others:
            other.result()

    def run(self, kernel: Callable[..., Any], rows: int, *args: Any, grain: int = 64) -> None:
        """Call kernel(*args, lo, hi) over ranges that make up [0, rows); a range has at least `grain` rows."""
        parts = max(1, min(self.threads, rows // grain))
        if parts == 1:
            kernel(*args, 0, rows)
            return
        bounds = [rows * part // parts for part in range(parts + 1)]
        self.each(lambda part: kernel(*args, bounds[part], bounds[part + 1]), parts)
