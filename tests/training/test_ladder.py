"""Ratings: the better player comes first, whatever the order of play; what was played is not played again."""

from __future__ import annotations

from pathlib import Path

import pytest

from maple.core.threads import Team
from maple.games import make_game
from maple.training.evaluate import bot_player
from maple.training.ladder import Ladder


def test_better_players_rank_higher_and_results_are_kept(team: Team, tmp_path: Path) -> None:
    game = make_game("ofc", {"fantasyland": "off", "seats": 2})
    players = {name: bot_player(game, name, team) for name in ("random", "safe")}
    told: list[str] = []

    def tell(text: str, _done: int, _total: int) -> None:
        told.append(text)

    path = tmp_path / "ladder.json"
    Ladder(path).play(game, players, 100, 0, team, tell)
    again = Ladder(path)
    again.play(game, players, 100, 0, team, tell)
    assert told == ["random against safe"]
    first, last = again.ranks(list(players))
    assert (first.name, last.name) == ("safe", "random")
    assert first.interval[0] > last.interval[1]
    assert first.won == pytest.approx(1 - last.won)
    assert first.deals == last.deals == 50
