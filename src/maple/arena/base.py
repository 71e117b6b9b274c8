"""The one way to play: recv() hands out decisions, send() takes the actions."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from maple.core.spec import GameSpec
from maple.core.step import Step

__all__ = ["Arena"]


class Arena(Protocol):
    """Tables that play wherever they run: in this process, in workers, in another program."""

    @property
    def spec(self) -> GameSpec:
        """The game that is played."""

    @property
    def tables(self) -> int:
        """How many tables there are."""

    def recv(self) -> Step:
        """Every decision that waits, and every game that ended; arrays are valid until send()."""

    def send(self, action: NDArray[Any]) -> None:
        """Answer every row of the last Step, in its order."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that restore every table, between send() and recv()."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""

    def close(self) -> None:
        """End what the arena started."""
