"""Games that play themselves in another program, which also encodes what each seat sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maple.games.rewards import Ledger

__all__ = ["Bridged", "Program"]


@dataclass(frozen=True, slots=True)
class Program:
    """How to start the other program, what to tell it first, and the records it writes."""

    command: tuple[str, ...]  # three descriptors are appended: commands, answers, shared block
    rules: Mapping[str, Any]  # sent as JSON
    schema: str  # a hash of the layout that both sides must agree on
    row: np.dtype[np.void]  # a waiting decision: epoch, table, game, decision, seat, earned (by component), view
    ended: np.dtype[np.void]  # a finished game: epoch, table, game, outcome, earned, last_view and its own figures
    pooled: bool = True  # whether it pays to have several processes, and to replace them


@runtime_checkable
class Bridged(Protocol):
    """A game whose tables live in another program."""

    def program(self, seed: int, tables_per_deal: int) -> Program:
        """The program that plays this game's tables."""

    def ledger(self, tables: int) -> Ledger:
        """What makes rewards of what seats earned; the other program knows no weights."""

    def figures(self, ended: NDArray[Any], reward: NDArray[Any], parts: NDArray[Any]) -> NDArray[Any]:
        """Finished games as records of spec.figures, with their last rewards and the sub-totals of all."""

    def refuse(self, failure: Mapping[str, Any]) -> Exception:
        """What to raise for a failure that the program reports of its own configuration."""

    def remark(self, said: Mapping[str, Any]) -> str:
        """What a user should know of how the program plays, by what it said of itself; empty if that is nothing."""
