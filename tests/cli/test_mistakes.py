"""What is wrong with a command line is said in a sentence, by exit code 2 and without a stack trace."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from maple.arena.record import GameRecord
from maple.cli.output import warn
from tests.cli.command import maple
from tests.games.wargame.test_content import WALL, _body, _changed, _map


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train", "ofc", "--stepz", "3"], "--stepz"),
        (["--stepz"], "--stepz"),
        (["train"], "GAME"),
        (["compare", "default"], "CANDIDATE"),
        (["nosuch"], "nosuch"),
        (["bench", "nosuch"], "nosuch"),
        (["runs", "--sort", "foo"], "--sort"),
        (["train", "ofc", "--price-per-hour", "-1"], "--price-per-hour"),
        (["train", "ofc", "--steps", "many"], "--steps"),
    ],
)
def test_a_command_line_that_cannot_be_read(arguments: list[str], named: str) -> None:
    said = maple(*arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert named in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("kind", "tree", "named"),
    [
        ("roster", _body("wounds", None), "units.guard.body.wounds is missing; write a whole number from 1 to 24"),
        ("roster", _body("save", 1), "units.guard.body.save = 1"),
        ("maps", _changed(_map(), ("deploy",), None), "deploy is missing; write a whole number from 2 to 6"),
        ("maps", _changed(_map(), ("rows", 0), "#" + "." * 21), "looks the same after half a turn"),
        ("maps", {"deploy": 4, "rows": [*WALL, ".....#....33....#.....", *WALL]}, "objective 3 cannot be reached"),
        ("missions", {"objectives": {3: {"vp": 1}}}, "points_per_vp is missing; write a whole number from 1 to 20"),
        ("missions", {"points_per_vp": 20, "objectives": {3: {"vp": 1, "opens": 9}}}, "is after the last round"),
    ],
)
@pytest.mark.parametrize("command", ["train", "show"])
def test_a_file_of_the_wargame_that_is_wrong(
    command: str, kind: str, tree: dict[str, Any], named: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(yaml.safe_dump(tree))
    value = str(path) if kind == "roster" else f"[{path}]"
    more = ["--runs-dir", tmp_path / "runs", "--steps", "10"] if command == "train" else []
    said = maple(command, "wargame", "--set", f"game.{kind}={value}", *more)
    assert (said.returncode, said.stdout) == (2, ""), said.stderr
    assert str(path) in said.stderr.replace("\n", "")
    assert named in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "runs").exists()


PLAY = ["showdown", "play", "heuristic", "--server", "h:8000"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([*PLAY, "--set", "game.formatt=gen9ou"], "showdown has no option 'formatt'; did you mean 'format'?"),
        ([*PLAY, "--set", "game.max_turns=0"], "game.max_turns = 0 cannot be used: input should be greater than"),
        (["showdown", "eval", "random", "--server", "h:8000", "--set", "game.tem=x"], "did you mean 'team'"),
        (["show", "showdown", "--set", "game.frmat=x"], "showdown has no option 'frmat'; did you mean 'format'?"),
        (["show", "showdown", "--set", "game.rewards.wine=1"], "showdown has no option 'rewards.wine'"),
    ],
)
def test_an_option_of_battles_that_is_wrong(arguments: list[str], named: str) -> None:
    said = maple(*arguments)
    assert (said.returncode, said.stdout) == (2, ""), said.stderr
    assert named in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("game", "settings", "reason"),
    [
        ("showdown", {"layout": "0123"}, "game.layout = '0123' cannot be used: views are laid out by"),
        ("ofc", {"towers": 3}, "ofc has no option 'towers'"),
    ],
)
def test_a_record_of_another_maple(game: str, settings: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "game.json"
    path.write_text(GameRecord(game, settings, 0, 0, ["random", "random"], [0], {}).text())
    said = maple("show", game, "--replay", path)
    assert (said.returncode, said.stdout) == (2, ""), said.stderr
    told = " ".join(said.stderr.split())
    assert f"game.json was recorded by another version of Maple: {reason}" in told
    assert told.endswith("; show it with that one, or record a new game")


@pytest.mark.parametrize(("answer", "code"), [("", 130), ("n\n", 0)])
def test_a_question_that_nobody_answers(
    answer: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "old"
    run.mkdir()
    (run / "config.json").write_text("{}")
    monkeypatch.setattr(sys, "stdin", StringIO(answer))
    said = maple("runs", "rm", "old", "--runs-dir", tmp_path)
    assert said.returncode == code, said.stderr
    assert "Traceback" not in said.stderr
    assert run.is_dir()


def test_ctrl_c_is_no_failure_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("maple.cli.doctor.examine", interrupted)
    said = maple("doctor")
    assert said.returncode == 130
    assert "Traceback" not in said.stderr


def test_brackets_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    said = maple("train", "ofc", "--set", "net.hidden=[a,b][/x]")
    assert said.returncode == 2
    assert "net.hidden=[a,b][/x]" in said.stderr
    warn("pip install 'maple-rl[records]' [/x]")
    assert "'maple-rl[records]' [/x]" in capsys.readouterr().err
