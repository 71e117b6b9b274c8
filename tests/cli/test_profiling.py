"""The profile of a run is there while it trains, after an error and for every sitting."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from maple.core.errors import GameError
from maple.training.loop import Round, Trainer
from tests.cli.command import maple

SMALL = [
    *("--set", "tables=8", "--set", "net.hidden=[8]", "--set", "ppo.horizon=64", "--set", "ppo.minibatch=32"),
    *("--set", "workers.count=0", "--set", "probe_every_s=0", "--profile", "--run", "seen"),
]
WALK = "tests.games.external.envs:Walk"


def _train(folder: Path, *more: str) -> Any:
    return maple("train", WALK, *SMALL, "--runs-dir", folder, *more)


def _profiles(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "seen" / "profiles").iterdir())


def test_every_sitting_has_a_profile_of_its_own(tmp_path: Path) -> None:
    for steps in ("200", "400"):
        done = _train(tmp_path, "--steps", steps)
        assert done.returncode == 0, done.stderr
    suffixes = ("json", "trace.json", "txt")
    assert _profiles(tmp_path) == sorted(f"{name}.{end}" for name in ("profile", "profile-2") for end in suffixes)
    steps_of = {}
    for name in ("profile", "profile-2"):
        found = json.loads(maple("profile", "seen", "--runs-dir", tmp_path, "--name", name, "--json").stdout)
        steps_of[name] = found["facts"]["steps"]
    newest = json.loads(maple("profile", "seen", "--runs-dir", tmp_path, "--json").stdout)
    assert newest["facts"]["steps"] == steps_of["profile-2"]
    events = (tmp_path / "seen" / "events.jsonl").read_text().splitlines()
    assert sum(steps_of.values()) == json.loads(events[-1])["steps"]


def test_the_profile_is_written_at_checkpoints_and_when_the_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rounds, seen = tmp_path / "seen" / "profiles" / "profile.json", 0, list[dict[str, Any]]()
    original = Trainer.round

    def fails_later(self: Trainer) -> Round:
        nonlocal rounds
        rounds += 1
        if rounds < 4:
            return original(self)
        until = time.monotonic() + 60
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(json.loads(path.read_text()))
        assert "profile.trace.json" not in _profiles(tmp_path)
        raise GameError("the game is over")

    monkeypatch.setattr(Trainer, "round", fails_later)
    monkeypatch.setattr("maple.training.warming.warm_up", lambda *_: 0.0)
    done = _train(tmp_path, "--steps", "4000", "--set", "checkpoint_every_s=0.001")
    assert done.returncode == 2, done.stderr
    assert "the game is over" in done.stderr
    early, whole = seen[0], json.loads(path.read_text())
    assert "profile.trace.json" in _profiles(tmp_path)
    assert 0 < early["wall_s"] < whole["wall_s"]
    assert 0 < early["facts"]["steps"] <= whole["facts"]["steps"]
    for found in (early, whole):
        for account in found["accounts"]:
            assert sum(span["share"] for span in account["spans"]) == pytest.approx(1.0, abs=5e-3)
    names = {account["name"] for account in whole["accounts"]}
    assert {"MainThread", "maple-profile", "maple-records"} <= names


def test_a_run_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    assert _train(tmp_path, "--steps", "100", "--set", "log.rewards=true").returncode == 2
    assert not (tmp_path / "seen" / "profiles").exists()


def test_a_profile_makes_no_env_and_leaves_stdout_alone(tmp_path: Path) -> None:
    made = {}
    for profile in (["--profile"], []):
        mark = tmp_path / f"made{len(profile)}"
        env = ["--set", f"env.mark={mark}", "--set", f"env.refuse_from={10**6}", "--set", f"env.refuse_to={10**6}"]
        small = [
            *SMALL[: SMALL.index("--profile")],
            *env,
            "--set",
            "env.fault=none",
            "--set",
            "checkpoint_every_s=0.001",
        ]
        where = ["--run", f"seen{len(profile)}", "--runs-dir", tmp_path, "--steps", "1000", "--json"]
        done = maple("train", "tests.games.external.failing_envs:Unmade", *small, *where, *profile)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["steps"] >= 1000
        made[bool(profile)] = len(mark.read_text().splitlines())
    assert made[True] == made[False]


def test_a_profile_and_perf_lines_are_settings_too(tmp_path: Path) -> None:
    small = [word for word in SMALL if word != "--profile"]
    for steps, name in (("200", "mine"), ("400", "true")):  # a run that goes on may be profiled anew
        settings = ["--set", f"profile={name}", "--set", "perf_every=0.1", "--steps", steps]
        done = maple("train", WALK, *small, *settings, "--runs-dir", tmp_path)
        assert done.returncode == 0, done.stderr
    assert {path.removesuffix(".json") for path in _profiles(tmp_path)} >= {"mine", "profile"}
    shown = json.loads(maple("config", "show", WALK, *small[:-2], *settings, "--json").stdout)["settings"]
    assert shown["profile"] == {"value": "profile", "source": "--set"}
    assert shown["perf_every"] == {"value": 0.1, "source": "--set"}
    wrong = maple("train", WALK, *small, "--set", "profile=../mine", "--runs-dir", tmp_path)
    assert (wrong.returncode, "is no name for a file" in wrong.stderr) == (2, True)
    long = maple("train", WALK, *small, "--set", "perf_every=0.1", "--steps", "8000", "--runs-dir", tmp_path)
    assert "[PERF]" in long.stderr
