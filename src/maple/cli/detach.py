"""Runs that outlive their terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import typer

from maple.cli.output import notes, print_json
from maple.core.errors import RunError
from maple.runs.store import RunFolder

__all__ = ["go_on_alone"]


def go_on_alone(folder: RunFolder, json: bool) -> None:
    """Start this very command again in a session of its own, without a terminal, and say how to see its progress.

    What keeps it from training is told here, as if it had stayed: the sentence is waited for, or word that all is well.
    """
    if folder.path.is_dir() and folder.in_use:
        raise RunError(
            f"run {folder.name!r} is in use by another process; see it with: maple runs attach {folder.name}"
        )
    arguments = [argument for argument in sys.argv[1:] if argument != "--detach"]
    if "--run" not in arguments and not any(argument.startswith("--run=") for argument in arguments):
        arguments += ["--run", folder.name]
    made = folder.missing
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        (folder.path / ".started").unlink(missing_ok=True)
        log = (folder.path / "log.txt").open("a", encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot use run folder {folder.path}: {error.strerror}; choose another --runs-dir") from None
    with log:
        said = log.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "maple.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    if not _trains(child, folder):
        with Path(log.name).open("rb") as file:
            file.seek(said)
            notes.print(file.read().decode(errors="replace").rstrip(), markup=False, highlight=False, soft_wrap=True)
        folder.unmake(made)
        raise typer.Exit(child.returncode if child.returncode > 0 else 1)
    if json:
        print_json({"run": folder.name, "path": str(folder.path), "process": child.pid})
        return
    notes.print(f"run [bold]{folder.name}[/] goes on in the background (process {child.pid})")
    notes.print(f"its progress: maple runs attach {folder.name}; its output: {folder.path / 'log.txt'}", soft_wrap=True)


def _trains(child: subprocess.Popen[bytes], folder: RunFolder) -> bool:
    """Wait until the run is under way or has ended; False if it failed."""
    while child.poll() is None and not folder.was_started_by(child.pid):
        time.sleep(0.05)
    return not child.poll()
