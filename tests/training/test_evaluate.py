"""Evaluation: rotations of the same deals, win rates and their intervals against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from maple.core.threads import Team
from maple.games import make_game
from maple.training.evaluate import Player, bot_player, evaluate, mean_interval, share_interval


def _played(name: str, team: Team, hands: int = 600) -> tuple[float, tuple[float, float], float]:
    game = make_game("ofc", {"fantasyland": "off", "seats": 2})
    agent, other = bot_player(game, name, team), bot_player(game, "random", team)
    result = evaluate(game, agent, [other], hands, 5, team)
    assert result.win_rate is not None
    assert result.win_rate_ci95 is not None
    assert result.games == hands
    return result.win_rate, result.win_rate_ci95, result.figures["points_per_hand"]


def test_a_player_against_its_equal_wins_half(team: Team) -> None:
    rate, (low, high), points = _played("random", team)
    assert low <= 0.5 <= high
    assert abs(points) < 1.5
    assert 0 < rate < 1


def test_a_better_player_wins_more(team: Team) -> None:
    rate, (low, _), points = _played("rollout", team, 60)
    assert low > 0.5
    assert rate > 0.6
    assert points > 0


def test_the_win_rate_is_that_of_counting_by_hand(team: Team) -> None:
    game = make_game("ofc", {"fantasyland": "off", "seats": 3})
    players: list[Player] = [bot_player(game, "safe", team), *[bot_player(game, "random", team)] * 2]
    seen: list[np.ndarray] = []

    class Kept(type(game)):  # type: ignore[misc]
        """The same game; keeps what it was asked to sum up."""

        def summarize(self, figures, seat):  # type: ignore[no-untyped-def]
            seen.append(figures["score"].copy())
            return super().summarize(figures, seat)

    result = evaluate(Kept(game.settings), players[0], players[1:], 300, 9, team)
    won = 0.0
    for number, scores in enumerate(seen[0].tolist()):
        best = max(scores)
        if scores[number % 3] == best:
            won += 1 / scores.count(best)
    assert result.win_rate == pytest.approx(won / 300)


def test_an_interval_narrows_with_the_root_of_the_deals() -> None:
    rng = np.random.default_rng(0)
    few, many = rng.normal(1, 2, 400), rng.normal(1, 2, 40_000)
    low, high = mean_interval(few, np.ones(400))
    low_many, high_many = mean_interval(many, np.ones(40_000))
    assert (high - low) / (high_many - low_many) == pytest.approx(10, rel=0.1)
    assert low < 1 < high


def test_an_interval_of_a_win_rate_stays_between_none_and_all() -> None:
    low, high = share_interval(np.ones(20), np.ones(20))
    assert 0.8 < low < 0.9
    assert high == pytest.approx(1.0)
    half, all_won = np.array([1.0, 0.0] * 50), np.ones(20)
    for won, rate, games in ((half, 0.5, 99), (all_won, 1.0, 20)):  # a spread that is estimated takes one game
        low, _ = share_interval(won, np.ones(len(won)))
        assert rate - low == pytest.approx(1.96 * (low * (1 - low) / games) ** 0.5)
    paired = share_interval(np.array([2.0, 0.0] * 50), np.full(100, 2.0))  # both games of a deal are always alike
    assert paired == pytest.approx(share_interval(half, np.ones(100)))
    assert share_interval(np.ones(50), np.full(50, 2.0)) == (0.5, 0.5)  # each deal is won once and lost once
