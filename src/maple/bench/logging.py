"""What logging costs: console, file and TensorBoard at each level, in slices of one run that take turns."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.arena.watched import WatchedArena
from maple.bench.measure import machine, ratio_interval
from maple.bench.train import PAIRS, MapleSide
from maple.core.config import Config
from maple.core.step import Step
from maple.training.loop import Update

__all__ = ["LEVELS", "bench_logging"]

LEVELS = ("update", "batch", "decision")  # a record after each update, each batch of decisions, each decision
Log = Callable[[dict[str, float], int], None]  # a record and the step it belongs to


@contextmanager
def _console() -> Iterator[Log]:
    """Lines to a terminal; somebody reads them at the other end, as a terminal does."""
    if sys.platform == "win32":
        reader, writer = os.pipe()
    else:
        reader, writer = os.openpty()

    def read_all() -> None:
        while True:
            try:
                if not os.read(reader, 65536):
                    return
            except OSError:  # the end of a terminal
                return

    thread = threading.Thread(target=read_all, daemon=True)
    thread.start()
    try:
        yield lambda record, step: _write_line(writer, record, step)
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)


def _write_line(descriptor: int, record: dict[str, float], step: int) -> None:
    text = "  ".join(f"{name} {value:.4g}" for name, value in record.items())
    os.write(descriptor, f"{step}  {text}\n".encode())


@contextmanager
def _file() -> Iterator[Log]:
    """JSON lines, flushed one by one, so that a crash loses none."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log.jsonl").open("w") as file:

        def log(record: dict[str, float], step: int) -> None:
            file.write(json.dumps({"step": step, **record}) + "\n")
            file.flush()

        yield log


@contextmanager
def _tensorboard() -> Iterator[Log]:
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:

        def log(record: dict[str, float], step: int) -> None:
            for name, value in record.items():
                writer.add_scalar(name, value, step)

        yield log


class _Timed:
    """A log, and the seconds that the caller spent in it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.seconds, self.records = 0.0, 0

    def __call__(self, record: dict[str, float], step: int) -> None:
        began = time.perf_counter()
        self._log(record, step)
        self.seconds += time.perf_counter() - began
        self.records += 1


class _LoggedArena(WatchedArena):
    """An arena that tells of every batch, or of every decision in it."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self.level = ""
        self.log: Log | None = None
        self._steps = 0
        self._step: Step | None = None

    def recv(self) -> Step:
        self._step = self._arena.recv()
        return self._step

    def send(self, action: NDArray[Any]) -> None:
        if self.log is not None and self._step is not None:
            reward = self._step.reward[:, 0]
            if self.level == "batch":
                self.log({"reward": float(reward.mean()), "action": float(action.mean())}, self._steps)
            elif self.level == "decision":
                for row in range(len(action)):
                    record = {"reward": float(reward[row]), "action": float(action[row])}
                    self.log(record, self._steps + row)
        self._steps += len(action)
        self._arena.send(action)


def bench_logging(config: Config, seconds: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """What each kind of logging costs at each level: its share of the training thread's time, and throughput over that
    without, which also knows what it costs others; `seconds` for all of it.
    """
    kinds = {"console": _console, "file": _file}
    if find_spec("tensorboard") is not None:
        kinds["tensorboard"] = _tensorboard
    variants = [("none", ""), *((kind, level) for kind in kinds for level in LEVELS)]
    slice_s = seconds / ((PAIRS + 1) * len(variants))
    speeds: dict[tuple[str, str], list[float]] = {variant: [] for variant in variants}
    spent: dict[tuple[str, str], list[float]] = {variant: [0.0, 0.0, 0.0] for variant in variants}
    with ExitStack() as stack:
        logs = {kind: stack.enter_context(make()) for kind, make in kinds.items()}
        side = stack.enter_context(MapleSide(config))
        arena = side.trainer.arena = _LoggedArena(side.trainer.here)

        def told(log: Log | None, level: str) -> Callable[[Update], None]:
            def after_update(update: Update) -> None:
                if log is not None and level == "update":
                    log({**update.figures, "progress": update.progress}, update.counters.steps)

            return after_update

        for number in range(PAIRS + 1):
            for kind, level in variants if number % 2 == 0 else reversed(variants):
                tell(f"round {number + 1} of {PAIRS + 1}: {kind} {level}")
                timed = _Timed(logs[kind]) if kind in logs else None
                arena.level, arena.log = level, timed
                began = time.perf_counter()
                speed = side.slice(slice_s, told(arena.log, level))
                if number > 0:
                    speeds[kind, level].append(speed)
                    passed = time.perf_counter() - began
                    found = (timed.seconds, timed.records, passed) if timed else (0.0, 0, passed)
                    spent[kind, level] = [a + b for a, b in zip(spent[kind, level], found, strict=True)]
    rows = []
    for (kind, level), values in speeds.items():
        ratio, interval = ratio_interval(values, speeds["none", ""])
        seconds, records, passed = spent[kind, level]
        row = {"to": kind, "level": level, "steps_per_s": float(np.median(values)), "ratio": ratio}
        row |= {"share": seconds / passed, "us_per_record": 1e6 * seconds / max(1.0, records)}
        rows.append({**row, "ratio_ci95": list(interval)})
    missing = [] if "tensorboard" in kinds else ["tensorboard is not installed"]
    return {"game": config.name, "rows": rows, "notes": missing, "seed": config.seed, "machine": machine()}
