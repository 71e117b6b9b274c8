"""Envs of the user's own from the command line: whatever they do, a run ends well or with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import maple, maple_alone

FAULTY = "tests.games.external.envs:Faulty"
SMALL = [
    *("--set", "tables=6", "--set", "ppo.horizon=128", "--set", "ppo.minibatch=64", "--set", "ppo.epochs=1"),
    *("--set", "net.hidden=[8]", "--set", "threads=1"),
]


@pytest.mark.parametrize(("fault", "told"), [("exit", "ended with exit code 7"), ("hang", "hung for 1 s")])
def test_an_env_that_exits_or_hangs_takes_nothing_down(tmp_path: Path, fault: str, told: str) -> None:
    # every=47: the fourth game at table 5 fails in training, in evaluations the third game at table 25
    faults = ["--set", f"env.fault={fault}", "--set", "env.every=47", "--set", "env.at=1"]
    faults += ["--set", "workers.step_limit_s=1"]
    done = maple_alone(
        *("train", FAULTY, "--workers", "2", "--steps", "500", "--run", "faulty", "--runs-dir", tmp_path),
        *("--evaluate", "--json", *faults, *SMALL),
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["evaluations"]
    assert found["games"] == 200
    assert found["lost"] > 0
    assert "games were lost and others played in their stead" in done.stderr
    log = (tmp_path / "faulty" / "run.log").read_text()
    assert told in log
    done = maple_alone("eval", "faulty", "--runs-dir", tmp_path, "--hands", "90", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["games"] == 90
    assert json.loads(done.stdout)["lost"] > 0
    assert len((tmp_path / "faulty" / "run.log").read_text()) > len(log)


def test_an_env_that_always_exits_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    done = maple_alone(
        *("train", FAULTY, "--workers", "2", "--steps", "500", "--run", "dead", "--runs-dir", tmp_path, *SMALL),
        *("--set", "env.fault=exit", "--set", "env.every=1", "--set", "workers.max_deaths=2"),
    )
    assert done.returncode == 2
    assert "died 2 times without finishing a game; the last time it ended with exit code 7" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_an_env_prints_is_no_result(tmp_path: Path, workers: str) -> None:
    words = ["train", "tests.games.external.odd_envs:Loud", "--workers", workers, "--steps", "200", "--run", "loud"]
    done = maple(*words, "--runs-dir", tmp_path, "--evaluate", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"]
    assert ("stepped" in done.stderr) == (workers == "0")
    if workers != "0":
        assert "stepped" in (tmp_path / "loud" / "run.log").read_text()


def test_what_auto_chose_is_said(tmp_path: Path) -> None:
    words = ["train", "tests.games.external.envs:Walk", "--steps", "200", "--run", "walk", "--runs-dir", tmp_path]
    done = maple(*words, *SMALL)
    assert done.returncode == 0
    assert "tests.games.external.envs:Walk takes" in done.stderr
    assert "µs a step" in done.stderr
