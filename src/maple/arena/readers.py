"""Pipes of several processes: which of them have something to read, or have ended.

POSIX systems can wait for many pipes at once. Windows can wait for sockets only, but can be asked what is in a pipe, so
there they are asked in turn, with short sleeps between.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

__all__ = ["AskingReaders", "Readers", "open_readers"]

NAP_S = 0.0005


class AskingReaders:
    """Asks one pipe after the other, by a function that says whether a read would return at once."""

    def __init__(self, readable: Callable[[int], bool]) -> None:
        self._readable = readable
        self._descriptors: list[int] = []

    def register(self, descriptor: int) -> None:
        """Look at this pipe too."""
        self._descriptors.append(descriptor)

    def unregister(self, descriptor: int) -> None:
        """Look at this pipe no more."""
        self._descriptors.remove(descriptor)

    def ready(self, wait_s: float) -> list[int]:
        """The pipes from which a read returns at once; none if that is none for so long."""
        until = time.monotonic() + wait_s
        while True:
            found = [descriptor for descriptor in self._descriptors if self._readable(descriptor)]
            left = until - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(NAP_S, left))


if sys.platform == "win32":
    import _winapi
    import msvcrt

    def _readable(descriptor: int) -> bool:
        """Whether a pipe holds something; one that has ended can be read too."""
        try:
            return bool(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(descriptor), 0)[0])
        except BrokenPipeError:
            return True

    Readers = AskingReaders

    def open_readers() -> Readers:
        """Readers of no pipe yet."""
        return AskingReaders(_readable)
else:
    from select import POLLIN, poll

    class Readers:
        """Waits for all pipes at once."""

        def __init__(self) -> None:
            self._poll = poll()

        def register(self, descriptor: int) -> None:
            """Look at this pipe too."""
            self._poll.register(descriptor, POLLIN)

        def unregister(self, descriptor: int) -> None:
            """Look at this pipe no more."""
            self._poll.unregister(descriptor)

        def ready(self, wait_s: float) -> list[int]:
            """The pipes from which a read returns at once; none if that is none for so long."""
            return [descriptor for descriptor, _ in self._poll.poll(1000 * wait_s)]

    def open_readers() -> Readers:
        """Readers of no pipe yet."""
        return Readers()
