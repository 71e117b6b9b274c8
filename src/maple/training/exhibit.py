"""One game between two players, with its record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.node import NodeArena
from maple.core.errors import GameError
from maple.games.contract import Game
from maple.training.evaluate import Player

__all__ = ["play_recorded"]


def play_recorded(game: Game, players: list[Player], seed: int) -> tuple[list[str], NDArray[Any]]:
    """The first game of `seed` with a player a seat: its log and its figures; `game` has to keep records."""
    with NodeArena(game, 1, seed, processes=1, spare=False, check=False) as arena:
        while True:
            step = arena.recv()
            if len(step.ended.table):
                if not arena.records:
                    raise GameError("the battle was lost before its end, and its log with it; try again")
                return list(arena.records[0]["lines"]), step.ended.figures[0]
            action = np.zeros(len(step.keys), np.int32)
            for row, seat in enumerate(step.keys.seat):
                rows = np.array([row])
                action[row] = players[seat](step.view[rows], step.keys.take(rows), seed)[0]
            arena.send(action)
