"""Signals and lost lines: at no moment do they end a run otherwise than well."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from threading import Event

import llvmlite.binding as llvm
import pytest
import typer

from maple.cli.app import app
from maple.cli.interruptions import Interruptions
from maple.cli.output import _LastingConsole
from maple.runs.store import RunFolder
from tests.cli.command import TINY, command_line, maple


def _flat(text: str) -> str:
    """Without the line breaks of a terminal's width."""
    return " ".join(text.split())


def _terminate(*_: object, **__: object) -> float:
    os.kill(os.getpid(), signal.SIGTERM)
    return 0.0


@pytest.mark.parametrize(
    ("moment", "said", "trained"),
    [
        ("compile_kernels", "the same command goes on", False),
        ("evaluation", "stopped before its evaluation; the same command evaluates it: --run x", True),
    ],
)
def test_a_machine_that_is_taken_away_at_any_moment_ends_a_run_well(
    moment: str, said: str, trained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"maple.cli.sitting.{moment}", _terminate)
    done = maple("train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "700", "--evaluate", *TINY)
    assert done.returncode == 0, done.stderr
    assert said in _flat(done.stderr)
    assert any((tmp_path / "x" / "checkpoints").glob("[0-9]*")) == trained


def test_a_machine_that_is_taken_away_does_not_wait_for_an_update_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maple.cli.interruptions.PATIENCE_S", 0.0)
    command = ["train", "tests.games.external.envs:Preempted", "--run", "x", "--runs-dir", tmp_path, "--workers", "0"]
    command += ["--set", "tables=4", "--set", "net.hidden=[8]", "--set", "ppo.horizon=1024", "--steps", "2000"]
    left = maple(*command)
    assert left.returncode == 0, left.stderr
    assert "stopped before its first update had ended; the same command goes on: --run x" in _flat(left.stderr)
    whole = maple(*command, "--json")
    assert whole.returncode == 0, whole.stderr
    assert json.loads(whole.stdout)["steps"] >= 2000


@pytest.mark.parametrize("during", ["evaluation", "compile_kernels"])
def test_nobody_else_has_a_run_from_its_first_moment_to_its_last(
    during: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def look(*_: object, **__: object) -> float:
        seen.append(RunFolder(tmp_path / "x").in_use)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"maple.cli.sitting.{during}", look)
    words = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "700", "--evaluate", *TINY]
    assert maple(*words).returncode == 130
    assert seen == [True]
    assert not RunFolder(tmp_path / "x").in_use


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 0), ("SIGHUP", 3)])
def test_a_signal_while_the_command_is_loaded_ends_no_run_badly(number: str, code: int) -> None:
    """Something that is loaded sends it, at a moment when nothing of the command is there yet."""
    program = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'maple.cli.app':\n"
        f"            os.kill(os.getpid(), signal.{number})\n"
        "            sys.exit(3)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['maple', 'train', 'ofc']\n"
        "from maple.cli.__main__ import main\n"
        "main()\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == code


def test_signals_mean_something_else_while_there_is_something_to_save() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    found = Interruptions()
    with found, found.training():
        os.kill(os.getpid(), signal.SIGHUP)
        assert (found.hung_up, found.stop) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert found.stop
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(typer.Exit) as ended, Interruptions():
        _terminate()
    assert ended.value.exit_code == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def _wait_for_it() -> None:
    Event().wait(60)
    pytest.fail("the signal was dropped")


class _Finalized:
    """Sends a signal where Python drops exceptions, as callbacks of the compiler do."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, typer.Exit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_is_heard_where_exceptions_are_dropped(
    number: signal.Signals, error: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    before = sys.unraisablehook

    def forget() -> None:
        _Finalized(number)
        _wait_for_it()

    with pytest.raises(error), Interruptions():
        forget()
    assert sys.unraisablehook is before
    assert "Traceback" not in capfd.readouterr().err


def test_nothing_is_raised_where_the_compiler_calls_back(capfd: pytest.CaptureFixture[str]) -> None:
    """An exception that it drops there has ended in a segmentation fault."""
    called = list[object]()

    def in_between(module: object) -> None:
        called.append(module)
        os.kill(os.getpid(), signal.SIGTERM)

    def load() -> None:
        target = llvm.Target.from_default_triple().create_target_machine()
        with llvm.create_mcjit_compiler(llvm.parse_assembly("define i32 @f() { ret i32 7 }"), target) as engine:
            engine.set_object_cache(getbuffer_func=in_between)
            engine.finalize_object()
        called.append("to the end")
        _wait_for_it()

    with pytest.raises(typer.Exit), Interruptions():
        load()
    assert called[1:] == ["to the end"]
    assert "Traceback" not in capfd.readouterr().err


def test_a_second_signal_does_not_end_what_is_ending() -> None:
    ended = []

    def end() -> None:
        try:
            _terminate()
        finally:
            _terminate()
            ended.append(True)

    with pytest.raises(typer.Exit), Interruptions():
        end()
    assert ended == [True]


def test_other_exceptions_that_are_dropped_are_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda dropped: told.append(str(dropped.exc_value)))

    class Failing:
        def __del__(self) -> None:
            raise ValueError("a mistake")

    with Interruptions():
        Failing()
    assert told == ["a mistake"]


def test_a_pipe_that_nobody_reads_any_more_does_not_end_a_run(tmp_path: Path) -> None:
    """As over an SSH line without a terminal: no signal comes, the next write fails."""
    words = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "30000", *TINY]
    child = subprocess.Popen(command_line(*words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert child.stderr is not None
    child.stderr.readline()
    child.stderr.close()
    assert child.wait(120) == 0
    assert (tmp_path / "x" / "checkpoints" / "000000030240").is_dir()


class _Gone(StringIO):
    def write(self, _: str) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_terminal_that_went_away_unannounced_is_written_to_no_more() -> None:
    console = _LastingConsole(file=_Gone())
    console.print("anybody there?")
    console.print("nobody")
    assert console.quiet


def test_stack_traces_do_not_show_what_variables_hold() -> None:
    assert app.pretty_exceptions_show_locals is False
