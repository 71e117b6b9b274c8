"""Run folders: where a run's config, events and checkpoints live, and who may write there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from maple.core.errors import RunError, nearest

__all__ = ["RunFolder", "default_runs_dir", "find_run", "write_atomically"]


def default_runs_dir() -> Path:
    """Where runs go unless told otherwise: MAPLE_RUNS_DIR, or `runs` beside the user."""
    return Path(os.environ.get("MAPLE_RUNS_DIR", "runs"))


def write_atomically(path: Path, text: str) -> None:
    """Write a whole file or none of it."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RunError(f"cannot write {path}: {error.strerror}; free some space or choose another --runs-dir") from None


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
        """Hold the folder for this process alone; made if it is not there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock")
            lock.acquire(timeout=0)
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
            lock.release()

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file of the run."""
        write_atomically(self.path / name, json.dumps(content, indent=2) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON file of the run."""
        try:
            return dict(json.loads((self.path / name).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            raise RunError(f"cannot read {self.path / name}; is {self.name!r} a run?") from None

    def append_event(self, event: Mapping[str, Any]) -> None:
        """Add a line to the run's record of figures."""
        try:
            with (self.path / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")
        except OSError as error:
            raise RunError(f"cannot write {self.path / 'events.jsonl'}: {error.strerror}; free some space") from None

    def events(self) -> list[dict[str, Any]]:
        """All figures recorded so far; a line cut off by a crash is left out."""
        path = self.path / "events.jsonl"
        if not path.exists():
            return []
        rows = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return rows


def find_run(run: str, runs_dir: Path | None) -> Path:
    """The folder of a run, given by name or by path; a checkpoint's own folder is left as it is."""
    path = Path(run)
    base = runs_dir or default_runs_dir()
    for candidate in (base / run, path):
        if candidate.is_dir() and ((candidate / "checkpoints").is_dir() or (candidate / "checkpoint.json").is_file()):
            return candidate
    known = [p.name for p in base.iterdir() if (p / "checkpoints").is_dir()] if base.is_dir() else []
    hint = nearest(run, known) if known else f"there are no runs in {base.resolve()}; train one or pass --runs-dir"
    raise RunError(f"there is no run {run!r}; {hint}")
