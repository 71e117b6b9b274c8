"""A run's folder mirrored to any place that fsspec reaches: s3://, gs://, file://, memory:// …

A thread of its own copies what changed. What is not copied yet is remembered as a set of names, never as data, so an
outage costs no memory and no time: it is caught up with when the place answers again. A checkpoint counts as copied
when every file was read back and is what was sent, and `checkpoint.json`, the last one written, is there; so whoever
fetches a run never sees half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from maple.core.errors import RunError
from maple.perf.spans import IDLE, span
from maple.runs.own_files import FILES, INDEX
from maple.runs.place import Place, is_checkpoint, is_record, open_place
from maple.runs.secrets import secrets_of, without_secrets

__all__ = ["Mirror", "bring_files", "bring_run", "fetch_run", "mirrored", "stored_settings"]

MILESTONES = "checkpoints/milestones"
OUTPUT = "log.txt"  # of a detached run
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
RECORDS_EVERY_S = 60.0
LEAVE_S, HURRIED_S = 30.0, 5.0  # for what is left to copy at the end
LARGE = 2**20  # bytes from which on a record that grows is copied again only if it …
WORTH_COPYING = 1.1  # … is so many times as long as its copy


class Mirror:
    """Copies a run's checkpoints and records in the background."""

    def __init__(
        self,
        run: Path,
        place: Place,
        warn: Callable[[str], None],
        *,
        first_wait_s: float = FIRST_WAIT_S,
        records_every_s: float = RECORDS_EVERY_S,
    ) -> None:
        self._run, self._place, self._warn = run, place, warn
        self._first_wait_s, self._records_every_s = first_wait_s, records_every_s
        self._copied: dict[str, tuple[int, int]] = {}  # of each file: size and time of change
        self._wake, self._lock = threading.Event(), threading.Lock()
        self._closing = False
        self._down_since: float | None = None
        self.failures = 0
        self._thread = threading.Thread(target=self._live, name="maple-mirror", daemon=True)
        self._thread.start()

    def changed(self) -> None:
        """A checkpoint was saved: copy soon. Returns at once."""
        self._wake.set()

    @property
    def behind(self) -> int:
        """How many files are not copied as they are now."""
        return len(self._changed())

    def close(self, timeout_s: float = LEAVE_S) -> bool:
        """Copy what is left, as far as that goes in this time; whether all was copied."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_s)
        left = self.behind
        if left:
            self._warn(f"{left} files of the run are not in {self._place.shown} yet; the next start catches up")
        return left == 0

    def _live(self) -> None:
        with span("mirror"):
            self._copy_on()

    def _sleep(self, seconds: float) -> None:
        with span(IDLE):
            if not self._closing:
                self._wake.wait(seconds)

    def _copy_on(self) -> None:
        wait = self._first_wait_s
        while True:
            closing = self._closing
            try:
                self._copy_all()
                wait = self._first_wait_s
                if self._down_since is not None:
                    away = time.monotonic() - self._down_since
                    self._warn(f"{self._place.shown} answers again after {away:.0f} s, and all is copied")
                    self._down_since = None
                if closing:
                    return
                self._sleep(self._records_every_s)
            except Exception as error:  # whatever a provider's code raises, training goes on
                self.failures += 1
                if self._down_since is None:
                    self._down_since = time.monotonic()
                    self._warn(
                        f"cannot copy to {self._place.shown} ({_reason(error)}); training goes on, copying is tried "
                        "again"
                    )
                if closing:
                    return
                self._sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT_S)

    def _changed(self) -> list[str]:
        """Files that are new or changed, each checkpoint's `checkpoint.json` after its other files, records last."""
        found = []
        for path in sorted((self._run / "checkpoints").rglob("*")):
            hidden = any(
                part.startswith(".") or part.endswith(".damaged") for part in path.relative_to(self._run).parts
            )
            if path.is_file() and not hidden:
                found.append(path.relative_to(self._run).as_posix())
        found.sort(key=lambda name: (name.rpartition("/")[0], name.endswith("checkpoint.json"), name))
        found += _records(self._run)
        return [name for name in found if self._mark(name) != self._copied.get(name)]

    def _mark(self, name: str) -> tuple[int, int] | None:
        try:
            stat = (self._run / name).stat()
        except FileNotFoundError:
            return None  # dropped for a newer one meanwhile
        return stat.st_size, stat.st_mtime_ns

    def _due(self) -> list[str]:
        """Of the files that changed those to copy now: a large record that grows waits until that is worth it.

        Records are copied whole. One of a gigabyte that is sent for every line would fill the line for all time.
        """
        changed = self._changed()
        return changed if self._closing else [name for name in changed if not self._grew_little(name)]

    def _grew_little(self, name: str) -> bool:
        mark, copied = self._mark(name), self._copied.get(name)
        if is_checkpoint(name) or mark is None or copied is None:
            return False
        return LARGE <= copied[0] < mark[0] < copied[0] * WORTH_COPYING

    def _copy_all(self) -> None:
        while True:
            self._wake.clear()
            due = self._due()
            if self._copy(due) and not any(map(is_checkpoint, due)):
                break  # records grow with every update; the next turn takes the rest
        self._drop_old()

    def _copy(self, names: list[str]) -> bool:
        """Copy these files; False if records were left because a checkpoint was saved meanwhile, which goes first."""
        for name in names:
            if self._wake.is_set() and not is_checkpoint(name) and not self._closing:
                return False
            mark = self._mark(name)
            if mark is None:
                continue
            try:
                self._place.put(self._run / name, name)
            except FileNotFoundError:
                if (self._run / name).exists():
                    raise
                continue
            self._copied[name] = mark
        return True

    def _drop_old(self) -> None:
        """Remove checkpoints that the run itself has dropped: those before its oldest. Newer ones are another's."""
        here = _steps(self._run)
        for name in self._place.names("checkpoints"):
            if name.isdigit() and here and int(name) < min(here):
                self._place.remove(f"checkpoints/{name}")
                self._copied = {
                    key: mark for key, mark in self._copied.items() if not key.startswith(f"checkpoints/{name}/")
                }


def _steps(run: Path) -> list[int]:
    """The steps at which a run has checkpoints here to go on from; not those that were set aside as damaged."""
    return [int(path.name) for path in (run / "checkpoints").glob("[0-9]*") if path.name.isdigit()]


def _records(run: Path) -> list[str]:
    found = (path.relative_to(run).as_posix() for path in [*run.glob("*"), *run.glob("*/*")] if path.is_file())
    return sorted(name for name in found if is_record(name))


def _reason(error: Exception) -> str:
    """An error of a provider's code in a line, cleaned of what is secret in this process's environment."""
    first = f"{type(error).__name__}: {error}".splitlines()[0]
    return without_secrets(first, secrets_of(os.environ))


@contextlib.contextmanager
def mirrored(
    run: Path,
    url: str | None,
    warn: Callable[[str], None],
    note: Callable[[str], None],
    hurried: Callable[[], bool] = lambda: False,
) -> Iterator[Callable[[], None]]:
    """Copy the run's folder to `url`, if there is one, while it trains; gives what is to be called at a checkpoint.

    A run that is there but not here, or further there than here, is brought here first. At the end what is left is
    copied, as far as that goes within LEAVE_S; within HURRIED_S if it is `hurried`.
    """
    if url is None:
        yield lambda: None
        return
    place = open_place(f"{url.rstrip('/')}/{run.name}")
    step = bring_run(place, run, warn)
    if step is not None:
        note(f"brought the run from {place.shown}, as it was at step {step:,}")
    mirror = Mirror(run, place, warn)
    try:
        yield mirror.changed
    finally:
        mirror.close(HURRIED_S if hurried() else LEAVE_S)


def fetch_run(place: Place, run: Path, newer_than: int = -1) -> int | None:
    """Bring a run's newest whole checkpoint here, with its milestones, its best agent and its records.

    Returns its step, or None if there is no checkpoint that is newer. A place that is further has the newer best agent
    and the newer records too, and they replace what is here; otherwise they would soon be replaced from here.
    """
    steps = [name for name in place.names("checkpoints") if name.isdigit() and int(name) > newer_than]
    for name in reversed(steps):
        newest = f"checkpoints/{name}"
        files = _whole(place, newest)
        if files is None:
            continue
        missing = [f"{MILESTONES}/{one}" for one in place.names(MILESTONES) if not (run / MILESTONES / one).exists()]
        for folder in ("checkpoints/best", *missing):
            kept = _whole(place, folder)
            if kept is not None:
                _put_here(run, folder, kept)
        for record in place.records():
            if record == OUTPUT and (run / record).exists():
                continue  # a detached run has it open and prints there at this moment
            _put_record(run, record, place.get(record))
        _put_here(run, newest, files)  # last: a fetch that was cut off is made again
        return int(name)
    return None


def bring_run(place: Place, run: Path, warn: Callable[[str], None]) -> int | None:
    """Bring a run here from where it is mirrored, if it is further there; returns the step that it was brought at.

    A place that does not answer is no reason to stop a run that is here. One that is not here is not begun anew: that
    would replace what may be there.
    """
    here = _steps(run)
    try:
        return fetch_run(place, run, max(here, default=-1))
    except RunError:
        raise
    except Exception as error:  # whatever a provider's code raises
        if here:
            warn(f"cannot read {place.shown} ({_reason(error)}); the run goes on from what is here")
            return None
        raise RunError(
            f"cannot read {place.shown} ({_reason(error)}), so it is not known whether the run was begun there; check "
            "the address, the credentials and the network, or leave --storage out"
        ) from None


def stored_settings(url: str) -> dict[str, Any]:
    """The settings of the run that is mirrored at a URL."""
    place = open_place(url.rstrip("/"))
    try:
        found = dict(json.loads(place.get("config.json")))
    except FileNotFoundError:
        raise RunError(f"there is no run at {place.shown}; give the URL of --storage and the run's name") from None
    except Exception as error:  # whatever a provider's code raises
        raise _unreadable(place, error) from None
    if not isinstance(found.get("name"), str):
        raise RunError(f"config.json in {place.shown} names no game, so it is of no run; put the run's own there")
    return found


def bring_files(url: str, run: Path) -> None:
    """Bring the files of the user's own that the run at a URL is played with, unless the run is here."""
    place = open_place(url.rstrip("/"))
    if (run / INDEX).exists() or _steps(run):
        return
    try:
        if place.has(INDEX):
            for name in [*(f"{FILES}/{name}" for name in place.names(FILES)), INDEX]:
                _put_record(run, name, place.get(name))
    except RunError:
        raise
    except Exception as error:  # whatever a provider's code raises
        raise _unreadable(place, error) from None


def _unreadable(place: Place, error: Exception) -> RunError:
    reason = f"cannot read {place.shown} ({_reason(error)})"
    return RunError(f"{reason}; check the address, the credentials and the network")


def _whole(place: Place, folder: str) -> dict[str, bytes] | None:
    """The files of a checkpoint, if all are there and as they were saved."""
    if not place.has(f"{folder}/checkpoint.json"):
        return None
    files = {"checkpoint.json": place.get(f"{folder}/checkpoint.json")}
    try:
        sums: dict[str, str] = dict(json.loads(files["checkpoint.json"])["sha256"])
        files |= {file: place.get(f"{folder}/{file}") for file in sums if file == PurePosixPath(file).name}
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        return None
    right = all(hashlib.sha256(files.get(file, b"")).hexdigest() == value for file, value in sums.items())
    return files if right else None


def _put_record(run: Path, record: str, content: bytes) -> None:
    with _writing(run):
        (run / record).parent.mkdir(parents=True, exist_ok=True)
        part = (run / record).with_name(f".{PurePosixPath(record).name}.part")
        part.write_bytes(content)
        part.replace(run / record)


def _put_here(run: Path, folder: str, files: Mapping[str, bytes]) -> None:
    """Write a checkpoint's folder whole or not at all; one of that name gives way at the last moment."""
    target = run / folder
    part, old = target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.old")
    with _writing(run):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for file, content in files.items():
            (part / file).write_bytes(content)
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.replace(old)
        part.replace(target)
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _writing(run: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {run}: {error.strerror}; free some space or choose another --runs-dir") from None
