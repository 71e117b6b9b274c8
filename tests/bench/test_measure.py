"""The measuring itself: order, ratios, one at a time."""

from __future__ import annotations

import threading

import pytest

from maple.bench.measure import interleave, machine, machine_lock, ratio_interval


def test_slices_alternate_and_the_first_pair_is_dropped() -> None:
    calls: list[str] = []
    speeds = iter(range(100))

    def side(name: str) -> float:
        calls.append(name)
        return float(next(speeds))

    a, b = interleave(lambda: side("A"), lambda: side("B"), 3)
    assert "".join(calls) == "ABBAABBA"
    assert a == [3.0, 4.0, 7.0]
    assert b == [2.0, 5.0, 6.0]


def test_the_ratio_is_the_median_with_an_interval_around_it() -> None:
    ratio, (low, high) = ratio_interval([10, 20, 30, 40, 200], [10, 10, 10, 10, 10])
    assert ratio == 3.0
    assert low <= ratio <= high
    assert (low, high) == pytest.approx((1.0, 20.0))
    assert ratio_interval([4, 4, 4], [2, 2, 2]) == (2.0, (2.0, 2.0))


def test_only_one_measurement_at_a_time() -> None:
    told: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with machine_lock(told.append):
            entered.set()

    with machine_lock(told.append):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert not entered.wait(0.3)
    assert entered.wait(10)
    waiting.join()
    assert any("another measurement" in text for text in told)


def test_a_figure_names_its_machine() -> None:
    about = machine()
    assert about["versions"]["torch"]
    assert about["python"]
