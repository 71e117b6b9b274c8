"""What crosses the border between a game and a trainer: decisions, options, ended games.

All arrays are views of buffers that the arena owns: valid until `send`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.spec import OptionSpec

__all__ = ["Ended", "Keys", "Options", "Outcome", "Step"]


class Outcome(IntEnum):
    """How a game ended."""

    PLAYING = 0
    TERMINATED = 1
    TRUNCATED = 2
    LOST = 3  # its process died: dropped from learning, counted


@dataclass(frozen=True, slots=True)
class Keys:
    """Who decides, and the how-manieth time: what a random draw for a row is keyed by."""

    table: NDArray[np.int32]  # (B,)
    game: NDArray[np.int64]  # (B,) how many games this table played before
    seat: NDArray[np.int8]  # (B,)
    decision: NDArray[np.int32]  # (B,) how many decisions the seat made before in this game

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: NDArray[np.intp]) -> Keys:
        """The keys of some rows, copied."""
        return Keys(self.table[rows], self.game[rows], self.seat[rows], self.decision[rows])


@dataclass(frozen=True, slots=True)
class Options:
    """Legal options described by features, as ragged rows: options offset[i] to offset[i + 1] belong to decision i.

    An option is the sum of what all options of its decision share and of a few parts, each a list of binary features.
    Parts of decision i start at i * max_parts, so that its options can share them. Where an option is one part, parts
    are rows like options: the memory that is touched does not grow with the most options that a decision may have.
    """

    offset: NDArray[np.int64]  # (B + 1,)
    action: NDArray[np.int16]  # (N,) the plain index of each option
    shared: NDArray[np.int16]  # (B, shared_width)
    shared_length: NDArray[np.int16]  # (B,)
    part: NDArray[np.int16]  # (B * max_parts, part_width), or (N, part_width) where an option is one part
    part_length: NDArray[np.int16]  # (B * max_parts,) or (N,)
    option_part: NDArray[np.int32]  # (N, option_parts) rows of `part`

    def lists(self) -> tuple[NDArray[Any], ...]:
        """All but the actions, as kernels of first layers take them."""
        lists = (self.shared, self.shared_length, self.part, self.part_length, self.option_part)
        return (self.offset, *lists)

    def of(self, lo: int, hi: int) -> Options:
        """Those of decisions [lo, hi), numbered from there."""
        begin, end = self.offset[lo], self.offset[hi]
        each = len(self.part) // max(1, len(self.shared))
        first, last = (begin, end) if self.option_part.shape[1] == 1 else (lo * each, hi * each)
        return Options(
            offset=self.offset[lo : hi + 1] - begin,
            action=self.action[begin:end],
            shared=self.shared[lo:hi],
            shared_length=self.shared_length[lo:hi],
            part=self.part[first:last],
            part_length=self.part_length[first:last],
            option_part=self.option_part[begin:end] - np.int32(first),
        )

    @staticmethod
    def allocate(spec: OptionSpec, decisions: int, options: int) -> Options:
        """Room for this many decisions and options."""
        parts = spec.part_rows(decisions, options)
        return Options(
            offset=np.zeros(decisions + 1, np.int64),
            action=np.zeros(options, np.int16),
            shared=np.zeros((decisions, spec.shared_width), np.int16),
            shared_length=np.zeros(decisions, np.int16),
            part=np.zeros((parts, spec.part_width), np.int16),
            part_length=np.zeros(parts, np.int16),
            option_part=np.zeros((options, spec.option_parts), np.int32),
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """A row for each game that ended since the last Step."""

    table: NDArray[np.int32]  # (G,)
    game: NDArray[np.int64]  # (G,)
    outcome: NDArray[np.int8]  # (G,) an Outcome
    reward: NDArray[np.float32]  # (G, seats, signals) each seat's last earnings, also of one that never acts again
    figures: NDArray[Any]  # (G,) records of the game's own figures, per seat where they have seats
    cut: NDArray[np.int64]  # (K,) which of these rows were truncated
    last_view: NDArray[np.uint64]  # (K, seats, V) the decision that each seat of those is left with, or zeros

    @staticmethod
    def join(parts: list[Ended]) -> Ended:
        """The rows of all of them, in their order."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(len(part.table) for part in parts[:-1])])
        return Ended(
            table=np.concatenate([part.table for part in parts]),
            game=np.concatenate([part.game for part in parts]),
            outcome=np.concatenate([part.outcome for part in parts]),
            reward=np.concatenate([part.reward for part in parts]),
            figures=np.concatenate([part.figures for part in parts]),
            cut=np.concatenate([part.cut + start for part, start in zip(parts, starts, strict=True)]),
            last_view=np.concatenate([part.last_view for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """Every decision that waits for an action, a row each, and every game that ended since the last Step."""

    keys: Keys
    view: NDArray[np.uint64]  # (B, V)
    reward: NDArray[np.float32]  # (B, signals) since this seat last acted; column 0 is the reward
    observation: NDArray[Any]  # (B, O) of the spec's dtype; (B, 0) where the arena was told not to write it
    mask: NDArray[np.bool_]  # (B, A); (B, 0) likewise
    options: Options | None  # where the arena was told to describe them
    ended: Ended
