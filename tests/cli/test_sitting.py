"""A run as a user starts, leaves and looks at it: in the background, from another's weights, and what it cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import TINY, maple, maple_alone


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    done = maple("train", "ofc", "--run", "tiny", "--runs-dir", folder, "--steps", "1500", *TINY)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    "line", ['{"progress": 0.5}', '{"progress": "half", "probe": null}', '{"probe": 5, "game": [], "progress": null}']
)
def test_records_that_somebody_has_edited_can_be_looked_at(line: str, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tiny", tmp_path / "one")
    (tmp_path / "one" / "checkpoints" / "best").mkdir(exist_ok=True)
    (tmp_path / "one" / "checkpoints" / "best" / "checkpoint.json").write_text("5")
    for name, added in (("events.jsonl", line), ("evaluations.jsonl", '{"against": null}')):
        with (tmp_path / "one" / name).open("a") as records:
            records.write(f"{added}\n")
    for command in (["runs", "attach", "one"], ["runs"], ["runs", "compare", "one"]):
        done = maple(*command, "--runs-dir", tmp_path)
        assert done.returncode == 0, done.stderr
    assert "one is not running" in maple("runs", "attach", "one", "--runs-dir", tmp_path).stderr


def test_a_detached_run_goes_on_by_itself(tmp_path: Path) -> None:
    done = maple_alone(
        "train", "ofc", "--run", "alone", "--runs-dir", tmp_path, "--steps", "3000", "--detach", "--json", *TINY
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"] == "alone"
    attached = maple("runs", "attach", "alone", "--runs-dir", tmp_path)
    assert "alone has ended" in attached.stderr
    assert "100%" in attached.stderr


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["--storage", "pigeon://loft"], "there is no storage of scheme 'pigeon'"),
        (["--notify", "pigeon://loft/verysecretword"], "address 1 of --notify cannot be used"),
        (["--run", "new", "--set", "afterstate.horizon=20000000000"], "this run needs about"),
        (["--set", "seed=5"], "was begun with seed = 0, not 5"),
        (["--run", "new", "--workers", "2"], "workers.count = 2: workers play envs of your own"),
        (
            [
                "--run",
                "new",
                "--algo",
                "dqn",
                "--set",
                "dqn.capacity=200",
                "--set",
                "dqn.warmup=100",
                "--set",
                "dqn.minibatch=64",
            ],
            "small for 48",
        ),
    ],
)
def test_a_detached_run_that_cannot_begin_says_so_at_once(
    wrong: list[str], sentence: str, runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "tiny", tmp_path / "tiny")
    words = ["train", "ofc", "--run", "tiny", "--runs-dir", tmp_path, "--steps", "9000", "--detach", *TINY, *wrong]
    done = maple_alone(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]
    assert done.returncode == 2, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert "background" not in done.stderr
    assert "verysecretword" not in done.stderr


def test_the_word_of_other_programs_for_no_processes_holds_for_every_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USE_SUBPROC_ENVS", "0")
    done = maple("train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "700", *TINY)
    assert done.returncode == 0, done.stderr


def test_a_run_goes_on_without_the_one_that_it_began_with(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tiny", tmp_path / "donor")
    command = ["train", "ofc", "--run", "heir", "--runs-dir", tmp_path, "--from", "donor", *TINY, "--steps"]
    assert maple(*command, "700").returncode == 0
    shutil.rmtree(tmp_path / "donor")
    went_on = maple(*command, "1500", "--json")
    assert went_on.returncode == 0, went_on.stderr
    assert json.loads(went_on.stdout)["before"]["steps"] >= 700
    other = maple("train", "ofc", "--run", "new", "--runs-dir", tmp_path, "--from", "donor", *TINY, "--steps", "700")
    assert other.returncode == 2
    assert "there is no run 'donor'" in other.stderr


def test_a_run_begins_with_the_weights_of_its_own_game(runs: Path, tmp_path: Path) -> None:
    done = maple("train", "wargame", "--runs-dir", tmp_path, "--from", runs / "tiny", "--steps", "100")
    assert done.returncode == 2
    assert "is of game 'ofc', not 'wargame'; choose another --from" in " ".join(done.stderr.split())


@pytest.mark.parametrize("priced", [["--price-per-hour", "3.6"], ["--set", "price_per_hour=3.6"], []])
def test_what_a_run_cost_is_told(priced: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not priced:
        monkeypatch.setenv("MAPLE_PRICE_PER_HOUR", "3.6")
    words = ["--run", "x", "--runs-dir", tmp_path, "--steps", "700", *priced, "--json"]
    done = maple("train", "ofc", *words, *TINY)
    found = json.loads(done.stdout)
    assert found["cost"]["total"] == pytest.approx(found["elapsed_s"] / 1000)
    assert found["cost"]["per_million_steps"] == pytest.approx(found["cost"]["total"] / found["steps"] * 1e6)
    assert "of training alone" in done.stderr


@pytest.mark.parametrize(
    ("newer", "told"),
    [
        ({"warp": {"drive": True}}, "there is no setting 'warp'"),
        ({"algo": "clairvoyance"}, "algo = 'clairvoyance' cannot be used"),
        ({"game": {"seats": 3, "gravity": 2}}, "ofc has no option 'gravity'"),
        ({"name": "chess"}, "there is no game 'chess'"),
    ],
)
def test_a_stored_run_of_a_newer_maple_is_told_of(newer: dict[str, Any], told: str, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tiny", tmp_path / "there" / "tiny")
    config = tmp_path / "there" / "tiny" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **newer}))
    done = maple("train", f"file://{tmp_path}/there/tiny", "--runs-dir", tmp_path / "here", "--steps", "3000")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert f"run 'tiny' was written by another Maple, perhaps a newer one: {told}" in said
    assert not (tmp_path / "here").exists()
