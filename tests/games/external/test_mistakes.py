"""The usual mistakes in envs: one sentence that names the env, the step and the seed, or a game lost and no more."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from maple.arena.serial import SerialArena
from maple.core.errors import GameError
from maple.core.step import Outcome
from maple.games import make_game
from maple.games.external.game import ExternalGame
from tests.arena.playing import Trace, play

ODD = "tests.games.external.odd_envs"


def _play(name: str, decisions: int = 40, log: list[str] | None = None, **arguments: Any) -> Trace:
    game = make_game(f"{ODD}:{name}", arguments)
    assert isinstance(game, ExternalGame)
    with SerialArena(game, 4, seed=3, log=(log if log is not None else []).append) as arena:
        return play(arena, game, decisions)


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("Paying", {"coin": "nothing"}, "gave the reward None at step 1"),
        ("Paying", {"coin": "two"}, "gave a reward of 2 numbers, array([1., 2.]), instead of one at step 1"),
        ("Paying", {"coin": "word"}, "gave the reward 'much', which is no number at step 1"),
        ("Old", {"masks": "method"}, "gave a ndarray alone from reset(), which has to return observation and info"),
        ("Old", {"what": "step"}, "gave something else than observation, reward, terminated, truncated and info from"),
        ("Old", {"what": "ends"}, "gave something else than observation, reward, terminated, truncated and info from"),
        ("Company", {"who": "back"}, "brought back agent 'odd', who had left the game at step 2"),
        ("Company", {"who": "stranger"}, "has an agent 'stranger' that is not among its possible_agents at step 2"),
    ],
)
def test_a_mistake_is_told_with_the_step_and_the_seed(name: str, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(GameError) as caught:
        _play(name, **arguments)
    told = str(caught.value)
    assert told.startswith(f"{ODD}:{name} {sentence}")
    assert re.search(r"at step \d+ after reset\(seed=\d+\); mend the env or wrap it$", told)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Bare", r"Bare has no observation_space; declare it in __init__"),
        ("Old", r"Old gave a ndarray alone from reset\(\), which has to return observation and info \(seed 0\)"),
        ("Deserted", r"Deserted has no agents after reset\(\) \(seed 0\)"),
    ],
)
def test_a_mistake_that_shows_at_once_is_told_before_anything_is_played(name: str, sentence: str) -> None:
    with pytest.raises(GameError, match=sentence):
        make_game(f"{ODD}:{name}")


def test_a_reward_may_be_an_array_of_one_number() -> None:
    trace = _play("Paying", coin="one")
    ended = [row for rows in trace.values() for row in rows if row[0] == "ended"]
    assert ended
    for _, _, _, length, score, reward, _ in ended:
        assert score == [1.5 * length]
        assert reward == [[1.5]]
    decisions = [row for rows in trace.values() for row in rows if row[0] == "decision"]
    assert {row[5][0] for row in decisions if row[3] > 0} == {1.5}


@pytest.mark.parametrize("where", ["step", "mask"])
def test_leaving_python_loses_the_game_and_no_more(where: str) -> None:
    log: list[str] = []
    trace = _play("Leaver", 60, log, where=where)
    outcomes = {row[2] for rows in trace.values() for row in rows if row[0] == "ended"}
    assert Outcome.LOST in outcomes
    assert len(outcomes) > 1
    assert any("SystemExit: nothing to do here" in line for line in log)


def test_an_env_that_cannot_be_closed_is_told_of_and_played() -> None:
    log: list[str] = []
    with pytest.warns(RuntimeWarning, match="Unclosable cannot be closed: RuntimeError: the door is stuck"):
        trace = _play("Unclosable", log=log)
    assert len(trace) == 4
    assert sum("the door is stuck" in line for line in log) == 4


def test_an_agent_that_comes_later_is_asked_from_then_on() -> None:
    trace = _play("Company", 60)
    for rows in trace.values():
        games: dict[int, dict[int, list[Any]]] = {}
        for row in rows:
            if row[0] == "decision":
                games.setdefault(row[1], {}).setdefault(row[2], []).append(row)
        whole = [games[number] for number in sorted(games)[:-1]]
        assert whole
        for seats in whole:
            assert [len(seats[0]), len(seats[1])] == [4, 2]
            assert [row[3] for row in seats[1]] == [0, 1]
            np.testing.assert_array_equal(seats[1][0][5], [0.5])  # what it was given on its arrival
