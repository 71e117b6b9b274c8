"""Work that is done ahead of its use, in a thread of its own or on the spot: the results are the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

from maple.perf.spans import IDLE, span

__all__ = ["PREFETCH", "Ahead"]

PREFETCH = "prefetch"  # what is made in the thread, less what has spans of its own; and below which others wait for it
T = TypeVar("T")


class Ahead(Generic[T]):
    """Makes one thing at a time; take() waits for it."""

    def __init__(self, in_thread: bool) -> None:
        self._made: Future[T] | None = None
        self._wanted: SimpleQueue[tuple[Callable[[], T], Future[T]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        if in_thread:
            self._thread = threading.Thread(target=self._live, name="maple-prefetch", daemon=True)
            self._thread.start()

    @property
    def in_thread(self) -> bool:
        """Whether the caller's own threads stay free meanwhile."""
        return self._thread is not None

    def begin(self, make: Callable[[], T]) -> None:
        """Start to make the next thing."""
        self._made = Future()
        if self._thread is not None:
            self._wanted.put((make, self._made))
        else:
            self._made.set_result(make())

    def settle(self) -> None:
        """Wait until what was begun is made."""
        if self._made is not None and not self._made.done():
            with span(PREFETCH), span(IDLE):
                self._made.exception()

    def take(self) -> T:
        """What was begun."""
        assert self._made is not None
        self.settle()
        made, self._made = self._made, None
        return made.result()

    def through(self, makes: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Make one thing after the other, each begun before the last is handed over."""
        waiting = iter(makes)
        first = next(waiting, None)
        if first is None:
            return
        self.begin(first)
        try:
            for following in waiting:
                made = self.take()
                self.begin(following)
                yield made
            yield self.take()
        finally:
            self.settle()

    def close(self) -> None:
        """End the thread."""
        self._wanted.put(None)
        if self._thread is not None:
            with span(IDLE):
                self._thread.join()

    def _live(self) -> None:
        with span(PREFETCH):
            while True:
                with span(IDLE):
                    wanted = self._wanted.get()
                if wanted is None:
                    return
                make, made = wanted
                try:
                    made.set_result(make())
                except BaseException as error:  # take() hands it to the caller
                    made.set_exception(error)
