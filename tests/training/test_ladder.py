"""Ratings: the better player comes first, whatever the order of play; what was played is not played again."""

from __future__ import annotations

from pathlib import Path

import pytest

from maple.core.threads import Team
from maple.games import make_game
from maple.training.evaluate import bot_player
from maple.training.ladder import Ladder, version


def test_better_players_rank_higher_and_results_are_kept(team: Team, tmp_path: Path) -> None:
    game = make_game("ofc", {"fantasyland": "off", "seats": 2})
    players = {name: bot_player(game, name, team) for name in ("random", "safe")}
    told: list[str] = []

    def tell(text: str, _done: int, _total: int) -> None:
        told.append(text)

    path = tmp_path / "ladder.json"
    Ladder(path, 100, 0).play(game, players, team, tell)
    again = Ladder(path, 100, 0)
    again.play(game, players, team, tell)
    assert told == ["random against safe"]
    first, last = again.ranks(list(players))
    assert (first.name, last.name) == ("safe", "random")
    assert first.interval[0] > last.interval[1]
    assert first.won == pytest.approx(1 - last.won)
    assert first.deals == last.deals == 50


def test_results_are_of_their_deals_and_weights(team: Team, tmp_path: Path) -> None:
    game, path, told = make_game("ofc", {"fantasyland": "off", "seats": 2}), tmp_path / "ladder.json", list[str]()
    bots = [bot_player(game, name, team) for name in ("random", "safe")]
    first, anew = version("x", 10, "aaaaaaaa"), version("x", 10, "bbbbbbbb")
    for hands, seed, run in ((20, 0, first), (20, 1, first), (40, 0, first), (20, 0, anew), (20, 0, first)):
        ladder = Ladder(path, hands, seed)
        ladder.play(game, dict(zip(("random", run), bots, strict=True)), team, lambda text, *_: told.append(text))
        ranks = ladder.ranks(["random", run])
        assert {rank.name for rank in ranks} == {"random", "x@10"}
        assert {rank.deals for rank in ranks} == {hands // 2}
    assert told == ["random against x@10"] * 4  # the last one was there


def test_going_through_results_again_makes_no_interval_narrower(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = make_game("ofc", {"fantasyland": "off", "seats": 2})
    ladder = Ladder(tmp_path / "ladder.json", 60, 0)
    ladder.play(game, {name: bot_player(game, name, team) for name in ("random", "safe")}, team, lambda *_: None)
    widths = []
    for rounds in (1, 3):
        monkeypatch.setattr("maple.training.ladder.ROUNDS", rounds)
        widths.append([rank.interval[1] - rank.interval[0] for rank in ladder.ranks(["random", "safe"])])
    assert widths[0] == pytest.approx(widths[1])
