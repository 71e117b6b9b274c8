"""Ratings of runs and scripted opponents, from deals that they play against each other.

Two players meet on the same deals both ways round: one of them in one seat and the other in all others. A deal is won
by whoever earned more over all its rotations. Ratings are openskill's (Plackett-Luce), worked out anew from all results
there are, so they do not depend on the order in which a ladder was played.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from maple.core.errors import RunError
from maple.core.threads import Team
from maple.games.contract import Game
from maple.runs.store import write_atomically
from maple.training.evaluate import Player, evaluate

__all__ = ["Ladder", "Rank"]

FORMAT = 1
ROUNDS = 3  # times that all results are gone through, in another order each


@dataclass(frozen=True, slots=True)
class Rank:
    """A player's place."""

    name: str
    rating: float
    interval: tuple[float, float]  # 95 %
    deals: int
    won: float  # share of deals, a draw counting half


class Ladder:
    """Results between players, kept in a file. A player is known by its name and version (a run's step)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (OSError, ValueError, TypeError):
            raise RunError(f"{path} cannot be read; remove it, and all of its meetings are played anew") from None
        self._results: dict[str, list[int]] = content.get("results", {}) if content.get("format") == FORMAT else {}

    def play(
        self,
        game: Game,
        players: Mapping[str, Player],
        hands: int,
        seed: int,
        team: Team,
        tell: Callable[[str, int, int], None],
    ) -> None:
        """Let every two players meet who have not yet; results are kept after each meeting."""
        others = game.spec.seats - 1
        due = [pair for pair in combinations(sorted(players), 2) if _key(*pair) not in self._results]
        for number, (a, b) in enumerate(due):
            tell(f"{a} against {b}", number, len(due))
            there = evaluate(game, players[a], [players[b]] * others, hands, seed, team).deal_score
            back = evaluate(game, players[b], [players[a]] * others, hands, seed, team).deal_score
            difference = there - back
            counts = [int((difference > 0).sum()), int((difference == 0).sum()), int((difference < 0).sum())]
            self._results[_key(a, b)] = counts
            write_atomically(self._path, json.dumps({"format": FORMAT, "results": self._results}, indent=2) + "\n")

    def ranks(self, players: list[str]) -> list[Rank]:
        """The players by rating, the best first."""
        from openskill.models import PlackettLuce

        model = PlackettLuce()
        rating = {name: model.rating(name=name) for name in players}
        deals, won = dict.fromkeys(players, 0), dict.fromkeys(players, 0.0)
        matches: list[tuple[str, str, float]] = []
        for key, (wins, draws, losses) in self._results.items():
            a, b = key.split(" vs ")
            if a not in rating or b not in rating:
                continue
            matches += [(a, b, 1.0)] * wins + [(a, b, 0.5)] * draws + [(a, b, 0.0)] * losses
            total = wins + draws + losses
            deals[a], deals[b] = deals[a] + total, deals[b] + total
            won[a], won[b] = won[a] + wins + draws / 2, won[b] + losses + draws / 2
        order = np.random.default_rng(0)
        for _ in range(ROUNDS):
            for number in order.permutation(len(matches)):
                a, b, result = matches[number]
                scores = [result, 1.0 - result]
                (rating[a],), (rating[b],) = model.rate([[rating[a]], [rating[b]]], scores=scores)
        ranks = [
            Rank(
                name=name,
                rating=one.mu,
                interval=(one.mu - 1.96 * one.sigma, one.mu + 1.96 * one.sigma),
                deals=deals[name],
                won=won[name] / max(1, deals[name]),
            )
            for name, one in rating.items()
        ]
        return sorted(ranks, key=lambda rank: -rank.rating)


def _key(a: str, b: str) -> str:
    return f"{a} vs {b}"
