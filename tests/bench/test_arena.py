"""Benches of arenas: what they report, and a short run of faults with nothing left behind."""

from __future__ import annotations

from maple.arena.choose import choose_workers
from maple.bench.arena import bench_arena
from maple.bench.faults import bench_faults
from maple.core.config import WorkerConfig


def test_every_side_is_measured() -> None:
    (found,) = bench_arena([0.0], envs=4, workers=1, peers=False, seconds=0.2, tell=lambda _: None)
    sides = {"maple", "auto", "serial", "limit", "unmasked"}
    assert sides <= found.keys()
    assert all(found[side]["steps_per_s"] > 0 for side in sides)
    ratios = {"maple_over_serial", "maple_over_limit", "maple_over_unmasked", "auto_over_serial"}
    assert ratios == found["ratios"].keys()


def test_faults_leave_nothing_behind() -> None:
    found = bench_faults(20, tables=8, workers=2, tell=lambda _: None)
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
