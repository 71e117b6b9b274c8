"""The statistics of the gate: quantiles, intervals, and what is decided on what evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maple.bench.gate import Evidence, Limits, Paired, decide, paired_difference, seed_interval, t_quantile
from maple.core.spec import Metric

LIMITS = Limits(speed_up=1.10, margin=0.5, seeds=6)


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 4, 2.7764), (0.99, 10, 2.7638), (0.025, 2, -4.3027)],
)
def test_quantiles_are_those_of_the_tables(probability: float, freedom: int, expected: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(expected, abs=2e-4)


def test_the_interval_is_over_seeds_and_no_narrower_than_the_games() -> None:
    mean, (low, high) = seed_interval([1.0, 2.0, 3.0])
    assert (mean, high - mean) == (2.0, pytest.approx(4.3027 / math.sqrt(3), abs=1e-3))
    assert low == pytest.approx(4.0 - high)
    _, (low, high) = seed_interval([2.0, 2.0, 2.0], least_error=0.1)
    assert high - low == pytest.approx(2 * 4.3027 * 0.1, abs=1e-3)
    assert seed_interval([2.0])[1] == (-math.inf, math.inf)
    assert seed_interval([2.0], least_error=0.1)[1] == pytest.approx((2 - 0.196, 2 + 0.196), abs=1e-3)


def test_pairing_leaves_out_what_the_deals_share() -> None:
    rng = np.random.default_rng(0)
    luck, ones = rng.normal(0, 10, 4000), np.ones(4000)
    base, candidate = luck + rng.normal(0, 1, 4000), luck + 0.3 + rng.normal(0, 1, 4000)
    found = paired_difference(base, ones, candidate, ones, 8000)
    assert found.difference == pytest.approx(float((candidate - base).mean()))
    assert found.error == pytest.approx(float(np.std(candidate - base, ddof=1)) / math.sqrt(4000))
    weights = rng.integers(1, 4, 4000).astype(float)
    by_hand = (candidate * weights).sum() / weights.sum() - (base * weights).sum() / weights.sum()
    assert paired_difference(base * weights, weights, candidate * weights, weights, 1).difference == pytest.approx(
        by_hand
    )


def _seen(ratios: list[float], duels: list[float], against: list[float] | None = None) -> Evidence:
    rows = [Paired(d, 0.02, 1000) for d in duels]
    bots = {"random": [Paired(d, 0.02, 1000) for d in against]} if against else {}
    return Evidence([100.0] * len(ratios), [100.0 * r for r in ratios], rows, bots)


@pytest.mark.parametrize(
    ("ratios", "duels", "verdict", "reason"),
    [
        ([0.99, 1.0, 1.01, 1.0, 1.0], [0.0], "reject", "throughput failed"),
        ([1.5, 1.6, 1.4, 1.5, 1.5], [-9.0, -9.1, -8.9], "reject", "strength failed"),
        ([1.5, 1.6, 1.4, 1.5, 1.5], [0.2, 0.21, 0.19], "adopt", "at least"),
        ([1.5, 1.6, 1.4, 1.5, 1.5], [0.2, 0.21], "undecided", "strength not clear"),
        ([1.5, 1.6, 1.4, 1.5, 1.5], [0.9, -0.9, 0.0], "undecided", "strength not clear"),
        ([1.0, 1.2, 1.0, 1.2, 1.3], [0.2, 0.21, 0.19], "undecided", "throughput not clear"),
        ([1.5, 1.5], [0.2, 0.21, 0.19], "undecided", "throughput not clear"),
    ],
)
def test_what_is_decided(ratios: list[float], duels: list[float], verdict: str, reason: str) -> None:
    found = decide(_seen(ratios, duels), LIMITS)
    assert found.verdict == verdict
    assert reason in found.reason
    assert found.exit_code == {"adopt": 0, "reject": 1, "undecided": 3}[verdict]
    assert (found.more_games > 0) == (verdict == "undecided")


@pytest.mark.parametrize("duels", [[0.0, 0.0, 0.0], [0.5, -0.5, 0.0]])
def test_sides_that_are_just_as_strong_are_undecided_without_a_margin(duels: list[float]) -> None:
    found = decide(_seen([1.5] * 5, duels), Limits(speed_up=0.0, margin=0.0, seeds=6))
    assert found.verdict == "undecided"
    assert found.more_games > 0


def test_an_env_may_lose_a_share_of_what_the_base_makes() -> None:
    seen = _seen([1.5] * 5, [0.0, 0.1, -0.1])
    limits = Limits.of(Metric("return", 0.0), seeds=6)
    assert decide(seen, limits.beside(0.0)).verdict == "undecided"
    assert decide(seen, limits.beside(-200.0)).verdict == "adopt"
    assert limits.beside(-200.0).margin == 4.0
    assert Limits.of(Metric("win_rate", 0.02)).beside(0.9) == Limits(1.10, 0.02, 6)
    assert Limits.of(Metric("return", 0.0), margin=0.0).beside(9.0).margin == 0.0  # as it was asked for


def test_fixed_opponents_can_reject_too() -> None:
    found = decide(_seen([1.5] * 5, [0.2, 0.21, 0.19], [-3.0, -3.1, -2.9]), LIMITS)
    assert found.verdict == "reject"
    assert "against random" in found.reason


def test_equal_sides_are_hardly_ever_adopted_and_clear_ones_nearly_always() -> None:
    rng = np.random.default_rng(1)

    def verdicts(speed: float, strength: float) -> list[str]:
        answers = []
        for _ in range(40):
            seen, verdict = _seen([], []), "undecided"
            while verdict == "undecided" and len(seen.duels) < LIMITS.seeds:
                slices = rng.normal(speed, 0.05, 5)
                seen.base_speeds += [100.0] * 5
                seen.candidate_speeds += list(100 * slices)
                seen.duels.append(Paired(float(rng.normal(strength, 0.15)), 0.1, 1000))
                verdict = decide(seen, LIMITS).verdict
            answers.append(verdict)
        return answers

    assert verdicts(1.0, 0.0).count("adopt") == 0
    assert verdicts(1.4, -0.5).count("adopt") <= 4  # exactly at the margin: one in twenty at most, and some luck
    assert verdicts(1.4, 0.3).count("adopt") >= 30
    assert verdicts(1.4, -3.0).count("reject") >= 38
