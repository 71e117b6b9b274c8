"""What a game is to everything that is not the game: sizes, names, how its results are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BYTES = np.dtype(np.uint8)

__all__ = ["EntityGroup", "GameSpec", "Metric", "OptionSpec"]


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """How a game describes its options: sizes of the arrays in `Options`."""

    features: int  # binary features that exist; a feature is a row of the first layer's weights
    option_parts: int  # parts that make up one option
    max_parts: int  # parts that one decision may have
    part_width: int  # features that one part may have
    shared_width: int  # features that a decision's options may share
    state_width: int  # features of a decision before any option is taken
    max_options: int  # options that one decision may have
    shares_all: bool = False  # whether what options share is all that there is to say before one is taken

    def part_rows(self, decisions: int, options: int) -> int:
        """Rows of parts that so many decisions with so many options have."""
        return options if self.option_parts == 1 else decisions * self.max_parts


@dataclass(frozen=True, slots=True)
class EntityGroup:
    """Things of one kind in an observation (cards, squads): `count` rows of `width` numbers each, one after the other.

    A row whose number `present` is 0 is padding; None says that all are always there. What one of `ordered` rows means
    depends on its place. Each of `actions` begins a block of actions that are about the rows: one for each, in their
    order.
    """

    name: str
    begin: int  # where the first row begins in the observation
    count: int
    width: int
    present: int | None = 0
    actions: tuple[int, ...] = ()
    ordered: bool = False

    @property
    def end(self) -> int:
        """Where the observation goes on after the last row."""
        return self.begin + self.count * self.width

    @property
    def pointing(self) -> list[int]:
        """All actions that are about the rows, block by block."""
        return [begin + row for begin in self.actions for row in range(self.count)]


@dataclass(frozen=True, slots=True)
class Metric:
    """The figure that a game is judged by, and how much of it a speed-up may cost."""

    name: str
    margin: float


@dataclass(frozen=True, slots=True)
class GameSpec:
    """A game as the arenas, networks and learners see it."""

    name: str
    seats: int
    actions: int  # A
    observation: int  # O, numbers of `dtype`
    view: int  # V, 64-bit words: all that a seat may know, from which everything else is encoded
    signals: tuple[str, ...]  # what a seat earns: the reward first, then what a learner may predict beside it
    figures: np.dtype[np.void]  # what is known of a finished game
    opponents: tuple[str, ...]
    metric: Metric
    options: OptionSpec | None = None
    dtype: np.dtype[Any] = BYTES  # of an observation: bytes or float32
    entities: tuple[EntityGroup, ...] = ()  # what an observation is made of, for networks with attention
    energy: float = 60.0  # what the squares of a typical observation add up to: the scale of a first layer's weights
