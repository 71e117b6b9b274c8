"""Worker arenas inside processes that were started in any way: fork is not needed."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context

import pytest

from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.games import make_game
from maple.games.external.game import ExternalGame
from tests.arena.playing import Trace, play


def _walk() -> ExternalGame:
    game = make_game("tests.games.external.envs:Walk")
    assert isinstance(game, ExternalGame)
    return game


def _played_by_workers() -> Trace:
    game = _walk()
    with WorkerArena(game, 5, seed=3, workers=2, spares=0) as arena:
        return play(arena, game, 40)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_of_a_child_play_the_same_games(method: str) -> None:
    if method not in get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    game = _walk()
    with SerialArena(game, 5, seed=3) as arena:
        expected = play(arena, game, 40)
    with ProcessPoolExecutor(1, get_context(method)) as pool:
        assert pool.submit(_played_by_workers).result() == expected
