"""Maps, rosters and teams of one's own on a machine that has only the run's address."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path

import pytest

from maple.games.showdown.runtime import NodeError, find_node, installed_modules
from maple.games.wargame.content import names_of
from tests.cli.command import maple
from tests.games.showdown.squads import HERD

SMALL = ["algo=ppo", "tables=32", "net.hidden=[16]", "ppo.horizon=512", "ppo.minibatch=128", "ppo.study=null"]
SMALL += ["game.points=200", "game.rounds=2", "probe_every_s=0"]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    shipped = resources.files("maple.games.wargame") / "data" / "maps" / f"{names_of('maps')[0]}.yml"
    path = tmp_path / "mine.yml"
    path.write_text(shipped.read_text())
    return path


def test_a_run_takes_its_map_along(board: Path, tmp_path: Path) -> None:
    settings = [word for setting in (*SMALL, f"game.maps=[{board}]") for word in ("--set", setting)]
    storage, here, there = f"file://{tmp_path}/storage", tmp_path / "here", tmp_path / "there"
    begun = ["train", "wargame", "--run", "x", "--storage", storage, *settings]
    done = maple(*begun, "--runs-dir", here, "--steps", "600")
    assert done.returncode == 0, done.stderr
    board.unlink()
    shown = maple("config", "show", f"{storage}/x", "--json")
    assert json.loads(shown.stdout)["settings"]["game.maps"]["value"] == [str(board)]
    brought = maple("train", f"{storage}/x", "--runs-dir", there, "--steps", "1200", "--evaluate", "--json")
    assert brought.returncode == 0, brought.stderr
    assert "the run's own copies in" in brought.stderr
    report = json.loads(brought.stdout)
    assert report["before"]["steps"] >= 600
    for words in (["eval", "x", "--hands", "8", "--json"], ["runs", "compare", "x"], ["runs"]):
        looked = maple(*words, "--runs-dir", there)
        assert looked.returncode == 0, looked.stderr
    seen = maple("show", "wargame", "--replay", there / "x" / report["lowest"]["record"], "--json")
    assert seen.returncode == 0, seen.stderr
    again = maple(*begun, "--runs-dir", here, "--steps", "1800")  # and back, with the command that it began with
    assert again.returncode == 0, again.stderr
    assert "brought the run from" in again.stderr


def test_a_run_takes_its_teams_along(tmp_path: Path) -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))
    teams, storage = tmp_path / "teams", f"file://{tmp_path}/storage"
    teams.mkdir()
    (teams / "herd.txt").write_text(HERD)
    settings = ["game.format=gen9ou", f"game.team={teams}", "tables=4", "ppo.horizon=64", "ppo.minibatch=32"]
    words = [word for setting in (*settings, "net.hidden=[16]") for word in ("--set", setting)]
    begun = ["train", "showdown", "--run", "x", "--storage", storage, "--steps", "64", "--runs-dir"]
    done = maple(*begun, tmp_path / "here", *words)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(teams)
    brought = maple("train", f"{storage}/x", "--runs-dir", tmp_path / "there", "--steps", "128", "--json")
    assert brought.returncode == 0, brought.stderr
    assert json.loads(brought.stdout)["before"]["steps"] >= 64
    judged = maple("eval", "x", "--runs-dir", tmp_path / "there", "--hands", "2", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["game"]["team"].endswith("-herd.txt")


def test_a_run_without_its_map_anywhere_says_so(board: Path, tmp_path: Path) -> None:
    board.unlink()
    done = maple("train", "wargame", "--set", f"game.maps=[{board}]", "--runs-dir", tmp_path / "runs", "--steps", "9")
    assert done.returncode == 2
    assert f"{board} cannot be read; name a file that is there" in " ".join(done.stderr.split())
    assert not (tmp_path / "runs").exists()
