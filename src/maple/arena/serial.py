"""The arena for external games in the trainer's own process: the plain loop, for envs too cheap for workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.board import Board, Ledger
from maple.arena.host import Host
from maple.core.spec import GameSpec
from maple.core.step import Step
from maple.games.external.game import ExternalGame
from maple.perf.spans import span

__all__ = ["SerialArena"]


class _Aside:
    """While an env does something: what it prints goes to stderr, since stdout is for results.

    Not a function that calls another: envs ran 3-5 % slower below one, whatever they did.
    """

    def __enter__(self) -> None:
        self._own, sys.stdout = sys.stdout, sys.stderr

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._own


class SerialArena:
    """Tables of an external game, played one after the other. An env that ends the process or hangs is not survived.

    `host` has the envs ready, if somebody made them ahead; `at`, of one number, is told which table is being played;
    `memory`, of Board.size() bytes, is where somebody else reads along.
    """

    def __init__(
        self,
        game: ExternalGame,
        tables: int,
        seed: int,
        *,
        first_table: int = 0,
        tables_per_deal: int = 1,
        max_deaths: int = 20,
        log: Callable[[str], None] = lambda _: None,
        host: Host | None = None,
        at: Any = None,
        memory: Any = None,
    ) -> None:
        self.spec: GameSpec = game.spec
        self.tables = tables
        room = bytearray(Board.size(game.spec, tables, 1)) if memory is None else memory
        self._board = Board(room, game.spec, tables, 1)
        self._ledger = Ledger(self._board, game.spec, game.plan, first_table)
        arguments = game.settings.model_dump()
        self._aside = _Aside()
        with self._aside:
            self._host = host or Host(game.spec.name, arguments, tables, seed, max_deaths, log)
            self._host.take(self._board, list(range(tables)), first_table, tables_per_deal, at)
        self._begun = self._any_ended = False

    def recv(self) -> Step:
        """Every waiting decision of every table; every game that the last send() ended."""
        if not self._begun:
            with self._aside:
                self._any_ended = self._host.begin(0, self.tables)
            self._begun = True
        return self._ledger.read(0, self.tables, self._any_ended)

    def send(self, action: NDArray[Any]) -> None:
        """Play."""
        self._ledger.answer(action)
        with self._aside:
            self._any_ended = self._host.play(0, self.tables)

    def state(self) -> dict[str, NDArray[Any]]:
        """The games' numbers: an env itself cannot be saved."""
        return {"game": self._ledger.game.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Give up the games that were in flight and go on with the next ones."""
        self._ledger.game[:] = state["game"]
        self._ledger.lose(np.arange(self.tables))

    def close(self) -> None:
        """Close the envs."""
        with span("env_close"), self._aside:
            self._host.close()

    def __enter__(self) -> SerialArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
