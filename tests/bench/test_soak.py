"""Long runs and killed ones, in short versions."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import psutil
import pytest

from maple.bench.kills import EVERY_S, bench_kills
from maple.bench.soak import Look, Watch, bench_soak, verdicts
from maple.core.errors import RunError
from maple.core.sources import load_config
from maple.training.session import Progress
from tests.cli.command import command_line, maple

TINY = ["tables=48", "net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=240"]
STEADY = [Look(float(minute), 40_000.0, 50_000.0, 15, 800.0, 30, 3) for minute in range(60)]


def test_a_steady_run_is_flat_however_the_machine_breathes() -> None:
    breathing = [
        replace(look, steps_per_s=look.steps_per_s * pace, twin_steps_per_s=look.twin_steps_per_s * pace)
        for look, pace in zip(STEADY, [1.0, 0.7, 0.9] * 20, strict=True)
    ]
    found = verdicts(breathing)
    assert found["flat"] is True
    assert abs(found["speed_drift"]) < 1e-9
    assert max(map(abs, found["speed_drift_ci95"])) < 1e-9


def test_how_sure_the_drift_is_is_told() -> None:
    rng = np.random.default_rng(0)
    looks = [replace(look, steps_per_s=look.steps_per_s * rng.normal(1.0, 0.05)) for look in STEADY]
    slower = [replace(look, steps_per_s=look.steps_per_s * (1 - 0.002 * n)) for n, look in enumerate(looks)]
    low, high = verdicts(looks)["speed_drift_ci95"]
    assert low < 0.0 < high
    low, high = verdicts(slower)["speed_drift_ci95"]
    assert low < high < 0.0


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


def test_a_file_that_is_open_for_a_moment_is_no_leak() -> None:
    looks = list(STEADY)
    looks[20::7] = [replace(look, descriptors=31, processes=4) for look in looks[20::7]]
    looks[-1] = replace(looks[-1], descriptors=33)
    assert verdicts(looks)["flat"] is True


def test_too_few_looks_say_nothing() -> None:
    found = verdicts(STEADY[:3])
    assert found["flat"] is None
    assert "too short to say" in found["verdict"]


def test_the_verdict_names_what_is_wrong_first() -> None:
    looks = [replace(look, memory_mb=look.memory_mb + number) for number, look in enumerate(STEADY)]
    found = verdicts(looks)
    assert found["verdict"].startswith("NOT FLAT: memory +3.9% (allowed 2%); flat: speed +0.0%")
    assert found["passed"] == {"speed": True, "memory": False, "descriptors": True, "processes": True}


def test_the_twin_trains_between_looks_and_its_time_is_not_the_runs() -> None:
    now, done = 0.0, cycle([20, 30, 40])

    def twin() -> tuple[int, float]:
        nonlocal now
        now += 0.25
        return next(done), 0.2

    watch = Watch(twin, set, every_s=27.0, tell=lambda _: None, clock=lambda: now)
    began = Progress(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, {}, {}, {}, {}, {})
    for update in range(1, 101):
        now += 1.0
        watch(replace(began, steps=300 * update))
    assert [(look.minute, look.slices) for look in watch.looks[:2]] == [(0.45, 12), (0.9, 12)]
    assert [(look.steps_per_s, look.twin_steps_per_s) for look in watch.looks[:2]] == [(300.0, 150.0)] * 2


def test_a_slow_twin_has_a_fifth_of_the_time_at_the_most() -> None:
    now = away = 0.0

    def twin() -> tuple[int, float]:
        nonlocal now, away
        now, away = now + 7.0, away + 7.0
        return 1, 7.0

    watch = Watch(twin, set, every_s=30.0, tell=lambda _: None, clock=lambda: now)
    began = Progress(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, {}, {}, {}, {}, {})
    for update in range(1, 1001):
        now += 1.0
        watch(replace(began, steps=300 * update))
    assert 0.15 * now < away <= 0.2 * (now + 28.0)  # the first one comes at once


def test_a_real_run_is_looked_at(tmp_path: Path) -> None:
    config = load_config("ofc", settings=[*TINY, "steps=7200", "threads=1", "probe_every_s=0"])
    told: list[str] = []
    others = len(psutil.Process().children(recursive=True))  # that tests before this one have left standing by
    found = bench_soak(config, tmp_path / "soak", 0.0, told.append)  # however long an update takes here
    assert len(found["looks"]) == len(told) >= 1
    assert all(look["memory_mb"] > 50 and look["steps_per_s"] > 0 for look in found["looks"])
    assert all(look["slices"] >= 1 and look["twin_steps_per_s"] > 0 for look in found["looks"])
    assert all(look["processes"] == 1 + others for look in found["looks"])  # the twin is no part of it
    assert found["steps"] >= 7200


def test_several_games_are_soaked_by_one_command(tmp_path: Path) -> None:
    words = ["ofc", "maple.bench.burn:BurnEnv", "--minutes", "0.2", "--every-s", "0.5", "--workers", "1", "--json"]
    words += ["--keep", str(tmp_path / "kept")]
    settings = ["threads=1", "optimizer.learning_rate=1e-9", "probe_every_s=0"]
    done = maple("bench", "soak", *words, *(word for setting in settings for word in ("--set", setting)))
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["flat"] is False else 0), done.stderr
    assert [one["game"] for one in found["games"]] == ["ofc", "maple.bench.burn:BurnEnv"]
    for one in found["games"]:
        assert one["looks"]
        assert one["verdict"] in " ".join(done.stderr.split())
    assert all(look["processes"] >= 2 for look in found["games"][1]["looks"])  # a worker plays
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == ["maple.bench.burn-BurnEnv", "ofc"]
    assert maple("eval", tmp_path / "kept" / "ofc", "--hands", "60").returncode == 0
    again = maple("bench", "soak", *words)
    assert again.returncode == 2
    assert "name a new folder" in " ".join(again.stderr.split())


def test_a_soak_that_is_killed_leaves_no_run_behind(tmp_path: Path) -> None:
    words = command_line("bench", "soak", "CartPole-v1", "--workers", "0", "--preset", "debug", "--minutes", "10")
    apart = {**os.environ, "TMPDIR": str(tmp_path)}  # from the lock of whoever measures at the moment
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=apart) as soak:
        own = psutil.Process(soak.pid)
        while not (runs := [child for child in own.children() if "spawn_main" in "".join(child.cmdline())]):
            assert soak.poll() is None
            time.sleep(0.05)
        soak.kill()
    _, alive = psutil.wait_procs(runs, timeout=30)
    assert alive == []


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


def test_kills_hold_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    held = list[bool]()

    @contextmanager
    def lock(_tell: object) -> Iterator[None]:
        held.append(True)
        yield
        held.pop()

    monkeypatch.setattr("maple.cli.soak.machine_lock", lock)
    monkeypatch.setattr("maple.cli.soak.compile_kernels", lambda _: 0.0)
    monkeypatch.setattr("maple.bench.kills.bench_kills", lambda *_: {"held": bool(held)})
    assert json.loads(maple("bench", "kills", "ofc", "--kills", "1", "--json").stdout) == {"held": True}
    assert held == []
