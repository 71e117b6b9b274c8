"""The one way to play: recv() hands out decisions, send() takes the actions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maple.core.errors import ActionError
from maple.core.spec import GameSpec
from maple.core.step import Keys, Step

__all__ = ["HOLD", "Arena", "refuse_illegal"]

HOLD = -(2**15)  # an answer that leaves its table as it is, in games of several seats: what is asked there comes again


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
        """Answer every row of the last Step, in its order; HOLD, in all rows of a table, leaves it as it is."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that restore every table, between send() and recv()."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""

    def close(self) -> None:
        """End what the arena started."""


def refuse_illegal(spec: GameSpec, keys: Keys, mask: NDArray[np.bool_], action: NDArray[Any]) -> None:
    """Raise ActionError for the first action that its row's mask forbids."""
    chosen = np.asarray(action)
    if len(chosen) != len(keys):
        raise ActionError(f"send() got {len(chosen)} actions for a Step of {len(keys)} rows; give one for each")
    known = (chosen >= 0) & (chosen < spec.actions)
    legal = (known & mask[np.arange(len(chosen)), np.where(known, chosen, 0)]) | (chosen == HOLD)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        raise ActionError(
            f"action {int(chosen[row])} is not legal for seat {int(keys.seat[row])} at table "
            f"{int(keys.table[row])} of {spec.name}; choose one where step.mask[{row}] is true"
        )
