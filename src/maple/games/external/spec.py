"""The spec of an environment: what is known of it once it has been examined."""

from __future__ import annotations

import numpy as np

from maple.core.spec import GameSpec, Metric
from maple.games.external.plan import Plan

__all__ = ["spec_of"]


def _figures(seats: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("how", np.int8),
            ("hands", np.int32),
            ("length", np.int32),
            ("reward", np.float32, (seats, 1)),
            ("score", np.float64, (seats,)),
        ],
        align=True,
    )


def spec_of(plan: Plan) -> GameSpec:
    """Sizes and names."""
    layout = plan.layout
    return GameSpec(
        name=plan.name,
        seats=plan.seats,
        actions=layout.actions,
        observation=layout.observation,
        view=layout.words,
        signals=("reward",),
        figures=_figures(plan.seats),
        opponents=("random",),
        metric=Metric("return" if plan.seats == 1 else "points_per_game", 0.0),
        dtype=layout.dtype,
        entities=plan.entities,
        energy=plan.energy,
    )
