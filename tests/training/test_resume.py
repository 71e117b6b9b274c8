"""A run that is killed and started again ends bit for bit like one that was never stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from maple.core.config import load_config
from maple.core.errors import CheckpointError, ConfigError, RunError
from maple.runs.store import RunFolder
from maple.training.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint
from maple.training.session import Progress, train_run

SETTINGS = [
    "tables=48",
    "net.hidden=[16, 8]",
    "afterstate.horizon=720",
    "afterstate.minibatch=128",
    "ppo.horizon=720",
    "ppo.minibatch=128",
    "snapshots.every_steps=3000",
    "opponents=self:0.6,past:0.3,random:0.1",
    "probe_every_s=0",
]


def _arguments(run: str, runs_dir: Path, algo: str, steps: int) -> list[str]:
    settings = [f"--set={text}" for text in [*SETTINGS, "checkpoint_every_s=0.05"]]
    flags = ["--run", run, "--runs-dir", str(runs_dir), "--steps", str(steps), "--algo", algo, "--json"]
    return [sys.executable, "-m", "maple.cli", "train", "ofc", *flags, *settings]


def _end(run: str, runs_dir: Path) -> Checkpoint:
    path = latest_checkpoint(runs_dir / run / "checkpoints")
    assert path is not None
    return load_checkpoint(path)


def _assert_identical(a: Checkpoint, b: Checkpoint) -> None:
    for left, right in ((a.weights, b.weights), (a.state, b.state)):
        assert left.keys() == right.keys()
        for name in left:
            assert np.array_equal(left[name], right[name]), name
    counted = ("steps", "updates", "games", "snapshots")
    assert [a.meta["counters"][name] for name in counted] == [b.meta["counters"][name] for name in counted]


@pytest.mark.parametrize("algo", ["afterstate", "ppo"])
def test_killed_at_random_moments_it_ends_the_same(algo: str, tmp_path: Path) -> None:
    steps = 12_000
    subprocess.run(_arguments("whole", tmp_path, algo, steps), check=True, capture_output=True)
    dice, kills, started = random.Random(algo), 0, time.monotonic()
    checkpoints = tmp_path / "killed" / "checkpoints"
    while True:
        child = subprocess.Popen(
            _arguments("killed", tmp_path, algo, steps), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        before = latest_checkpoint(checkpoints)
        while child.poll() is None and latest_checkpoint(checkpoints) == before and kills < 4:
            time.sleep(0.01)
        if kills < 4:
            time.sleep(dice.random() * 0.3)
            if child.poll() is None:
                os.kill(child.pid, signal.SIGKILL)
                child.communicate()
                kills += 1
                continue
        _, errors = child.communicate()
        assert child.returncode == 0, errors.decode()
        break
    assert kills >= 1
    assert time.monotonic() - started < 300
    _assert_identical(_end("whole", tmp_path), _end("killed", tmp_path))


def _config(steps: int, *more: str):  # type: ignore[no-untyped-def]
    return load_config("ofc", settings=[*SETTINGS, *more], flags={"steps": steps})


def _go_on(_: Progress) -> bool:
    return True


def test_stopping_early_and_resuming_with_more_steps(tmp_path: Path) -> None:
    whole, halves = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "halves")
    constant = "optimizer.schedule=constant"
    train_run(_config(6000, constant), whole, _go_on)
    train_run(_config(3000, constant), halves, _go_on)
    train_run(_config(6000, constant), halves, _go_on)
    _assert_identical(_end("whole", tmp_path), _end("halves", tmp_path))


def test_a_run_goes_on_only_with_its_own_settings(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    train_run(_config(720), run, _go_on)
    with pytest.raises(ConfigError, match=r"afterstate\.lam"):
        train_run(_config(1440, "afterstate.lam=0.1"), run, _go_on)


def test_a_run_in_use_is_left_alone(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    with run.locked(), pytest.raises(RunError, match="in use"):
        train_run(_config(720), run, _go_on)
    assert not (run.path / "config.json").exists()


def test_a_damaged_checkpoint_names_the_one_before_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    train_run(_config(720), run, _go_on)
    train_run(_config(2000), run, _go_on)
    newest = latest_checkpoint(run.checkpoints)
    assert newest is not None
    state = newest / "state.safetensors"
    for damage in (state.read_bytes()[:-10], state.read_bytes()[:-1] + b"\x00" * 9):
        state.write_bytes(damage)
        before = sorted(run.checkpoints.iterdir())
        with pytest.raises(CheckpointError, match="the one before it is"):
            train_run(_config(4000), run, _go_on)
        assert sorted(run.checkpoints.iterdir()) == before
