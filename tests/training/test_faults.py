"""What machines do to a run that nobody watches: full and read-only disks, clocks that are set back."""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maple.core.config import Config
from maple.core.errors import CheckpointError, RunError
from maple.core.sources import load_config
from maple.runs.outages import Outages
from maple.runs.store import RunFolder
from maple.training.build import keeps_anomalies
from maple.training.checkpoint import latest_checkpoint, load_checkpoint
from maple.training.session import Progress, train_run

SETTINGS = ["tables=48", "net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=240", "threads=1"]
SETTINGS += ["log.tensorboard=false", "log.csv=false", "probe_every_s=0"]


def _config(steps: int, *more: str) -> Config:
    return load_config("ofc", settings=[*SETTINGS, *more], flags={"steps": steps})


def _newest_step(run: RunFolder) -> int:
    """Of the newest checkpoint, which is read whole."""
    newest = latest_checkpoint(run.checkpoints)
    assert newest is not None
    return int(load_checkpoint(newest).meta["counters"]["steps"])


@pytest.fixture
def disk() -> Iterator[Any]:
    """A bound on the size of files stands for a full disk: call it with the bytes that fit, or None for all."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def set_room(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before if size is None else (size, before[1]))

    yield set_room
    set_room(None)


def test_a_disk_that_is_full_for_a_while_ends_no_run(tmp_path: Path, disk: Any) -> None:
    run, told, newest = RunFolder(tmp_path / "run"), list[str](), dict[int, int]()

    def tell(progress: Progress) -> bool:
        newest[progress.updates] = _newest_step(run)
        disk(1000 if 3 <= progress.updates < 7 else None)
        run.log("a worker said " + 1000 * "much")
        return True

    settings = ["checkpoint_every_s=0.0001", "probe_every_s=0.0001", "probe_hands=6"]
    last = train_run(_config(9 * 720, *settings), run, tell, warn=told.append)
    assert last.progress == 1.0
    assert newest[3] == newest[4] == newest[7] < newest[8]
    assert _newest_step(run) == last.steps
    for what in ("checkpoints", "events.jsonl"):
        said = [text for text in told if f"without {what} " in text or text.startswith(what)]
        assert len(said) == 2, told
        assert said[1] == f"{what} can be written again"
    assert [row["updates"] for row in run.records("events.jsonl")] == [1, 2, 3, 8, 9]


def test_an_anomaly_that_cannot_be_kept_ends_no_run(tmp_path: Path, disk: Any) -> None:
    told, run = list[str](), RunFolder(tmp_path)
    keep = keeps_anomalies(run, Outages(told.append))
    for number, room in enumerate((None, 1000, 1000, None)):
        disk(room)
        keep({"number": number, "log": 2000 * "x"})
    disk(None)
    assert [row["number"] for row in run.records("anomalies.jsonl")] == [0, 3]
    assert ["without anomalies.jsonl" in text for text in told] == [True, False]


def test_a_disk_that_is_full_at_the_end_is_told_of(tmp_path: Path, disk: Any) -> None:
    run, told = RunFolder(tmp_path / "run"), list[str]()
    train_run(_config(720), run, lambda _: True)

    def tell(_: Progress) -> bool:
        disk(1000)
        return True

    with pytest.raises(CheckpointError, match="the checkpoint before it is whole: free some space"):
        train_run(_config(3000, "checkpoint_every_s=0.0001"), run, tell, warn=told.append)
    disk(None)
    assert _newest_step(run) < 3000
    assert train_run(_config(3000), run, lambda _: True).progress == 1.0


def test_a_folder_that_may_only_be_read_is_told_of_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so that the file system's answer is put in its place."""
    run = RunFolder(tmp_path / "run")
    train_run(_config(720), run, lambda _: True)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("maple.runs.store.FileLock.acquire", refuse)
    with pytest.raises(RunError, match=r"cannot use run folder .*: Read-only file system; choose another --runs-dir"):
        train_run(_config(3000), run, lambda _: True)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_folder_that_becomes_read_only_keeps_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, told, opened, read_only = RunFolder(tmp_path / "run"), list[str](), Path.open, [False]

    def refuse(path: Path, mode: str = "r", *more: Any, **others: Any) -> Any:
        if read_only[0] and mode.strip("b") != "r" and path.is_relative_to(run.path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, mode, *more, **others)

    def tell(progress: Progress) -> bool:
        read_only[0] = progress.updates >= 2
        return True

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        CheckpointError, match=r"cannot save .*: Read-only file system; the checkpoint before it is whole"
    ):
        train_run(_config(5 * 720, "checkpoint_every_s=0.0001"), run, tell, warn=told.append)
    read_only[0] = False
    assert [text.partition(" ")[0] for text in told] == ["cannot", "cannot"]
    assert [row["updates"] for row in run.records("events.jsonl")] == [1, 2]
    assert _newest_step(run) == run.last_record("events.jsonl")["steps"]
    assert train_run(_config(5 * 720), run, lambda _: True).progress == 1.0


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [2e9]

    def earlier() -> float:
        now[0] -= 3600.0
        return now[0]

    monkeypatch.setattr(time, "time", earlier)
    run, seen, saved = RunFolder(tmp_path / "run"), list[Progress](), list[Path]()
    for steps in (2000, 4000):
        config = _config(steps, "checkpoint_every_s=0.0001", "optimizer.schedule=constant")
        train_run(config, run, lambda progress: seen.append(progress) is None, saved=saved.append)
    assert len(saved) == len(seen)
    elapsed = [progress.elapsed_s for progress in seen]
    assert elapsed == sorted(elapsed)
    assert elapsed[0] > 0
    assert all(progress.eta_s >= 0 for progress in seen)
    monkeypatch.undo()
    whole = RunFolder(tmp_path / "whole")
    train_run(_config(4000, "optimizer.schedule=constant"), whole, lambda _: True)
    ends = [load_checkpoint(latest_checkpoint(one.checkpoints)).weights for one in (run, whole)]  # type: ignore[arg-type]
    assert all((ends[0][name] == ends[1][name]).all() for name in ends[0])
