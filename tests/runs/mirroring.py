"""What tests of mirrors have in common: a run with checkpoints, a mirror in a hurry, and waiting for it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from maple.runs.place import Place
from maple.runs.storage import Mirror


def save_checkpoint(run: Path, step: int, size: int = 2000) -> Path:
    folder = run / "checkpoints" / f"{step:012d}"
    folder.mkdir(parents=True)
    sums = {}
    for name in ("weights.safetensors", "state.safetensors"):
        content = os.urandom(size)
        (folder / name).write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    (folder / "checkpoint.json").write_text(json.dumps({"step": step, "sha256": sums}))
    with (run / "events.jsonl").open("a") as events:
        events.write(f'{{"steps": {step}}}\n')
    return folder


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.01)


def begin_mirror(run: Path, place: Place, told: list[str]) -> Mirror:
    return Mirror(run, place, told.append, first_wait_s=0.02, records_every_s=0.05)
