"""How fast settings are, from few noisy measurements on a machine whose own speed drifts.

The logarithm of a speed is taken as the sum of four parts: a surface that is smooth over settings, a little that each
setting has of its own, a drift that is smooth in time, and noise with heavy tails (a slice during which somebody else
had the core). All are Gaussian processes, so what is known of every setting, measured or not, has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Known", "Surface"]

Floats = NDArray[np.float64]

RELIEF = 0.8  # how far settings lie apart, in logarithms of speed
OWN = 0.015  # of a setting that its neighbours do not tell of
LEVEL = 0.5  # of the machine
DRIFT, DRIFT_SLICES = 0.15, 12.0  # of the machine, and over how many slices it keeps
NOISES = (0.02, 0.04, 0.08, 0.15)  # of a slice; the likeliest is taken
TAILS = 4.0  # degrees of freedom of the noise
FLOOR = 1.2  # below the fastest: how slow the slow ones are would only bend the surface
ROUNDS = 3  # of weighing slices by how far off they are


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of each setting."""

    mean: Floats  # (S,) logarithm of its speed, up to a constant
    seen: Floats  # (N, S) what the slices took away from what was open before
    places: Floats  # (S, D)

    def doubt(self, other: int) -> Floats:
        """(S,) Standard deviations of the differences to another: all share what is not known of the machine."""
        own: Floats = RELIEF**2 + OWN**2 - np.square(self.seen).sum(axis=0)
        both = _alike(self.places, np.array([other]))[0] - self.seen[:, other] @ self.seen
        doubt: Floats = np.sqrt(np.maximum(own + own[other] - 2 * both, 0.0))
        doubt[other] = 0.0
        return doubt


class Surface:
    """Learns from one slice at a time; `places` (S, D) are settings in coordinates where one is a step that matters."""

    def __init__(self, places: Floats) -> None:
        self._places = places
        self._measured: list[int] = []
        self._speeds: list[float] = []

    def add(self, setting: int, speed: float) -> None:
        """A slice of a setting, in the order of time."""
        self._measured.append(setting)
        self._speeds.append(np.log(max(speed, 1e-9)))

    def known(self) -> Known:
        """Of all settings, after at least one slice."""
        measured = np.array(self._measured)
        speeds = np.array(self._speeds)
        speeds = np.maximum(speeds, speeds.max() - FLOOR)
        off = speeds - np.median(speeds)
        time = np.arange(len(off))
        drift = DRIFT**2 * np.exp(-0.5 * np.square((time[:, None] - time) / DRIFT_SLICES))
        alike = _alike(self._places, measured)
        root, whitened = _fit(alike[:, measured] + drift + LEVEL**2, off)
        seen = np.asarray(np.linalg.solve(root, alike), np.float64)
        return Known(seen.T @ whitened, seen, self._places)


def _alike(places: Floats, some: NDArray[np.int64]) -> Floats:
    """(some, S) How the speeds of some settings go with all before anything is measured."""
    apart = np.square(places[some, None, :] - places[None, :, :]).sum(axis=2)
    return np.asarray(RELIEF**2 * np.exp(-0.5 * apart) + OWN**2 * (some[:, None] == np.arange(len(places))))


def _fit(signal: Floats, off: Floats) -> tuple[Floats, Floats]:
    """The root of the covariance with the likeliest noise, and what was seen in units of it.

    Slices far off weigh less: noise of Student's t as Gaussian noise of a size of its own for each slice.
    """
    weight = np.ones(len(off))
    for _ in range(ROUNDS):
        fits = [_whiten(signal, off, noise**2 / weight) for noise in NOISES]
        likelihoods = [-0.5 * white @ white - np.log(np.diag(root)).sum() for root, white in fits]
        best = int(np.argmax(likelihoods))
        root, white = fits[best]
        residual = np.linalg.solve(root.T, white) * NOISES[best] ** 2 / weight
        weight = (TAILS + 1) / (TAILS + np.square(residual / NOISES[best]))
    return root, white


def _whiten(signal: Floats, off: Floats, noise: Floats) -> tuple[Floats, Floats]:
    root = np.asarray(np.linalg.cholesky(signal + np.diag(noise)), np.float64)
    return root, np.asarray(np.linalg.solve(root, off), np.float64)
