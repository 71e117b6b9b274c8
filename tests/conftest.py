"""What the tests of every room share: threads, and decisions of real games to try things on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.step import Keys
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not look at figures: whoever measures on this machine meanwhile is not waited for."""
    monkeypatch.setattr("maple.bench.measure.LOCK", str(tmp_path_factory.getbasetemp() / "bench.lock"))


@pytest.fixture(scope="session")
def team() -> Iterator[Team]:
    with Team(2) as threads:
        yield threads


@dataclass(frozen=True)
class Decisions:
    """Decisions of all streets from random play."""

    game: Game
    view: NDArray[np.uint64]
    keys: Keys


@pytest.fixture(scope="session")
def decisions(team: Team) -> Decisions:
    game = make_game("ofc", {"fantasyland": "off"})
    arena = NativeArena(game, 16, 3, team, observations=False, check=False)
    views, tables = [], []
    action = np.zeros(16, np.int32)
    for _ in range(15):
        step = arena.recv()
        views.append(step.view.copy())
        tables.append(step.keys.take(np.arange(16)))
        game.bot("random")(step.view, 1, step.keys, action, 0, 16)
        arena.send(action)
    keys = Keys(*(np.concatenate([getattr(k, name) for k in tables]) for name in ("table", "game", "seat", "decision")))
    return Decisions(game, np.concatenate(views), keys)
