"""Both ways of waiting for pipes say the same."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from select import select

import pytest

from maple.arena.readers import AskingReaders, open_readers


def _asking() -> AskingReaders:
    return AskingReaders(lambda descriptor: bool(select([descriptor], [], [], 0)[0]))


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(3)]
    yield made
    for end in (end for pair in made for end in pair):
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it


@pytest.mark.parametrize("make", [open_readers, _asking])
def test_pipes_with_something_to_read_are_ready(
    make: Callable[[], AskingReaders], pipes: list[tuple[int, int]]
) -> None:
    readers = make()
    for reader, _ in pipes:
        readers.register(reader)
    assert readers.ready(0.0) == []
    began = time.monotonic()
    assert readers.ready(0.05) == []
    assert time.monotonic() - began >= 0.049
    os.write(pipes[1][1], b"xy")
    assert readers.ready(1.0) == [pipes[1][0]]
    os.read(pipes[1][0], 1)
    assert readers.ready(0.0) == [pipes[1][0]]  # one byte is left
    os.read(pipes[1][0], 1)
    os.close(pipes[2][1])
    assert readers.ready(1.0) == [pipes[2][0]]  # the end can be read too
    readers.unregister(pipes[2][0])
    assert readers.ready(0.0) == []


@pytest.mark.parametrize("make", [open_readers, _asking])
def test_a_wait_ends_with_what_is_written_meanwhile(
    make: Callable[[], AskingReaders], pipes: list[tuple[int, int]]
) -> None:
    readers = make()
    readers.register(pipes[0][0])
    writer = threading.Timer(0.05, lambda: os.write(pipes[0][1], b"x"))
    writer.start()
    assert readers.ready(30.0) == [pipes[0][0]]
    writer.join()
