"""A run's figures for spreadsheets and TensorBoard, written by a thread of its own."""

from __future__ import annotations

import csv
import queue
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maple.core.config import flat
from maple.core.errors import MissingExtraError
from maple.perf.spans import IDLE, span

__all__ = ["Recorder", "tensorboard_is_there"]


def tensorboard_is_there() -> bool:
    """Whether TensorBoard's package is installed."""
    return find_spec("tensorboard") is not None


class _Csv:
    """`progress.csv`: a row per update; a figure that is first told later gets a column from then on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: list[str] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self._columns = next(csv.reader(file), [])

    def write(self, _step: int, figures: Mapping[str, Any]) -> None:
        new = [name for name in figures if name not in self._columns]
        if new:
            self._widen([*self._columns, *new])
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([figures.get(name, "") for name in self._columns])

    def _widen(self, columns: list[str]) -> None:
        """Write the file anew with these columns, whole or not at all; rows from before have nothing in new ones."""
        part = self._path.with_name(f".{self._path.name}.part")
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            if self._columns:
                with self._path.open(newline="", encoding="utf-8") as before:
                    rows = csv.reader(before)
                    next(rows)
                    writer.writerows([*row, *[""] * (len(columns) - len(row))] for row in rows)
        part.replace(self._path)
        self._columns = columns

    def close(self) -> None:
        """Nothing is open between rows."""


class _TensorBoard:
    """Event files in `tensorboard/`."""

    def __init__(self, folder: Path, first_step: int) -> None:
        if not tensorboard_is_there():
            raise MissingExtraError("TensorBoard is not installed: pip install 'maple-rl[records]'")
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder), purge_step=first_step)

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        for name, value in figures.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name.replace(".", "/"), value, step)

    def close(self) -> None:
        self._writer.close()


class Recorder:
    """Takes an update's record and writes it soon; a disk that fails costs records, never the run."""

    def __init__(
        self, folder: Path, first_step: int, *, as_csv: bool, tensorboard: bool, warn: Callable[[str], None]
    ) -> None:
        self._warn, self._failed = warn, False
        self._writers: list[_Csv | _TensorBoard] = []
        if as_csv:
            self._writers.append(_Csv(folder / "progress.csv"))
        if tensorboard:
            self._writers.append(_TensorBoard(folder / "tensorboard", first_step))
        self._queue: queue.SimpleQueue[tuple[int, dict[str, Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._live, name="maple-records", daemon=True)
        self._thread.start()

    def add(self, step: int, record: Mapping[str, Any]) -> None:
        """Hand over the figures of an update; returns at once."""
        if self._writers:
            self._queue.put((step, flat(dict(record))))

    def close(self) -> None:
        """Write what is left."""
        self._queue.put(None)
        with span(IDLE):
            self._thread.join(30.0)

    def _live(self) -> None:
        with span("log"):
            self._write()

    def _next(self) -> tuple[int, dict[str, Any]] | None:
        with span(IDLE):
            return self._queue.get()

    def _write(self) -> None:
        while (item := self._next()) is not None:
            for writer in self._writers:
                try:
                    writer.write(*item)
                except OSError as error:
                    if not self._failed:
                        self._warn(f"cannot write the run's records: {error.strerror}; training goes on")
                    self._failed = True
        for writer in self._writers:
            writer.close()
