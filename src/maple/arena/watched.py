"""An arena with somebody who looks on: everything is passed through, and what is to be noticed is overridden."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.core.spec import GameSpec
from maple.core.step import Step

__all__ = ["WatchedArena"]


class WatchedArena:
    """Plays as the arena within does."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    @property
    def spec(self) -> GameSpec:
        """The game that is played."""
        return self._arena.spec

    @property
    def tables(self) -> int:
        """How many tables there are."""
        return self._arena.tables

    def recv(self) -> Step:
        """What waits, and what ended."""
        return self._arena.recv()

    def send(self, action: NDArray[Any]) -> None:
        """Play."""
        self._arena.send(action)

    def state(self) -> dict[str, NDArray[Any]]:
        """What restores every table."""
        return self._arena.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""
        self._arena.restore(state)

    def close(self) -> None:
        """End what the arena started."""
        self._arena.close()
