"""Long runs and killed ones, in short versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maple.bench.kills import EVERY_S, bench_kills
from maple.bench.soak import Look, bench_soak, verdicts
from maple.core.errors import RunError
from maple.core.sources import load_config

TINY = ["tables=48", "net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=240"]
STEADY = [Look(float(minute), 40_000.0, 50.0, 800.0, 30, 3) for minute in range(60)]


def test_a_steady_run_is_flat_however_the_machine_breathes() -> None:
    breathing = [
        replace(look, steps_per_s=look.steps_per_s * pace, calibration=look.calibration * pace)
        for look, pace in zip(STEADY, [1.0, 0.7, 0.9] * 20, strict=True)
    ]
    found = verdicts(breathing)
    assert found["flat"] is True
    assert abs(found["speed_drift"]) < 1e-9


@pytest.mark.parametrize(
    ("field", "growth"), [("memory_mb", 1.0), ("steps_per_s", -60.0), ("descriptors", 1), ("processes", 1)]
)
def test_what_grows_or_slows_down_is_seen(field: str, growth: float) -> None:
    looks = [
        replace(look, **{field: getattr(look, field) + type(growth)(number * growth)})
        for number, look in enumerate(STEADY)
    ]
    assert verdicts(looks)["flat"] is False


def test_what_grows_while_warming_up_alone_is_flat() -> None:
    looks = [replace(look, memory_mb=500.0) if number < 10 else look for number, look in enumerate(STEADY)]
    assert verdicts(looks)["flat"] is True


def test_too_few_looks_say_nothing() -> None:
    assert verdicts(STEADY[:3])["flat"] is None


def test_a_real_run_is_looked_at(tmp_path: Path) -> None:
    config = load_config("ofc", settings=[*TINY, "minutes=0.05", "threads=1", "probe_every_s=0"])
    told: list[str] = []
    found = bench_soak(config, tmp_path / "soak", 0.5, told.append)
    assert len(found["looks"]) == len(told) >= 1
    assert all(look["memory_mb"] > 50 and look["steps_per_s"] > 0 for look in found["looks"])
    assert found["steps"] > 0


def test_a_killed_run_goes_on_each_time(tmp_path: Path) -> None:
    found = bench_kills("ofc", 3, TINY, tmp_path, 1, lambda _: None)
    assert found["last_exit_code"] == 0
    assert found["within_an_interval"]
    assert found["interval_s"] == EVERY_S
    assert found["steps"] > 0
    assert found["left_over"] == []


def test_a_run_that_cannot_start_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="did not go on"):
        bench_kills("ofc", 1, ["ppo.nonsense=1"], tmp_path, 2, lambda _: None)
