"""`maple league` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import TINY, maple

LEAGUE = ["--opponents", "self:0.4,past:0.4,random:0.2", "--set", "snapshots.every_steps=700"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    for name, more in (("met", LEAGUE), ("alone", ["--opponents", "self"])):
        done = maple("train", "ofc", "--run", name, "--runs-dir", runs, "--steps", "3000", "--json", *TINY, *more)
        assert done.returncode == 0, done.stderr
    return runs


def test_ratings_payoffs_and_circles(folder: Path) -> None:
    done = maple("league", "met", "--runs-dir", folder, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [player["name"] for player in found["players"]]
    assert names[:2] == ["learner", "random"]
    taken = [player for player in found["players"] if player["steps"] is not None]
    assert len(taken) >= 3
    assert names[2:] == [f"@{player['steps']}" for player in taken]
    assert [player["steps"] for player in taken] == sorted(player["steps"] for player in taken)
    for a in range(len(names)):
        assert found["payoff"][a][a] is None
        for b in range(len(names)):
            if found["payoff"][a][b] is not None:
                assert found["payoff"][a][b] + found["payoff"][b][a] == pytest.approx(1.0)
    assert 0 <= found["cyclic_share"] <= 1
    shown = maple("league", "met", "--runs-dir", folder)
    assert shown.returncode == 0, shown.stderr
    assert "how often the row beats the column" in shown.stdout


def test_a_run_without_a_league_and_none_at_all_get_a_sentence(folder: Path) -> None:
    alone = maple("league", "alone", "--runs-dir", folder, "--json")
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "plays itself alone" in alone.stderr
    nobody = maple("league", "nobody", "--runs-dir", folder)
    assert nobody.returncode == 2
    assert "there is no run 'nobody'" in nobody.stderr
