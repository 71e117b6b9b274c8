"""Run folders: where a run's config, events and checkpoints live, and who may write there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from maple.core.errors import RunError, nearest

MARKS = {".lock", ".started", "log.txt"}  # say something of a process, nothing of a run
LOOKING_S = 0.5  # whoever looks whether a run is in use holds its lock for a moment
TAIL = 64 * 1024  # bytes that surely hold a record's last line

__all__ = ["RunFolder", "default_runs_dir", "find_run", "write_atomically"]


def default_runs_dir() -> Path:
    """Where runs go unless told otherwise: MAPLE_RUNS_DIR, or `runs` beside the user."""
    return Path(os.environ.get("MAPLE_RUNS_DIR", "runs"))


def write_atomically(path: Path, text: str, option: str = "--runs-dir") -> None:
    """Write a whole file or none of it; `option` is what says where."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise RunError(f"cannot write {path}: {error.strerror}; free some space or choose another {option}") from None


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """The run's name: its folder's."""
        return self.path.name

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are, a folder each, named by their step."""
        return self.path / "checkpoints"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process alone; made if need be, and gone again if nothing came to be in it."""
        made = self.missing
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock")
            lock.acquire(timeout=LOOKING_S)
        except Timeout:
            raise RunError(
                f"run {self.name!r} in {self.path.parent} is in use by another process; "
                "wait for it to end or give this one another --run name"
            ) from None
        except OSError as error:
            raise RunError(f"cannot use run folder {self.path}: {error.strerror}; choose another --runs-dir") from None
        try:
            yield
        finally:
            self.unmake(made)
            lock.release()

    @property
    def missing(self) -> list[Path]:
        """The folders that have to be made for this one, itself first."""
        return [folder for folder in (self.path, *self.path.parents) if not folder.exists()]

    def unmake(self, made: list[Path]) -> None:
        """Remove the folder if it was made and holds nothing but marks, and those around it that were made for it."""
        if not made or not {path.name for path in self.path.iterdir()} <= MARKS:
            return
        with suppress(OSError):  # Windows keeps a file that is open
            for mark in MARKS:
                (self.path / mark).unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()

    @property
    def in_use(self) -> bool:
        """Whether a process holds the folder."""
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        except OSError:
            return False
        lock.release()
        return False

    def mark_started(self) -> None:
        """Leave word, for whoever started this process in the background, that nothing keeps it from training."""
        write_atomically(self.path / ".started", str(os.getpid()))

    def was_started_by(self, process: int) -> bool:
        """Whether the process of this number has left that word."""
        with suppress(OSError):
            return (self.path / ".started").read_text(encoding="utf-8") == str(process)
        return False

    @property
    def kept(self) -> bool:
        """Whether the run is marked as one to keep."""
        return (self.path / ".keep").exists()

    def set_kept(self, keep: bool) -> None:
        """Mark the run as one to keep, or take the mark back."""
        if keep:
            (self.path / ".keep").touch()
        else:
            (self.path / ".keep").unlink(missing_ok=True)

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of the run; empty if it is not there or cannot be read."""
        try:
            return dict(json.loads((self.path / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file of the run."""
        write_atomically(self.path / name, json.dumps(content, indent=2) + "\n")

    def log(self, text: str) -> None:
        """Add to the run's log: what its workers printed, and what became of them. A full disk loses it, no more."""
        with suppress(OSError), (self.path / "run.log").open("a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Add a line to one of the run's records: `events.jsonl` has an update a line, `evaluations.jsonl` a result."""
        self.extend(name, [record])

    def extend(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Add lines to one of the run's records; half a line that a full disk or a crash left is closed first."""
        lines = "".join(json.dumps(record) + "\n" for record in records).encode()
        try:
            with (self.path / name).open("a+b") as file:
                if file.seek(0, os.SEEK_END) and not _ends_a_line(file):
                    lines = b"\n" + lines
                file.write(lines)
        except OSError as error:
            raise RunError(f"cannot write {self.path / name}: {error.strerror}; free some space") from None

    def records(self, name: str) -> list[dict[str, Any]]:
        """All lines of a record; one that a crash cut off is left out."""
        path = self.path / name
        return _parsed(path.read_bytes()) if path.exists() else []

    def last_record(self, name: str) -> dict[str, Any]:
        """The newest line of a record, or nothing; read from the end, since records grow for days."""
        path = self.path / name
        if not path.exists():
            return {}
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            lines = _parsed(file.read())
        return lines[-1] if lines else {}


def _ends_a_line(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _parsed(content: bytes) -> list[dict[str, Any]]:
    rows = []
    for line in content.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def find_run(run: str, runs_dir: Path | None) -> Path:
    """The folder of a run, given by name or by path; a checkpoint's own folder is left as it is.

    `NAME@best` is a run's best agent so far, `NAME@STEP` its checkpoint or milestone at that step.
    """
    base = runs_dir or default_runs_dir()
    name, at, which = run.rpartition("@")
    if at and not Path(run).exists() and not (base / run).exists():
        return _checkpoint_of(find_run(name, runs_dir), which)
    path = Path(run)
    for candidate in (base / run, path):
        if candidate.is_dir() and ((candidate / "checkpoints").is_dir() or (candidate / "checkpoint.json").is_file()):
            return candidate
    known = [p.name for p in base.iterdir() if (p / "checkpoints").is_dir()] if base.is_dir() else []
    hint = nearest(run, known) if known else f"there are no runs in {base.resolve()}; train one or pass --runs-dir"
    raise RunError(f"there is no run {run!r}; {hint}")


def _checkpoint_of(folder: Path, which: str) -> Path:
    """One of a run's checkpoints, by its step or as `best`."""
    checkpoints = folder / "checkpoints"
    found = {path.name.lstrip("0") or "0": path for path in sorted(checkpoints.glob("[0-9]*")) if path.name.isdigit()}
    found |= {path.name.lstrip("0") or "0": path for path in sorted((checkpoints / "milestones").glob("[0-9]*"))}
    if (checkpoints / "best" / "checkpoint.json").exists():
        found["best"] = checkpoints / "best"
    if which not in found:
        raise RunError(f"run {folder.name!r} has no checkpoint {which!r}; it has {', '.join(found) or 'none'}")
    return found[which]
