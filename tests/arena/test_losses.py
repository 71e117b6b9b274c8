"""What is lost outside of a step, how it is told, and that it does not come back."""

from __future__ import annotations

from typing import Any

import pytest

from maple.arena.workers import Parts, WorkerArena
from maple.core.step import Outcome
from maple.games import make_game
from maple.games.external.game import ExternalGame
from tests.arena.playing import Trace, play

FAILING = "tests.games.external.failing_envs"


def failing(name: str, **arguments: Any) -> ExternalGame:
    game = make_game(f"{FAILING}:{name}", arguments)
    assert isinstance(game, ExternalGame)
    return game


def _losses(trace: Trace) -> int:
    return sum(row[0] == "ended" and row[2] == Outcome.LOST for rows in trace.values() for row in rows)


@pytest.mark.parametrize(
    ("fault", "workers", "parts"), [("exit", 1, "halves"), ("exit", 2, "workers"), ("hang", 1, "whole")]
)
def test_a_game_that_kills_whoever_begins_it_is_not_begun_again(fault: str, workers: int, parts: Parts) -> None:
    game, log = failing("Stumble", fault=fault, every=23), list[str]()
    limits = {"step_limit_s": 0.5, "max_deaths": 6}
    with WorkerArena(game, 4, seed=1, workers=workers, parts=parts, log=log.append, **limits) as arena:  # type: ignore[arg-type]
        trace = play(arena, game, 80)
        assert arena.lost_workers > 0
    assert _losses(trace) > 0
    for rows in trace.values():  # a loss may stand for games that nobody saw begin; all others follow each other
        number = 0
        for row in rows:
            assert row[1] == number or (row[0] == "ended" and row[2] == Outcome.LOST and row[1] > number)
            number = row[1] + (row[0] == "ended")
    seeds = [line.split("seed=")[1].split(")")[0] for line in log if "games are lost" in line]
    assert all(int(seed) % 23 == 0 for seed in seeds)
    assert max(seeds.count(seed) for seed in seeds) <= 2  # once more where it was begun before the game before was told
