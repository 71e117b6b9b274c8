"""Records for spreadsheets and TensorBoard."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from maple.runs.records import Recorder


def _record(step: int) -> dict[str, object]:
    return {"event": "update", "steps": step, "figures": {"loss": 1 / step}, "game": {"foul": 0.5}}


def test_a_row_an_update_also_after_a_resume(tmp_path: Path) -> None:
    for steps in ((1, 2), (3, 4)):
        recorder = Recorder(tmp_path, steps[0], as_csv=True, tensorboard=False, warn=pytest.fail)
        for step in steps:
            recorder.add(step, _record(step))
        recorder.close()
    rows = list(csv.DictReader((tmp_path / "progress.csv").read_text().splitlines()))
    assert [int(row["steps"]) for row in rows] == [1, 2, 3, 4]
    assert [float(row["figures.loss"]) for row in rows] == [1, 1 / 2, 1 / 3, 1 / 4]


def test_a_figure_that_comes_later_gets_a_column(tmp_path: Path) -> None:
    for steps in ((1, 2), (3, 4)):
        recorder = Recorder(tmp_path, steps[0], as_csv=True, tensorboard=False, warn=pytest.fail)
        for step in steps:
            recorder.add(step, {**_record(step), **({"probe": {"points": step}} if step % 2 == 0 else {})})
        recorder.close()
    rows = list(csv.DictReader((tmp_path / "progress.csv").read_text().splitlines()))
    assert [row["probe.points"] for row in rows] == ["", "2", "", "4"]
    assert [row["steps"] for row in rows] == ["1", "2", "3", "4"]
    assert {path.name for path in tmp_path.iterdir()} == {"progress.csv"}


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not installed"
    )
    recorder = Recorder(tmp_path, 0, as_csv=False, tensorboard=True, warn=pytest.fail)
    for step in (10, 20):
        recorder.add(step, _record(step))
    recorder.close()
    events = reading.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    loss = events.Scalars("figures/loss")
    assert [event.step for event in loss] == [10, 20]
    assert [event.value for event in loss] == pytest.approx([0.1, 0.05])


def test_a_disk_that_fails_costs_records_only(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").mkdir()
    told: list[str] = []
    with pytest.raises(IsADirectoryError):
        Recorder(tmp_path, 0, as_csv=True, tensorboard=False, warn=told.append)
    (tmp_path / "progress.csv").rmdir()
    recorder = Recorder(tmp_path, 0, as_csv=True, tensorboard=False, warn=told.append)
    (tmp_path / "progress.csv").mkdir()
    for step in (1, 2):
        recorder.add(step, _record(step))
    recorder.close()
    assert len(told) == 1
    assert "training goes on" in told[0]
