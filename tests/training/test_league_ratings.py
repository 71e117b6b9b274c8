"""Ratings and circles, against answers that are known or worked out slowly."""

from __future__ import annotations

import numpy as np
import pytest

from maple.training.league_ratings import ELO, beats, cyclic_share, find_cycles, rate


def _results(share: list[list[float]], games: float) -> tuple[np.ndarray, np.ndarray]:
    wins = np.array(share) * games
    played = np.full(wins.shape, games)
    np.fill_diagonal(played, 0.0)
    np.fill_diagonal(wins, 0.0)
    return played, wins


def test_two_players_differ_by_their_odds() -> None:
    games, wins = _results([[0, 0.75], [0.25, 0]], 1e9)
    ratings = rate(games, wins)
    assert ratings.rating[0] - ratings.rating[1] == pytest.approx(400 * np.log10(3), abs=1e-3)
    assert ratings.rating.mean() == pytest.approx(0)


def test_ratings_are_those_of_slow_ascent() -> None:
    rng = np.random.default_rng(2)
    games = np.triu(rng.integers(0, 30, (6, 6)), 1).astype(float)
    wins = np.floor(games * rng.random((6, 6)))
    games, wins = games + games.T, wins + (games - wins).T * (games.T > 0)
    wins = np.triu(wins, 1) + np.tril(games - np.triu(wins, 1).T, -1)
    strength = np.zeros(6)
    for _ in range(40_000):
        gradient = np.zeros(6)
        for a in range(6):
            for b in range(6):
                gradient[a] += wins[a, b] - games[a, b] / (1 + np.exp(strength[b] - strength[a]))
            gradient[a] += 1 - 2 / (1 + np.exp(-strength[a]))
        strength += 0.01 * gradient
        if np.abs(gradient).max() < 1e-9:
            break
    assert rate(games, wins).rating == pytest.approx(ELO * (strength - strength.mean()), abs=1e-4)


def test_one_who_always_won_and_one_who_never_played_are_rated_too() -> None:
    games, wins = np.zeros((3, 3)), np.zeros((3, 3))
    games[0, 1] = games[1, 0] = wins[0, 1] = 500
    ratings = rate(games, wins)
    assert np.isfinite(ratings.rating).all()
    assert ratings.rating[0] > ratings.rating[2] > ratings.rating[1]
    assert ratings.error[2] > 100


def test_more_results_make_ratings_surer() -> None:
    share = [[0, 0.6, 0.7], [0.4, 0, 0.6], [0.3, 0.4, 0]]
    few, many = rate(*_results(share, 10)), rate(*_results(share, 1000))
    assert (many.error < few.error).all()


def test_a_circle_is_found_and_an_order_is_none() -> None:
    circle = _results([[0, 0.2, 0.9], [0.8, 0, 0.3], [0.1, 0.7, 0]], 200)
    (cycle,) = find_cycles(*circle)
    assert cycle.players == (0, 2, 1)
    assert cycle.win_rates == pytest.approx((0.9, 0.7, 0.8))
    even = _results([[0, 0.2, 0.8], [0.8, 0, 0.2], [0.2, 0.8, 0]], 200)
    assert cyclic_share(*even) == pytest.approx(1.0)
    odds = np.array([2.0, 1.0, 0.0])
    order = 1 / (1 + np.exp(odds[None, :] - odds[:, None]))
    games, wins = _results(order.tolist(), 1e6)
    assert find_cycles(games, wins) == []
    assert cyclic_share(games, wins) < 1e-6


def test_a_circle_by_chance_is_not_one() -> None:
    games, wins = _results([[0, 0.4, 0.6], [0.6, 0, 0.4], [0.4, 0.6, 0]], 10)
    assert not beats(games, wins).any()
    assert find_cycles(games, wins) == []
    assert cyclic_share(np.zeros((2, 2)), np.zeros((2, 2))) == 0.0
