"""Samples of the machine: few however long a run is, of every thread, and never held up by a driver that hangs."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from maple.perf.system import SystemSampler, _switches, merge_samples, summarize_samples, switches_of


def _sample(at: float, cpu: float, memory: int, **more: Any) -> dict[str, Any]:
    return {
        "at": at,
        "spans": {"env_step": at},
        "cpu_per_core": [cpu, cpu + 20],
        "cpu_per_process": {"1": cpu},
        "memory_bytes": memory,
        "context_switches": int(10 * at),
        "threads": 3,
        **more,
    }


def test_two_samples_become_one() -> None:
    gpu = {"gpu_percent": [10.0], "gpu_memory_mib": [500.0]}
    later = {"cpu_per_process": {"1": 50.0, "2": 30.0}, "gpu_percent": [30.0], "gpu_memory_mib": [400.0]}
    merged = merge_samples(_sample(1.0, 10.0, 700, **gpu), _sample(2.0, 30.0, 600, **later))
    assert merged == {
        **_sample(2.0, 20.0, 700),
        "cpu_per_process": {"1": 30.0, "2": 15.0},
        "gpu_percent": [20.0],
        "gpu_memory_mib": [500.0],
    }
    found = summarize_samples([merged])
    assert found["memory_peak_bytes"] == 700
    assert found["context_switches_per_s"] == 10
    assert found["gpu_memory_peak_mib"] == 500


def test_a_long_run_has_no_more_samples_than_a_short_one() -> None:
    looks, clock = 0, 0.0

    def look() -> dict[str, Any]:
        nonlocal looks, clock
        looks, clock = looks + 1, clock + 1.0
        return {"spans": {"env_step": clock}}

    with SystemSampler(lambda: clock, 1e-4, look, most=8) as sampler:
        while looks < 41:
            time.sleep(0.001)
    samples = sampler.samples
    assert len(samples) < 8
    at = [sample["at"] for sample in samples]
    assert at == sorted(at)
    assert at[0] > 2.0  # what was there at first is in it
    assert at[-1] == looks - 1  # a sample is dated before the rest of it is gathered


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count by process")
def test_a_system_that_counts_no_switches_has_none(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tmaple\nThreads:\t1\n")
    assert _switches(str(tmp_path / "status")) == 0


def test_switches_of_every_thread_count() -> None:
    go_on, slept = threading.Event(), threading.Event()

    def sleep_often() -> None:
        for _ in range(200):
            time.sleep(0.0005)
        slept.set()
        go_on.wait()

    me = psutil.Process()
    before = switches_of(me)
    thread = threading.Thread(target=sleep_often)
    thread.start()
    slept.wait()
    after = switches_of(me)
    go_on.set()
    thread.join()
    (made,) = (number for found, number in after.items() if found == thread.native_id)
    assert made >= 200
    assert sum(after.values()) >= sum(before.values()) + 200


@pytest.mark.skipif(sys.platform == "win32", reason="a script stands for the program")
@pytest.mark.parametrize(("does", "found"), [("echo 40, 1000", [40.0]), ("sleep 60", None), ("echo failed", [])])
def test_the_gpu_is_asked_with_a_limit(
    does: str, found: list[float] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "nvidia-smi"
    script.write_text(f"#!/bin/sh\nexec {does}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("maple.perf.system.GPU_LIMIT_S", 5.0 if found is not None else 0.05)
    with SystemSampler(time.perf_counter, 10.0, dict) as sampler:
        pass
    (sample,) = sampler.samples
    assert sample.get("gpu_percent") == found
    summarize_samples(sampler.samples)
