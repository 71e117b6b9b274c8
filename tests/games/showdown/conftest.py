"""Node and the simulator, for the tests that need them."""

from __future__ import annotations

import pytest

from maple.games.showdown.runtime import NodeError, find_node, installed_modules


@pytest.fixture(scope="session", autouse=True)
def _node() -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))
