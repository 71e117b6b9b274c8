"""Work that is done ahead of its use, in a thread of its own or on the spot: the results are the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from maple.perf.spans import IDLE, span

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(Generic[T]):
    """Makes one thing at a time; take() waits for it."""

    def __init__(self, in_thread: bool) -> None:
        self._pool = ThreadPoolExecutor(1, "maple-prefetch") if in_thread else None
        self._made: Future[T] | None = None

    @property
    def in_thread(self) -> bool:
        """Whether the caller's own threads stay free meanwhile."""
        return self._pool is not None

    def begin(self, make: Callable[[], T]) -> None:
        """Start to make the next thing."""
        if self._pool is not None:
            self._made = self._pool.submit(make)
        else:
            self._made = Future()
            self._made.set_result(make())

    def settle(self) -> None:
        """Wait until what was begun is made."""
        if self._made is not None and not self._made.done():
            with span(IDLE):
                self._made.exception()

    def take(self) -> T:
        """What was begun."""
        assert self._made is not None
        self.settle()
        made, self._made = self._made, None
        return made.result()

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown()
