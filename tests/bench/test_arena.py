"""Benches of arenas: what they report, and a short run of faults with nothing left behind."""

from __future__ import annotations

import json

import pytest

from maple.arena.choose import choose_workers
from maple.bench.arena import bench_arena, overhead_us
from maple.bench.faults import bench_faults
from maple.core.config import WorkerConfig
from tests.cli.command import maple, maple_alone


def test_every_side_is_measured() -> None:
    (found,) = bench_arena([0.0], envs=4, workers=1, peers=False, seconds=0.2, tell=lambda _: None)
    sides = {"maple", "auto", "serial", "limit", "unmasked"}
    assert sides <= found.keys()
    assert all(found[side]["steps_per_s"] > 0 for side in sides)
    ratios = {"maple_over_serial", "maple_over_limit", "maple_over_unmasked", "auto_over_serial"}
    assert ratios == found["ratios"].keys()


def test_overhead_is_what_a_step_takes_more_than_where_plain_loops_keep_the_cores_as_busy() -> None:
    speeds = {"maple": [100e3, 50e3, 80e3], "limit": [125e3, 100e3, 80e3]}  # 20 for 16 µs, 40 for 20, 25 for 25
    assert overhead_us(speeds, workers=2) == pytest.approx(4.0)


def test_the_command_tells_of_every_side_and_every_ratio() -> None:
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    words = ["--step-cost-us", "0", "--envs", "2", "--seconds", "0.2", "--peers", "--seed", "7", "--json"]
    done = maple_alone("bench", "arena", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    sides = ("maple", "auto", "serial", "gymnasium_async", "sb3_subproc")
    assert all(found[side]["steps_per_s"] > 0 for side in sides)
    for ratio in (f"maple_over_{side}" for side in ("serial", "gymnasium_async", "sb3_subproc")):
        low, high = found["ratios"][ratio]["ratio_ci95"]
        assert low <= found["ratios"][ratio]["ratio"] <= high
    assert "auto_over_serial" in found["ratios"]
    assert (found["step_cost_us"], found["envs"], found["workers"], found["seed"]) == (0.0, 2, 2, 7)
    assert found["machine"]["cores"] >= 1


def test_without_a_step_cost_there_is_a_list_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maple.bench.arena.STEP_COSTS_US", (0.0, 10.0))
    done = maple("bench", "arena", "--envs", "2", "--workers", "1", "--seconds", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [found["step_cost_us"] for found in results] == [0.0, 10.0]
    assert all({"maple", "serial", "ratios", "seed"} <= found.keys() for found in results)


def test_actors_are_measured_in_turns_with_the_trainer() -> None:
    small = [f"--set={one}" for one in ("ppo.horizon=32", "ppo.minibatch=16", "ppo.epochs=1", "net.hidden=[8]")]
    words = ["--step-cost-us", "0", "--envs", "2", "--actors", "1", "--seconds", "0.2", "--seed", "3", "--json"]
    done = maple("bench", "actors", *words, *small)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [len(found[side]["slices"]) for side in ("trainer", "actors")] == [5, 5]
    assert found["ratio_ci95"][0] <= found["ratio"] <= found["ratio_ci95"][1]
    assert found["seed"] == 3


def test_faults_leave_nothing_behind() -> None:
    found = bench_faults(20, tables=8, workers=2, tell=lambda _: None, seed=5)
    assert found["seed"] == 5
    assert found["faults"] >= 20
    assert found["kinds"]["raised"] > 0
    assert found["sent"]["SIGKILL"] > 0
    assert found["spares"] == WorkerConfig().spares
    assert found["worker_deaths"] > 0
    assert found["finished_games"] > 0
    assert (found["corrupted_rows"], found["leaked_processes"], found["leaked_descriptors"]) == (0, 0, 0)


def test_workers_are_chosen_by_cost() -> None:
    assert choose_workers(1e-6, tables=32, cores=2) == 0
    assert choose_workers(200e-6, tables=32, cores=2) == 2
    assert choose_workers(1e-3, tables=32, cores=8) == 8
    assert choose_workers(1e-3, tables=32, cores=1) == 0
    assert choose_workers(1e-3, tables=2, cores=8) == 2
