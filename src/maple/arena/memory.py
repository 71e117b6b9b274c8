"""A block of memory that a process shares with those it starts; when all are gone, nothing of it is left.

Linux has memory files without a name, handed down by descriptor; other POSIX systems get a file that is unlinked at
once; Windows has pages that belong to whoever holds them, by a name that dies with the last.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile

from maple.core.errors import ConfigError

__all__ = ["SharedBlock"]


class SharedBlock:
    """`size` bytes, all zero at first."""

    def __init__(self, size: int, named_file: bool = False) -> None:
        self.size = size
        self.descriptors: tuple[int, ...] = ()  # what a child has to inherit
        if sys.platform == "win32":
            self.handle = f"maple-{os.getpid()}-{id(self)}"
            self.buffer = mmap.mmap(-1, size, tagname=self.handle)
            return
        descriptor = _unlinked_file() if named_file else _nameless_file()
        try:
            _reserve(descriptor, size)
        except OSError as error:
            os.close(descriptor)
            raise ConfigError(
                f"{size / 2**20:,.0f} MiB cannot be shared with workers: {error.strerror}; set fewer tables"
            ) from None
        self.descriptors, self.handle = (descriptor,), str(descriptor)
        self.buffer = mmap.mmap(descriptor, size)

    def close(self) -> None:
        """Give up the block; arrays over it stay usable until they are gone themselves."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = ()

    @staticmethod
    def attach(handle: str, size: int) -> mmap.mmap:
        """The same block in a process that was started with its handle."""
        if sys.platform == "win32":
            return mmap.mmap(-1, size, tagname=handle)
        return mmap.mmap(int(handle), size)


def _nameless_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("maple")
    return _unlinked_file()


def _reserve(descriptor: int, size: int) -> None:
    """Have the pages now where that can be asked for: one that is not there later ends the process."""
    if sys.platform in ("darwin", "win32"):
        os.ftruncate(descriptor, size)
    else:
        os.posix_fallocate(descriptor, 0, size)


def _unlinked_file() -> int:
    descriptor, path = tempfile.mkstemp(prefix="maple-")
    os.unlink(path)
    return descriptor
