"""Ratings of runs and scripted opponents, from deals that they play against each other.

Two players meet on the same deals both ways round: one of them in one seat and the other in all others. A deal is won
by whoever earned more over all its rotations. Ratings are openskill's (Plackett-Luce), worked out anew from all results
on the same deals, so they do not depend on the order in which a ladder was played.
"""

from __future__ import annotations

import json
import re
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

__all__ = ["Ladder", "Rank", "version"]

FORMAT = 2
DIGEST = 6  # characters of a checksum that tell an agent's weights from others
ROUNDS = 3  # times that all results are gone through for the ratings, in another order each


@dataclass(frozen=True, slots=True)
class Rank:
    """A player's place."""

    name: str
    rating: float
    interval: tuple[float, float]  # 95 %
    deals: int
    won: float  # share of deals, a draw counting half


def version(run: str, steps: int, weights_sha256: str) -> str:
    """What a run's agent is known by: a run of that name that was begun anew has other weights at the same step."""
    return f"{run}@{steps}#{weights_sha256[:DIGEST]}"


class Ladder:
    """Results between players on so many hands of one seed, kept in a file with those on others.

    A scripted opponent is known by its name, an agent by its `version`.
    """

    def __init__(self, path: Path, hands: int, seed: int) -> None:
        self._path, self._hands, self._seed = path, hands, seed
        try:
            content: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except (OSError, ValueError, TypeError):
            raise RunError(f"{path} cannot be read; remove it, and all of its meetings are played anew") from None
        kept = content.get("results", {}) if content.get("format") == FORMAT else {}
        self._all: dict[str, dict[str, list[int]]] = kept
        self._results = self._all.setdefault(f"{hands} hands of seed {seed}", {})

    def play(
        self,
        game: Game,
        players: Mapping[str, Player],
        team: Team,
        tell: Callable[[str, int, int], None],
    ) -> None:
        """Let every two players meet who have not yet; results are kept after each meeting."""
        others, hands, seed = game.spec.seats - 1, self._hands, self._seed
        due = [pair for pair in combinations(sorted(players), 2) if _key(*pair) not in self._results]
        for number, (a, b) in enumerate(due):
            tell(f"{_shown(a)} against {_shown(b)}", number, len(due))
            there = evaluate(game, players[a], [players[b]] * others, hands, seed, team).deal_score
            back = evaluate(game, players[b], [players[a]] * others, hands, seed, team).deal_score
            difference = there - back
            counts = [int((difference > 0).sum()), int((difference == 0).sum()), int((difference < 0).sum())]
            self._results[_key(a, b)] = counts
            write_atomically(self._path, json.dumps({"format": FORMAT, "results": self._all}, indent=2) + "\n")

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
        sigma: dict[str, float] = {}
        for _ in range(ROUNDS):
            for number in order.permutation(len(matches)):
                a, b, result = matches[number]
                scores = [result, 1.0 - result]
                (rating[a],), (rating[b],) = model.rate([[rating[a]], [rating[b]]], scores=scores)
            # Of the first round: results that are gone through again teach nothing new.
            sigma = sigma or {name: one.sigma for name, one in rating.items()}
        ranks = [
            Rank(
                name=_shown(name),
                rating=one.mu,
                interval=(one.mu - 1.96 * sigma[name], one.mu + 1.96 * sigma[name]),
                deals=deals[name],
                won=won[name] / max(1, deals[name]),
            )
            for name, one in rating.items()
        ]
        return sorted(ranks, key=lambda rank: -rank.rating)


def _shown(player: str) -> str:
    """A player's name without the digest of its weights."""
    return re.sub(f"#[0-9a-f]{{{DIGEST}}}$", "", player)


def _key(a: str, b: str) -> str:
    return f"{a} vs {b}"
