"""Whole games saved and played again, and golden records of the wargame.

`python -m tests.arena.test_record` writes the golden records anew. Do that only when the rules, the set-up or the
random numbers change on purpose: the records say that games of today are those of yesterday.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maple.arena.record import GameRecord, Scribe, load_record, record_game, replay
from maple.arena.serial import SerialArena
from maple.core.errors import GameError
from maple.core.step import Keys
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.training.evaluate import bot_player, evaluate

FOLDER = Path(__file__).parents[1] / "golden" / "wargame"
GOLDEN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "mirrored": ({}, ["tactician", "greedy"]),
    "drawn": ({"armies": "drawn", "rounds": 3}, ["random", "racer"]),
    "named": ({"armies": "assault,gunline", "maps": ["ridge"], "missions": ["unfold"]}, ["charger", "tactician"]),
}


def _recorded(name: str, options: dict[str, Any], bots: list[str], seed: int = 5) -> GameRecord:
    game: Game = make_game(name, options)
    with Team(1) as team:
        return record_game(game, [(bot, bot_player(game, bot, team)) for bot in bots], seed, 2)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_games_replay_exactly(name: str) -> None:
    record = load_record(FOLDER / f"{name}.json")
    assert len(list(replay(record))) == len(record.actions) == record.end["length"]


@pytest.mark.parametrize(("name", "bots"), [("ofc", ["random", "safe", "random"]), ("wargame", ["greedy", "random"])])
def test_a_saved_game_is_the_same_game(name: str, bots: list[str], tmp_path: Path) -> None:
    record = _recorded(name, {}, bots)
    path = tmp_path / "game.json"
    path.write_text(record.text())
    again = load_record(path)
    assert again == record
    seats = {moment.seat for moment in replay(again)}
    assert seats == set(range(len(bots)))


def test_a_record_of_other_rules_is_refused(tmp_path: Path) -> None:
    record = load_record(FOLDER / "drawn.json")
    path = tmp_path / "game.json"
    tree = json.loads(record.text())
    path.write_text(json.dumps({**tree, "actions": [313, *tree["actions"]]}))
    with pytest.raises(GameError, match="made by other rules"):
        list(replay(load_record(path)))
    path.write_text(json.dumps({**tree, "end": {**tree["end"], "vp": [0, 99]}}))
    with pytest.raises(GameError, match="ends otherwise"):
        list(replay(load_record(path)))
    path.write_text("{}")
    with pytest.raises(GameError, match="is not a record"):
        load_record(path)


def test_players_are_asked_for_their_own_seat() -> None:
    asked: dict[int, set[int]] = {0: set(), 1: set()}
    game = make_game("wargame", {"rounds": 1})

    def player(number: int) -> Any:
        def choose(view: np.ndarray, keys: Keys, seed: int) -> np.ndarray:
            asked[number].add(int(keys.seat[0]))
            action = np.zeros(1, np.int32)
            game.bot("random")(view, seed, keys, action, 0, 1)
            return action

        return choose

    record_game(game, [("a", player(0)), ("b", player(1))], 1, 0)
    assert asked == {0: {0}, 1: {1}}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"actions": ["a"]}, "is not a record of a game"),
        ({"actions": 3}, "is not a record of a game"),
        ({"settings": [1]}, "is not a record of a game"),
        ({"version": 99, "added": True}, "has version 99"),
    ],
)
def test_a_record_that_was_changed_is_told_of(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    content = json.loads((FOLDER / "drawn.json").read_text())
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(GameError, match=sentence):
        load_record(path)


@pytest.mark.parametrize(
    "name", ["ofc", "wargame", "CartPole-v1", "tests.games.external.envs:Nim", "tests.games.external.envs:Match"]
)
def test_an_evaluation_takes_down_its_first_game(name: str) -> None:
    game, scribe = make_game(name, {}), Scribe()
    names = ["agent", *["other"] * (game.spec.seats - 1)]
    with Team(1) as team:
        players = [bot_player(game, "random", team) for _ in names]
        found = evaluate(game, players[0], players[1:], 4 * len(names), 3, team, watch=scribe.over)
    record = scribe.record(game, 3, names)
    assert record is not None
    assert found.games == 4 * len(names)
    again = list(replay(record))
    assert [moment.action for moment in again] == record.actions
    assert {moment.seat for moment in again} == set(range(len(names)))
    other = replace(record, actions=record.actions[:-1])
    with pytest.raises(GameError, match="made by other rules"):
        list(replay(other))


def test_a_lost_game_is_not_kept() -> None:
    game, scribe = make_game("tests.games.external.envs:Faulty", {"every": 1, "at": 2}), Scribe()
    arena = scribe.over(SerialArena(game, 1, 0))
    while not len(arena.recv().ended.table):
        arena.send(np.zeros(1, np.int32))
    arena.close()
    assert scribe.record(game, 0, ["agent"]) is None


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for golden, (settings, players) in GOLDEN.items():
        (FOLDER / f"{golden}.json").write_text(_recorded("wargame", settings, players).text())
