"""An agent that plays whoever challenges it on a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.node import NodeArena
from maple.core.step import Outcome
from maple.games.contract import Game
from maple.training.evaluate import Player

__all__ = ["host_battles", "played"]


def host_battles(
    game: Game,
    player: Player,
    at_a_time: int,
    seed: int,
    opened: Callable[[], None],
    ended: Callable[[NDArray[Any]], bool],
    keep: Callable[[Mapping[str, Any]], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Play seat 0 of every battle that `game`'s server brings, until `ended` answers False.

    `opened` is called once the server has taken the agent's name, `ended` with the figures of battles that are over,
    lost ones among them, `keep` with every anomaly, `log` with what happened to battles and processes. Battles under
    way at the end, or at a Ctrl-C, are given up.
    """
    with closing(NodeArena(game, at_a_time, seed, processes=1, check=False, log=log, keep=keep)) as arena:
        opened()
        while True:
            step = arena.recv()
            if not ended(step.ended.figures):
                return
            rows = len(step.keys)
            arena.send(player(step.view, step.keys, seed) if rows else np.zeros(0, np.int32))


def played(figures: NDArray[Any]) -> NDArray[np.float64]:
    """What the agent made of battles that were not lost on the way: 1 for a win, 0.5 for a tie."""
    whole = figures["how"] != Outcome.LOST
    score: NDArray[np.float64] = figures["score"][whole, 0].astype(np.float64)
    return score
