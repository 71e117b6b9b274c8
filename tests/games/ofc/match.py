"""Bots against each other on duplicate deals: every deal once with the first player in each seat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games.contract import Bot, Game

__all__ = ["Score", "play_match"]


@dataclass(frozen=True)
class Score:
    """What the first player made of the deals, a hand each; all rotations of a deal are one observation."""

    points: float
    error: float  # standard error of points
    foul: float
    royalty: float


def play_match(game: Game, player: Bot, others: Bot, deals: int, seed: int) -> Score:
    """Play single hands (fantasyland off): one `player`, all other seats `others`."""
    seats = game.spec.seats
    tables = deals * seats
    action = np.zeros(tables, np.int32)
    with Team(2) as team:
        arena = NativeArena(game, tables, seed, team, observations=False, check=False, tables_per_deal=seats)
        step = arena.recv()
        while not len(step.ended.table):
            for bot, rows in zip((player, others), _rows_of_each(step.keys.seat, step.keys.table, seats)):
                chosen = np.zeros(len(rows), np.int32)
                team.run(bot, len(rows), step.view[rows], seed, step.keys.take(rows), chosen, grain=4)
                action[rows] = chosen
            arena.send(action)
            step = arena.recv()
        figures, games = step.ended.figures, np.arange(tables)
    assert len(figures) == tables
    seat = games % seats
    points = figures["score"][games, seat].reshape(deals, seats).mean(1)
    return Score(
        points=float(points.mean()),
        error=float(points.std(ddof=1) / deals**0.5),
        foul=float(figures["fouls"][games, seat].mean()),
        royalty=float(figures["royalty"][games, seat].mean()),
    )


def _rows_of_each(
    seat: np.ndarray[tuple[int], np.dtype[np.int8]], table: np.ndarray[tuple[int], np.dtype[np.int32]], seats: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.intp]]]:
    first = seat == table % seats
    return np.flatnonzero(first), np.flatnonzero(~first)
