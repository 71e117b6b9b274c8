"""What is wrong with a command line is said in a sentence, by exit code 2 and without a stack trace."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest

from maple.cli.output import warn
from tests.cli.command import maple


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
