"""Who beat whom in the games of a run.

A result is between two seats of a game: whoever scored more beat the other. All results between fixed players count
alike. The learner changes, so of its results older ones count less and less; when it is frozen as a snapshot, the
snapshot's record begins with what the learner had just shown.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Records"]


class Records:
    """Results between players, a row and a column each; the learner is the first."""

    def __init__(self, players: int, window: int) -> None:
        self.games = np.zeros((players, players))  # results between row and column
        self.wins = np.zeros((players, players))  # of those, the row's; a draw is half a win
        self._window = window

    def add(self, player: NDArray[np.integer[Any]], score: NDArray[Any]) -> None:
        """Take in games: who had each seat (G, S) and its score (G, S).

        Of the learner's results against a player, those from before `window` newer ones count half.
        """
        games, wins = _count(player, score, len(self.games))
        kept = 0.5 ** (games[0] / self._window)
        for record in (self.games, self.wins):
            record[0] *= kept
            record[1:, 0] *= kept[1:]
        self.games += games
        self.wins += wins

    def freeze(self) -> None:
        """Add a player that is what the learner is now."""
        n = len(self.games)
        for name in ("games", "wins"):
            record: NDArray[np.float64] = np.pad(getattr(self, name), (0, 1))
            record[n, 1:n], record[1:n, n] = record[0, 1:n], record[1:n, 0]
            setattr(self, name, record)

    def admit(self, target: int, games: float, wins: float) -> None:
        """Add a player that is known by its results against `target`, which is what the learner is now."""
        n = len(self.games)
        self.games, self.wins = np.pad(self.games, (0, 1)), np.pad(self.wins, (0, 1))
        for other in (0, target):
            self.games[n, other] = self.games[other, n] = games
            self.wins[n, other], self.wins[other, n] = wins, games - wins

    def win_rate(self, players: NDArray[np.int64]) -> NDArray[np.float64]:
        """The learner's against each of `players`; two results that are not there, a win and a loss, count too."""
        rate: NDArray[np.float64] = (self.wins[0, players] + 1.0) / (self.games[0, players] + 2.0)
        return rate


def _count(player: NDArray[np.integer[Any]], score: NDArray[Any], n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Results (n, n) between row and column, and the row's wins, of games where two seats had different players."""
    games, wins = np.zeros(n * n), np.zeros(n * n)
    for a, b in permutations(range(player.shape[1]), 2):
        met = player[:, a] != player[:, b]
        cell = player[met, a].astype(np.int64) * n + player[met, b]
        won = (score[met, a] > score[met, b]) + 0.5 * (score[met, a] == score[met, b])
        games += np.bincount(cell, minlength=n * n)
        wins += np.bincount(cell, weights=won, minlength=n * n)
    return games.reshape(n, n), wins.reshape(n, n)
