"""A run of any game ends with its evaluation, told in that game's own figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maple.cli.evaluate import metric_name, metric_texts
from tests.cli.command import maple

SMALL = [
    *("--set", "tables=8", "--set", "net.hidden=[8]", "--set", "ppo.horizon=64", "--set", "ppo.minibatch=32"),
    *("--workers", "0", "--steps", "200", "--evaluate", "--json"),
]


@pytest.mark.parametrize("env", ["Walk", "Nim"])
def test_an_env_of_ones_own_is_trained_to_its_end(env: str, tmp_path: Path) -> None:
    said = maple("train", f"tests.games.external.envs:{env}", *SMALL, "--run", "end", "--runs-dir", tmp_path)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["progress"] == 1.0
    (row,) = found["evaluations"]
    assert row["metric"] in row
    assert row["against"] == ([] if env == "Walk" else ["random"])
    (listed,) = json.loads(maple("runs", "--runs-dir", tmp_path, "--json").stdout)["runs"]
    assert listed["best"] == row[row["metric"]]
    best = json.loads((tmp_path / "end" / "checkpoints" / "best" / "checkpoint.json").read_text())
    assert best["step"] == found["steps"]
    assert maple("eval", "end@best", "--runs-dir", tmp_path, "--hands", "4").returncode == 0


@pytest.mark.parametrize(
    ("metric", "texts"),
    [
        ("points_per_hand", ("+1.50", "+1.25 … +1.75")),
        ("win_rate", ("150.0%", "125.0% … 175.0%")),
        ("return", ("1.50", "1.25 … 1.75")),
    ],
)
def test_results_are_told_in_the_games_own_figures(metric: str, texts: tuple[str, str]) -> None:
    assert metric_texts({"metric": metric, metric: 1.5, "ci95": [1.25, 1.75]}) == texts
    assert "_" not in metric_name(metric)
