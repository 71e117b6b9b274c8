"""An env whose options are described, for networks that score options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.spec import OptionSpec
from maple.core.step import Options
from maple.games.external.game import EnvArguments, ExternalGame


class DescribedEnv(ExternalGame):
    """An env of zeros and ones. Options share what is seen, a feature for each one, and have their number as a part."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        super().__init__(name, EnvArguments(**arguments))
        seen, actions = self.spec.observation, self.spec.actions
        self._seen = seen
        options = OptionSpec(
            features=seen + actions,
            option_parts=1,
            max_parts=actions,
            part_width=1,
            shared_width=seen,
            state_width=seen + 1,
            max_options=actions,
        )
        self.spec = replace(self.spec, options=options)

    def describe(self, view: NDArray[np.uint64], options: Options, lo: int, hi: int) -> None:
        """Writes all of options but offset."""
        masks = self.plan.layout.mask_of(np.ascontiguousarray(view))
        self.describe_state(view, options.shared, options.shared_length, lo, hi)
        for row in range(lo, hi):
            legal, first = np.flatnonzero(masks[row]), options.offset[row]
            own = slice(first, options.offset[row + 1])
            options.action[own] = legal
            options.option_part[own, 0] = first + np.arange(len(legal))
            options.part[own, 0] = self._seen + legal
            options.part_length[own] = 1

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None:
        """Writes feature, length."""
        seen = self.plan.layout.observation_of(np.ascontiguousarray(view))
        for row in range(lo, hi):
            there = np.flatnonzero(seen[row])
            length[row] = len(there)
            feature[row, : len(there)] = there

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None:
        """Writes feature, length."""
        self.describe_state(view, feature, length, lo, hi)
        feature[np.arange(lo, hi), length[lo:hi]] = self._seen + action[lo:hi]
        length[lo:hi] += 1
