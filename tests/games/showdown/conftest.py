"""Node and the simulator, for the tests that need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from maple.games.showdown.runtime import NodeError, find_node, installed_modules
from maple.games.showdown.server import LocalServer


@pytest.fixture(scope="session", autouse=True)
def _node() -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def server() -> Iterator[LocalServer]:
    """A real server that has greeted somebody, which takes it a while the first time."""
    with LocalServer() as running:
        with connect(running.url, compression=None) as guest:
            while not str(guest.recv(timeout=60)).startswith("|challstr|"):
                pass
        yield running
