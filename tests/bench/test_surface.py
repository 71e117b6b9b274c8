"""What is known of settings from few slices: against the same sums done plainly, and where the answer is obvious."""

from __future__ import annotations

import numpy as np
import pytest

from maple.bench.surface import DRIFT, DRIFT_SLICES, LEVEL, OWN, RELIEF, Surface

PLACES = np.array([[0.0], [0.5], [1.0], [6.0]])


def _filled(speeds: list[tuple[int, float]]) -> Surface:
    surface = Surface(PLACES)
    for setting, speed in speeds:
        surface.add(setting, speed)
    return surface


def _plain(slices: list[tuple[int, float]], noise: float) -> tuple[list[float], list[float]]:
    """Mean of each setting and deviation from the first, entry by entry, with the inverse written out."""

    def goes_with(one: int, other: int) -> float:
        apart = float(np.sum((PLACES[one] - PLACES[other]) ** 2))
        return RELIEF**2 * np.exp(-apart / 2) + OWN**2 * (one == other)

    logs = np.log([speed for _, speed in slices])
    cov = np.empty((len(slices), len(slices)))
    for i, (one, _) in enumerate(slices):
        for j, (other, _) in enumerate(slices):
            drift = DRIFT**2 * np.exp(-(((i - j) / DRIFT_SLICES) ** 2) / 2)
            cov[i, j] = goes_with(one, other) + drift + LEVEL**2 + noise**2 * (i == j)
    inverse = np.linalg.inv(cov)
    means, doubts = [], []
    first = np.array([goes_with(0, other) for other, _ in slices])
    for setting in range(len(PLACES)):
        row = np.array([goes_with(setting, other) for other, _ in slices])
        means.append(float(row @ inverse @ (logs - np.median(logs))))
        alone = 2 * (RELIEF**2 + OWN**2) - 2 * goes_with(setting, 0)
        doubts.append(float(np.sqrt(max(0.0, alone - (row - first) @ inverse @ (row - first)))))
    return means, doubts


def test_it_is_the_plain_sum_where_no_slice_is_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maple.bench.surface.NOISES", (0.05,))
    monkeypatch.setattr("maple.bench.surface.ROUNDS", 1)  # all slices weigh the same
    slices = [(0, 100.0), (1, 104.0), (0, 101.0), (2, 90.0), (1, 103.0)]
    known = _filled(slices).known()
    means, doubts = _plain(slices, 0.05)
    np.testing.assert_allclose(known.mean, means, atol=1e-9)
    np.testing.assert_allclose(known.doubt(0), doubts, atol=1e-9)


def test_neighbours_are_known_from_each_other_and_far_ones_are_not() -> None:
    known = _filled([(0, 100.0), (0, 100.0), (2, 80.0), (2, 80.0)]).known()
    assert known.mean[0] > known.mean[1] > known.mean[2]
    doubt = known.doubt(0)
    assert doubt[0] == 0.0
    assert doubt[2] < doubt[1] < doubt[3]
    assert doubt[3] > 0.9 * RELIEF


def test_one_slice_that_was_taken_away_hardly_counts() -> None:
    quiet = [(0, 100.0), (2, 90.0)] * 8
    taken = [*quiet[:8], (0, 55.0), *quiet[9:]]
    before, after = _filled(quiet).known().mean, _filled(taken).known().mean
    assert after[0] - after[2] == pytest.approx(before[0] - before[2], abs=0.02)  # the mean would be off by 0.075


def test_a_machine_that_slows_down_slows_all_alike() -> None:
    slices = [(n % 2, 100.0 * 0.98**n * (1.0 if n % 2 == 0 else 0.9)) for n in range(24)]
    known = _filled(slices).known()
    assert known.mean[1] - known.mean[0] == pytest.approx(np.log(0.9), abs=0.02)
