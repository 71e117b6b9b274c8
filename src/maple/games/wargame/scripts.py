"""The scripted opponents as weights over what options promise: each likes some things more than others.

An attack or a tactic is compared with holding, which promises nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maple.games.wargame.promise import (
    CHARGE_VALUE,
    CLASH,
    FIRE,
    GAIN,
    NEAR,
    PROMISES,
    PULL,
    RISK,
    RUSHES,
    SHOT_VALUE,
    TACTIC,
    VALUE,
    WAIT,
)

__all__ = ["SCRIPTS", "weights"]

_ORDERLY = {WAIT: -1.0, TACTIC: -1.0}
SCRIPTS: dict[str, dict[int, float]] = {
    "charger": {NEAR: -1.0, RUSHES: -0.5, VALUE: 100.0, **_ORDERLY},
    "greedy": {SHOT_VALUE: 1.0, CHARGE_VALUE: 1.0, NEAR: -0.05, RUSHES: -0.1, VALUE: 1.0, RISK: -0.5, **_ORDERLY},
    "racer": {
        GAIN: 20.0,
        PULL: 10.0,
        CHARGE_VALUE: 0.7,
        SHOT_VALUE: 0.7,
        NEAR: -0.02,
        VALUE: 1.0,
        RISK: -0.3,
        **_ORDERLY,
    },
    "tactician": {
        SHOT_VALUE: 1.0,
        CHARGE_VALUE: 1.0,
        FIRE: -0.2,
        CLASH: -0.25,
        GAIN: 10.0,
        PULL: 5.0,
        NEAR: -0.02,
        VALUE: 1.0,
        RISK: -0.4,
        WAIT: -1.0,
        TACTIC: 0.5,
    },
}


def weights(name: str) -> NDArray[np.float32]:
    """A script as the kernels read it."""
    row = np.zeros(PROMISES, np.float32)
    for number, weight in SCRIPTS[name].items():
        row[number] = weight
    return row
