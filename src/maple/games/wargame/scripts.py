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
    FREED,
    GAIN,
    LANDING,
    LATER,
    LOSS,
    NEAR,
    PROMISES,
    PULL,
    RISK,
    RUSHES,
    SHOOTERS,
    SHOT_VALUE,
    TACTIC,
    VALUE,
    WAIT,
)

__all__ = ["SCRIPTS", "weights"]

_ORDERLY = {WAIT: -1.0, TACTIC: -1.0}
_DAMAGE = {SHOT_VALUE: 1.0, CHARGE_VALUE: 1.0, NEAR: -0.05, VALUE: 1.0}
# Found by an evolution of weights over some hundred thousand games against greedy, tactician and racer.
_MOVES = {
    SHOT_VALUE: 1.13,
    CHARGE_VALUE: 1.27,
    LATER: 0.07,
    FIRE: -0.05,
    CLASH: -0.1,
    LOSS: -1.1,
    SHOOTERS: 0.25,
    GAIN: 4.2,
    PULL: 3.6,
    NEAR: -0.09,
    RUSHES: -0.18,
}
_ATTACKS = {VALUE: 1.0, RISK: -0.21, FREED: 1.3, LANDING: 1.2}
SCRIPTS: dict[str, dict[int, float]] = {
    "charger": {NEAR: -1.0, RUSHES: -0.5, VALUE: 100.0, **_ORDERLY},
    "greedy": {**_DAMAGE, CHARGE_VALUE: 0.5, RUSHES: -0.1, RISK: -1.0, **_ORDERLY},
    "racer": {**_DAMAGE, GAIN: 6.0, PULL: 3.0, RISK: -0.4, **_ORDERLY},
    "tactician": {**_DAMAGE, GAIN: 6.0, PULL: 3.0, RISK: -0.3, CLASH: -0.15, FIRE: -0.1, WAIT: -1.0, TACTIC: 0.5},
    "veteran": {**_MOVES, **_ATTACKS, WAIT: -1.7, TACTIC: 0.43},
}


def weights(name: str) -> NDArray[np.float32]:
    """A script as the kernels read it."""
    row = np.zeros(PROMISES, np.float32)
    for number, weight in SCRIPTS[name].items():
        row[number] = weight
    return row
