"""An external game's rows without its envs: made up, so that kernels are compiled before any env is played."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.board import Board, Ledger
from maple.core.spec import GameSpec
from maple.core.step import Outcome, Step
from maple.games.external.game import ExternalGame

__all__ = ["BlankArena"]

LENGTH = 4  # steps of a game


class BlankArena:
    """Tables at which everybody sees noise, may do everything and earns nothing; every other game is cut off."""

    def __init__(self, game: ExternalGame, tables: int, seed: int, tables_per_deal: int = 1) -> None:
        self.spec: GameSpec = game.spec
        self.tables = tables
        self._board = board = Board(bytearray(Board.size(game.spec, tables, 1)), game.spec, tables, 1)
        self._ledger = Ledger(board, game.spec, game.plan, 0)
        layout, rng = game.plan.layout, np.random.default_rng(seed)
        for view in (board.view, board.last_view):
            layout.observation_of(view)[:] = rng.integers(0, 2, (tables, game.spec.seats, layout.observation))
            layout.flag_of(view)[:] = 1
            if layout.masked:
                layout.mask_of(view)[:] = True
        board.waiting[:] = True
        self._steps = 0

    def recv(self) -> Step:
        """A decision of every seat at every table; every game that the last send() ended."""
        return self._ledger.read(0, self.tables, self._steps > 0)

    def send(self, action: NDArray[Any]) -> None:
        """Go on."""
        self._ledger.answer(action)
        self._steps += 1
        over = self._steps % LENGTH == 0
        ended = self._board.ended
        ended["how"] = np.where(np.arange(self.tables) % 2, Outcome.TRUNCATED, Outcome.TERMINATED) if over else 0
        ended["hands"], ended["length"] = 1, LENGTH
        self._board.game += over

    def state(self) -> dict[str, NDArray[Any]]:
        """The games' numbers."""
        return {"game": self._ledger.game.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Begin the games after those."""
        self._ledger.game[:] = state["game"]
        self._ledger.lose(np.arange(self.tables))

    def close(self) -> None:
        """Nothing was started."""
