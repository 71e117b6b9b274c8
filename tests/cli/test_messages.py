"""What a person who is not watching is told of a real run: when it begins, on its way, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from maple.cli import evaluate, sitting
from maple.runs.store import RunFolder
from tests.cli.command import TINY, maple
from tests.cli.test_envs import FAULTY, SMALL
from tests.runs.service import SILENT, Service, running_service

pytest.importorskip("apprise", reason="apprise is not installed")


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as server:
        yield server


def _told(service: Service) -> dict[str, str]:
    """The messages by their titles, without those that came before."""
    got, service.got = service.got, []
    return {one["title"].partition(": ")[2]: one["message"] for one in got}


def _check_progress(told: dict[str, str], row: dict[str, float | dict[str, float]]) -> None:
    """One message of progress, with what the run itself recorded of that update."""
    (title,) = [title for title in told if title.endswith("%")]
    text = told[title]
    assert title == f"{row['progress']:.0%}"
    assert f"steps {row['steps']:,} ({row['progress']:.0%}), games {row['games']:,}" in text
    assert f"{row['steps_per_s']:,.0f} steps/s" in text  # of this process: see tests/training/test_session.py
    figures = row["game"]
    assert isinstance(figures, dict)
    assert {"points_per_hand", "foul"} <= figures.keys()
    for name, value in figures.items():
        assert f"{name} {value:.3g}" in text


def test_a_run_tells_of_its_start_its_progress_its_checkpoints_and_its_end(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(evaluate.GAME_HANDS, "ofc", 60)
    words = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--notify", service.address(), "--evaluate", *TINY]
    seen = 0
    for steps, before in (("1500", 0), ("3000", 2160)):  # the second time the run goes on
        done = maple(*words, "--steps", steps, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["before"]["steps"] == before
        told, rows = _told(service), RunFolder(tmp_path / "x").records("events.jsonl")
        assert next(iter(told)) == "started"
        assert told["started"] == f"game ofc, afterstate, seed 0, until {int(steps):,} steps"
        _check_progress(told, rows[seen])
        assert re.fullmatch(r"saved checkpoints/\d{12}", told["checkpoint"])
        assert list(told)[-1] == "finished"
        assert f"steps {rows[-1]['steps']:,} (100%)" in told["finished"]
        for row in json.loads(done.stdout)["evaluations"]:
            assert (
                f"against {', '.join(row['against'])}: points a hand {row['points_per_hand']:+.2f}" in told["finished"]
            )
        seen = len(rows)


def test_a_run_that_fails_tells_why(service: Service, tmp_path: Path) -> None:
    faults = ["--set", "env.fault=raise", "--set", "env.every=1", "--set", "workers.max_deaths=2"]
    words = ["train", FAULTY, "--workers", "0", "--steps", "500", "--run", "x", "--runs-dir", tmp_path]
    done = maple(*words, "--notify", service.address(), *faults, *SMALL)
    assert done.returncode == 2
    told = _told(service)
    assert list(told) == ["started", "failed"]
    assert told["failed"].startswith(f"{FAULTY} failed")
    assert "without finishing a game" in told["failed"]
    assert " ".join(told["failed"].split()) in " ".join(done.stderr.split())


def test_a_run_that_does_not_fit_into_memory_tells_so(service: Service, tmp_path: Path) -> None:
    words = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path / "runs", "--notify", service.address()]
    done = maple(*words, "--set", "afterstate.horizon=20000000000")
    assert done.returncode == 2
    told = _told(service)
    assert list(told) == ["failed"]
    assert "this run needs about" in told["failed"]
    assert not (tmp_path / "runs").exists()


def test_a_service_that_stays_silent_costs_a_run_nothing_but_its_messages(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitting, "MESSAGES_S", 0.2)
    service.usual = SILENT
    words = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "1500", *TINY]
    done = maple(*words, "--notify", service.address("?rto=0.2"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["progress"] == 1.0
    assert service.tries > 0
    assert service.got == []
