"""A run that is killed again and again, at any moment: it always goes on, and never loses more than an interval."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from maple.bench.measure import machine
from maple.core.errors import RunError
from maple.runs.store import RunFolder
from maple.training.checkpoint import latest_checkpoint, read_meta

__all__ = ["bench_kills"]

EVERY_S = 1.0  # between checkpoints
PATIENCE_S = 300.0  # for a process to get going
LONGEST_LIFE_S = 4.0  # after its first update
EARLY = 0.15  # of the kills come while a process starts
NEVER = 10**12  # steps


class _Run:
    """The command line's own training, in a process that can be killed."""

    def __init__(self, game: str, folder: Path, settings: list[str], seed: int) -> None:
        self.folder, self._said = RunFolder(folder / "killed"), folder / "stderr.txt"
        words = ["train", game, "--run", "killed", "--runs-dir", str(folder), "--seed", str(seed), "--no-evaluate"]
        sets = [f"checkpoint_every_s={EVERY_S}", "probe_every_s=0", "log.console=false", *settings]
        self._words = [*words, *(word for one in sets for word in ("--set", one))]

    def start(self, steps: int = NEVER) -> subprocess.Popen[bytes]:
        """Begin or go on."""
        command = [sys.executable, "-m", "maple.cli", *self._words, "--steps", str(steps)]
        with self._said.open("wb") as said:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)

    def check_alive(self, process: subprocess.Popen[bytes]) -> None:
        """Raise what the process said, if it ended by itself."""
        if process.poll() is not None:
            words = self._said.read_text(encoding="utf-8", errors="replace").strip()[-500:]
            raise RunError(f"the run did not go on after a kill: {words}")

    def saved(self) -> dict[str, Any]:
        """The counters of the newest whole checkpoint; at the start there is none."""
        newest = latest_checkpoint(self.folder.checkpoints)
        return dict(read_meta(newest)["counters"]) if newest else {"steps": 0, "elapsed_s": 0.0}

    def updates(self) -> list[dict[str, Any]]:
        """All updates that were written down."""
        return self.folder.records("events.jsonl")


def _await_update(run: _Run, process: subprocess.Popen[bytes], known: int) -> dict[str, Any]:
    """Wait for the first update of a process that has gone on; returns it."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        run.check_alive(process)
        updates = run.updates()
        if len(updates) > known:
            return updates[known]
        time.sleep(0.05)
    raise RunError(f"the run made no update within {PATIENCE_S:g} s after a kill")


def _live_and_die(run: _Run, rng: random.Random) -> float:
    """One life: go on, train for a while, be killed. Returns the seconds of training that the kill cost."""
    before, known = run.saved(), len(run.updates())
    process = run.start()
    try:
        if rng.random() < EARLY:
            time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))  # while it starts, as often as not
            run.check_alive(process)
        else:
            first = _await_update(run, process, known)
            if first["before"]["steps"] != before["steps"]:
                raise RunError(
                    f"the run went on from step {first['before']['steps']}, its checkpoint was {before['steps']}"
                )
            time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
    finally:
        process.kill()
        process.wait()
    fresh = run.updates()[known:]
    reached = float(fresh[-1]["elapsed_s"]) if fresh else float(before["elapsed_s"])
    return max(0.0, reached - float(run.saved()["elapsed_s"]))


def bench_kills(
    game: str, kills: int, settings: list[str], folder: Path, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Kill a run so often at random moments, then let it end; what each kill cost in seconds of training.

    Raises where a run does not go on from its newest checkpoint.
    """
    rng, run, began = random.Random(seed), _Run(game, folder, settings, seed), time.monotonic()
    lost: list[float] = []
    for number in range(kills):
        lost.append(_live_and_die(run, rng))
        tell(f"kill {number + 1} of {kills}: {lost[-1]:.2f} s of training lost")
    code = run.start(steps=run.saved()["steps"] + 1).wait()
    times = [float(row["elapsed_s"]) for row in run.updates()]
    gaps = [after - before for before, after in pairwise(times) if after > before]
    bound = EVERY_S + max(gaps, default=0.0)
    return {
        "game": game,
        "kills": kills,
        "resumed": kills,
        "last_exit_code": code,
        "most_lost_s": max(lost, default=0.0),
        "mean_lost_s": sum(lost) / max(1, len(lost)),
        "interval_s": EVERY_S,
        "longest_update_s": max(gaps, default=0.0),
        "within_an_interval": max(lost, default=0.0) <= bound,
        "left_over": [path.name for path in run.folder.checkpoints.glob(".*")],
        "steps": run.saved()["steps"],
        "seconds": time.monotonic() - began,
        "seed": seed,
        "machine": machine(),
    }
