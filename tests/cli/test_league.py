"""Leagues from the command line: training against rivals and the past, and `maple league`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maple.cli.progress import line_of
from tests.cli import command

Answer = tuple[int, str, str]
NIM = "tests.games.external.envs:Nim"
SMALL = ["--set", "tables=24", "--set", "net.hidden=[8]", "--set", "threads=1", "--set", "probe_every_s=0"]
POKER = [*SMALL, "--set", "afterstate.horizon=360", "--set", "afterstate.minibatch=120", "--no-evaluate", "--json"]
STICKS = [*SMALL, "--set", "ppo.horizon=64", "--set", "ppo.minibatch=32", "--workers", "0", "--no-evaluate", "--json"]
LEAGUE = ["--opponents", "self:0.3,past:0.5,random:0.2", "--set", "snapshots.every_steps=360"]
KEPT = ["--set", "league.window=10", "--set", "league.exploiter_every=2", "--set", "league.exploiter_steps=360"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def maple(folder: Path) -> Callable[..., Answer]:
    """The command line: exit code, stdout, stderr."""

    def run(*arguments: str) -> Answer:
        said = command.maple(*arguments, "--runs-dir", folder)
        return said.returncode, said.stdout, said.stderr

    return run


def test_ratings_payoffs_and_circles(maple: Callable[..., Answer], folder: Path) -> None:
    code, out, err = maple("train", "ofc", "--run", "met", "--steps", "2500", *POKER, *LEAGUE, *KEPT)
    assert code == 0, err
    code, out, err = maple("league", "met", "--json")
    assert code == 0, err
    found = json.loads(out)
    names = [player["name"] for player in found["players"]]
    assert names[:2] == ["learner", "random"]
    taken = [player for player in found["players"] if player["steps"] is not None]
    assert {player["cause"] for player in taken} == {"schedule", "exploiter"}
    said = [("exploiter@" if player["cause"] == "exploiter" else "@") + str(player["steps"]) for player in taken]
    assert names[2:] == said
    assert [player["steps"] for player in taken] == sorted(player["steps"] for player in taken)
    for a in range(len(names)):
        assert found["payoff"][a][a] is None
        for b in range(len(names)):
            if found["payoff"][a][b] is not None:
                assert found["payoff"][a][b] + found["payoff"][b][a] == pytest.approx(1.0)
    assert 0 <= found["cyclic_share"] <= 1
    code, out, err = maple("league", "met")
    assert code == 0, err
    assert "how often the row beats the column" in out
    _check_records(folder / "met")


def _check_records(run: Path) -> None:
    """The win rate against the pool is in all records from when it can be told, and in the line that is shown."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    updates: list[dict[str, Any]] = [event for event in events if event["event"] == "update"]
    rates = [update["figures"].get("pool_win_rate") for update in updates]
    assert rates[0] is None
    assert rates[-1] is not None
    with (run / "progress.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["figures.pool_win_rate"]) if row["figures.pool_win_rate"] else None for row in rows] == rates
    assert f"beats its past {rates[-1]:.1%}" in line_of(updates[-1], "random")
    assert "its past" not in line_of(updates[0], "random")


def test_without_a_league_it_says_so(maple: Callable[..., Answer]) -> None:
    assert maple("train", "ofc", "--run", "alone", "--steps", "360", *POKER)[0] == 0
    code, out, err = maple("league", "alone", "--json")
    assert (code, out) == (2, "")
    assert "run 'alone' plays itself alone and has no league" in err
    code, out, err = maple("league", "nobody")
    assert (code, out) == (2, "")
    assert "there is no run 'nobody'" in err


def test_rivals_that_do_not_fit_get_a_sentence_and_leave_nothing(maple: Callable[..., Answer], folder: Path) -> None:
    assert maple("train", "ofc", "--run", "poker", "--steps", "360", *POKER)[0] == 0
    assert maple("train", NIM, "--run", "short", "--steps", "64", "--set", "env.sticks=5", *STICKS)[0] == 0
    for rival, sentence in (
        ("nobody", "there is no run 'nobody'"),
        ("poker", f"run:poker: that run plays ofc, not {NIM}"),
        ("short", "run:short: that run was trained with game options"),
    ):
        code, out, err = maple("train", NIM, "--run", "new", "--steps", "64", "--opponents", f"run:{rival}", *STICKS)
        assert (code, out) == (2, "")
        assert sentence in err
        assert not (folder / "new").exists()
    fits = ["--opponents", "run:short", "--set", "env.sticks=5"]
    assert maple("train", NIM, "--run", "new", "--steps", "64", *fits, *STICKS)[0] == 0
