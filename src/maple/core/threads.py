"""A team of threads over ranges of rows.

Kernels release the GIL and take a range, so two threads are two cores. Numba's own parallel loops are not used: its
threading layers abort or fight with torch's when both live in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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

    def run(self, kernel: Callable[..., Any], rows: int, *args: Any, grain: int = 64) -> None:
        """Call kernel(*args, lo, hi) over ranges that make up [0, rows); a range has at least `grain` rows."""
        parts = max(1, min(self.threads, rows // grain))
        if parts == 1:
            kernel(*args, 0, rows)
            return
        bounds = [rows * part // parts for part in range(parts + 1)]
        others = [self._pool.submit(kernel, *args, bounds[i], bounds[i + 1]) for i in range(1, parts)]
        kernel(*args, 0, bounds[1])
        for other in others:
            other.result()
