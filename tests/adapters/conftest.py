"""Options to try, and rules to play by that look at one row only, so every way of playing makes the same games."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.core.step import Keys
from maple.games.contract import Game

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "heads-up": {"seats": 2},
    "regular": {"variant": "regular"},
    "jokers": {"jokers": 2},
    "single hands": {"fantasyland": "off"},
    "regular with jokers, heads-up": {"variant": "regular", "jokers": 2, "seats": 2},
}


@pytest.fixture(params=OPTIONS.values(), ids=OPTIONS.keys())
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of OFC, one set after another."""
    chosen: dict[str, Any] = request.param
    return chosen


@pytest.fixture
def by_hash() -> Callable[[NDArray[np.uint64], NDArray[Any]], int]:
    """Any legal action, picked by a hash of the view."""

    def choose(view: NDArray[np.uint64], mask: NDArray[Any]) -> int:
        legal = np.flatnonzero(mask)
        return int(legal[zlib.crc32(view.tobytes()) % len(legal)])

    return choose


@pytest.fixture
def by_bot() -> Callable[[Game, str, NDArray[np.uint64], int, Keys], int]:
    """What a bot does with one row."""

    def choose(game: Game, name: str, view: NDArray[np.uint64], seed: int, keys: Keys) -> int:
        action = np.zeros(1, np.int32)
        game.bot(name)(view.reshape(1, -1), seed, keys, action, 0, 1)
        return int(action[0])

    return choose
