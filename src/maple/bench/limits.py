"""What the machine itself can do: the bounds that figures are held against."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import torch

__all__ = ["matmul_flops", "write_bandwidth"]

BLOCK = 64 * 2**20  # bytes: larger than caches


def _on_threads(work: Callable[[], float], threads: int) -> float:
    """The sum of what `work` gives on each of so many threads at once."""
    found = [0.0] * threads

    def one(number: int) -> None:
        found[number] = work()

    others = [threading.Thread(target=one, args=(number,)) for number in range(1, threads)]
    for other in others:
        other.start()
    one(0)
    for other in others:
        other.join()
    return sum(found)


def write_bandwidth(threads: int, seconds: float) -> float:
    """Bytes a second that threads can fill memory with."""

    def fill() -> float:
        block, began, done = np.zeros(BLOCK, np.uint8), time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            block.fill(done % 251)
            done += BLOCK
        return done / (time.perf_counter() - began)

    return _on_threads(fill, threads)


def matmul_flops(rows: int, inner: int, columns: int, threads: int, seconds: float) -> float:
    """Multiplications and additions a second of matrix products of this shape, each thread on its own."""
    torch.set_num_threads(1)

    @torch.no_grad()
    def multiply() -> float:
        a, b, out = torch.rand(rows, inner), torch.rand(inner, columns), torch.empty(rows, columns)
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            torch.mm(a, b, out=out)
            done += 2 * rows * inner * columns
        return done / (time.perf_counter() - began)

    return _on_threads(multiply, threads)
