"""The part of a game that networks need: pure functions over rows [lo, hi) of views."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maple.core.spec import GameSpec
from maple.core.step import Options

__all__ = ["Encoder"]


class Encoder(Protocol):
    """Encodes views; every method releases the GIL and may run side by side on disjoint ranges."""

    @property
    def spec(self) -> GameSpec:
        """Sizes and names."""

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[Any], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None:
        """Encode rows [lo, hi). Writes observation, mask."""

    def count_options(self, view: NDArray[np.uint64], count: NDArray[np.int64], lo: int, hi: int) -> None:
        """How many options each row has. Writes count."""

    def describe(self, view: NDArray[np.uint64], options: Options, lo: int, hi: int) -> None:
        """Describe the options of rows [lo, hi), whose offsets are set. Writes all of options but offset."""

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None:
        """All features of the decision before any option is taken. Writes feature, length."""

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None:
        """All features of the one option that was taken. Writes feature, length."""

    def permute(
        self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64], lo: int, hi: int
    ) -> None:
        """Replace each row by an equivalent one (suits renamed, say), picked by `random`. Writes view, action."""
