"""`maple ladder` and `maple export` from the outside, and runs that cannot play the game they are named for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command import TINY, maple
from tests.cli.test_league import NIM, STICKS


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    done = maple("train", "ofc", "--run", "tiny", "--runs-dir", folder, "--steps", "700", *TINY)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_ladder_ranks_runs_and_leaves_out_damaged_ones(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tiny", tmp_path / "whole")
    shutil.copytree(runs / "tiny", tmp_path / "broken")
    for path in (tmp_path / "broken").glob("checkpoints/*/weights.safetensors"):
        path.write_bytes(b"")
    rules = ["--set", "game.stay_by_top=true", "--set", "game.fantasyland=off"]
    done = maple("ladder", "ofc", "--runs-dir", tmp_path, "--hands", "6", "--json", *rules)
    assert done.returncode == 0, done.stderr
    assert "run 'broken' is left out: checkpoint" in " ".join(done.stderr.split())
    assert {rank["name"] for rank in json.loads(done.stdout)["ranks"]} == {"random", "safe", "rollout", "whole@720"}
    assert (tmp_path / "ladder-ofc-game.fantasyland=off-game.stay_by_top=true.json").is_file()


def test_runs_that_see_other_things_meet_nobody(tmp_path: Path) -> None:
    for name, sticks in (("short", "5"), ("long", "9")):
        words = ["--runs-dir", tmp_path, "--steps", "64", *STICKS, "--set", f"env.sticks={sticks}"]
        assert maple("train", NIM, "--run", name, *words).returncode == 0
    against = maple("eval", "long", "--runs-dir", tmp_path, "--against", "short", "--hands", "4")
    assert against.returncode == 2
    assert "--against short: that run was trained with game options" in " ".join(against.stderr.split())
    ladder = maple("ladder", NIM, "--runs-dir", tmp_path, "--hands", "4", "--json", "--set", "env.sticks=9")
    assert ladder.returncode == 0, ladder.stderr
    assert "run 'short' is left out: that run was trained with game options" in " ".join(ladder.stderr.split())
    assert [rank["name"] for rank in json.loads(ladder.stdout)["ranks"] if "@" in rank["name"]] == ["long@72"]


def test_an_exported_file_is_told_of(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    done = maple("export", "tiny", "--runs-dir", runs, "--onnx", tmp_path / "tiny.onnx", "--json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tiny.onnx").is_file()
    assert json.loads(done.stdout)["largest_difference"] < 1e-5
    nowhere = maple("export", "tiny", "--runs-dir", runs, "--onnx", runs / "tiny" / "config.json" / "x.onnx")
    assert (nowhere.returncode, "choose another place" in nowhere.stderr) == (2, True)


def test_an_export_without_a_name_goes_into_the_runs_folder(runs: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for words, name in ((["tiny", "--onnx"], "tiny.onnx"), (["--onnx", "--json", "tiny@720"], "tiny-720.onnx")):
        done = maple("export", "--runs-dir", runs, *words)
        assert done.returncode == 0, done.stderr
        assert (runs / "tiny" / "export" / name).is_file()
        assert str(runs / "tiny" / "export" / name) in "".join(done.stdout.split("\n"))
    assert maple("export", "tiny", "--runs-dir", runs).returncode == 2
