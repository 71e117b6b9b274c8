"""Files of the user's own are part of what a run is: their contents, and where they lie."""

from __future__ import annotations

import hashlib
import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from maple.core.config import Config
from maple.core.errors import ConfigError, GameError, RunError
from maple.core.sources import load_config
from maple.games import make_game
from maple.games.contract import files_of
from maple.games.wargame.content import names_of
from maple.runs.own_files import OwnFiles
from maple.runs.store import RunFolder
from maple.training.agent import load_agent
from maple.training.session import train_run

SMALL = ["algo=ppo", "tables=32", "net.hidden=[16]", "ppo.horizon=512", "ppo.minibatch=128", "threads=1"]
SMALL += ["game.points=200", "game.rounds=2", "probe_every_s=0"]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A map of one's own, in the folder that work is done in."""
    shipped = resources.files("maple.games.wargame") / "data" / "maps" / f"{names_of('maps')[0]}.yml"
    path = tmp_path / "mine.yml"
    path.write_text(shipped.read_text())
    monkeypatch.chdir(tmp_path)
    return path


def _config(steps: int, board: str) -> Config:
    return load_config("wargame", settings=[*SMALL, f"game.maps=[{board}]"], flags={"steps": steps})


def test_a_run_goes_on_with_the_same_contents_only(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path / "run")
    train_run(_config(500, "mine.yml"), run, lambda _: True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    went_on = train_run(_config(1000, "../mine.yml"), run, lambda _: True)
    assert went_on.before["steps"] >= 500
    assert load_agent(run.path).game.settings.model_dump()["maps"] == [str(board)]
    before = sorted(run.path.rglob("*"))
    board.write_text(f"{board.read_text()}# moved a wall\n")
    with pytest.raises(ConfigError, match=r"mine\.yml is not what it was when run 'run' began; put that back, or"):
        train_run(_config(1500, str(board)), run, lambda _: True)
    assert sorted(run.path.rglob("*")) == before


def test_what_a_file_says_now_is_what_is_played(board: Path) -> None:
    first = make_game("wargame", {"maps": ["mine.yml"]})
    board.write_text(board.read_text().replace("#", "."))  # without its walls
    second = make_game("wargame", {"maps": ["mine.yml"]})
    assert files_of(first).keys() == files_of(second).keys() == {str(board)}
    assert files_of(second) == {str(board): hashlib.sha256(board.read_bytes()).hexdigest()}
    assert files_of(first) != files_of(second)
    assert not np.array_equal(first.book, second.book)  # type: ignore[attr-defined]


def test_teams_count_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Pikachu\n")
    (tmp_path / "b.txt").write_text("Snorlax\n")
    game = make_game("showdown", {"format": "gen9ou", "team": str(tmp_path)})
    pikachu = hashlib.sha256(b"Pikachu\n").hexdigest()
    assert files_of(game).keys() == {str(tmp_path / "a.txt"), str(tmp_path / "b.txt")}
    assert files_of(game)[str(tmp_path / "a.txt")] == pikachu


def test_games_without_files_have_none() -> None:
    assert files_of(make_game("ofc")) == {}
    assert files_of(make_game("wargame")) == {}
    with pytest.raises(GameError, match=r"nowhere\.yml cannot be read"):
        make_game("wargame", {"roster": "nowhere.yml"})


def test_a_run_keeps_what_it_is_played_with(board: Path, tmp_path: Path) -> None:
    variant = tmp_path / "variant.yml"
    variant.write_text(f"{board.read_text()}# another\n")
    practice = '[{share: 0.5, game: {maps: ["variant.yml"]}}]'
    settings = [*SMALL, "game.maps=[mine.yml]", f"practice={practice}"]
    run = RunFolder(tmp_path / "runs" / "run")
    train_run(load_config("wargame", settings=settings, flags={"steps": 500}), run, lambda _: True)
    sums = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (board, variant)}
    assert run.read_json("files.json") == sums
    copies = sorted((run.path / "files").iterdir())
    assert sorted(path.read_bytes() for path in copies) == sorted(path.read_bytes() for path in (board, variant))
    for path in (board, variant):
        path.unlink()
    moved = RunFolder(tmp_path / "elsewhere" / "run")
    shutil.copytree(run.path, moved.path)
    shutil.rmtree(run.path)
    config = load_agent(moved.path).config
    assert all(Path(path).parent == moved.path / "files" for path in config.game["maps"])
    went_on = train_run(config.model_copy(update={"steps": 1500}), moved, lambda _: True)
    assert went_on.before["steps"] >= 500
    shutil.move(moved.path, run.path)  # its newest checkpoint names copies that are gone in turn
    copy = f"{sums[str(board)][:16]}-mine.yml"
    assert load_agent(run.path).config.game["maps"] == [str(run.path / "files" / copy)]


def test_a_run_that_went_on_with_copies_goes_on_with_the_files_again(board: Path, tmp_path: Path) -> None:
    run, text = RunFolder(tmp_path / "run"), board.read_text()
    train_run(_config(500, "mine.yml"), run, lambda _: True)
    board.unlink()
    train_run(load_agent(run.path).config.model_copy(update={"steps": 1000}), run, lambda _: True)
    board.write_text(text)
    assert train_run(_config(1500, "mine.yml"), run, lambda _: True).before["steps"] >= 1000
    board.write_text(f"{text}# moved a wall\n")
    with pytest.raises(ConfigError, match=r"mine\.yml is not what it was when run 'run' began; put that back, or"):
        train_run(_config(2000, "mine.yml"), run, lambda _: True)


def test_a_copy_that_was_changed_is_not_played_with(board: Path, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    train_run(_config(500, "mine.yml"), run, lambda _: True)
    board.unlink()
    next((run.path / "files").iterdir()).write_text("nonsense")
    with pytest.raises(RunError, match=r"is not what it was when the run began; put .*mine\.yml back where it lay"):
        load_agent(run.path)


def test_a_folder_of_teams_is_kept_file_by_file(tmp_path: Path) -> None:
    teams = tmp_path / "teams"
    teams.mkdir()
    for name, text in (("a.txt", "Pikachu\n"), ("b.txt", "Snorlax\r\n")):
        (teams / name).write_bytes(text.encode())
    game = make_game("showdown", {"format": "gen9ou", "team": str(teams)})
    own = OwnFiles(tmp_path / "run")
    before = files_of(game)
    own.keep(before)
    config = {"game": {"format": "gen9ou", "team": f"{teams},{tmp_path}/other.txt"}}
    assert own.at_hand(config)["game"] == config["game"]
    shutil.rmtree(teams)
    first, second, other = OwnFiles(tmp_path / "run").at_hand(config)["game"]["team"].split(",")
    assert other == f"{tmp_path}/other.txt"
    kept = files_of(make_game("showdown", {"format": "gen9ou", "team": f"{first},{second}"}))
    assert list(kept.values()) == list(before.values())
