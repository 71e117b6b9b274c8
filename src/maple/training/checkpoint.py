"""Checkpoints: safetensors and JSON in a folder of their own, whole or not there at all.

`weights.safetensors` is the network alone, for sharing; `state.safetensors` is what resuming needs besides: optimizer,
tables, memory, seating and snapshots. `checkpoint.json` names the game and holds the files' checksums.

A run keeps the newest two, weights-only milestones in `milestones/`, and in `best/` the weights with the best result so
far.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialize_tensors

from maple.core.config import Config
from maple.core.errors import CheckpointError
from maple.games import game_settings
from maple.runs.own_files import OwnFiles
from maple.runs.store import find_run

__all__ = [
    "FORMAT",
    "Checkpoint",
    "DamagedCheckpointError",
    "find_checkpoint",
    "latest_checkpoint",
    "load_checkpoint",
    "load_newest",
    "milestones",
    "read_meta",
    "save_best",
    "save_checkpoint",
    "save_milestone",
    "sweep",
]

FORMAT = 3
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint in memory."""

    meta: dict[str, Any]
    weights: dict[str, NDArray[Any]]
    state: dict[str, NDArray[Any]]

    @property
    def config(self) -> Config:
        """The settings that it was made with."""
        try:
            return Config.model_validate(self.meta["config"])
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise CheckpointError(
                f"the checkpoint at step {self.meta['step']} has a setting that this Maple does not know "
                f"({key}: {first['msg'].lower()}); use the Maple that wrote it, or a newer one"
            ) from None


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Records as rows of bytes; everything else as it is."""
    array = np.ascontiguousarray(array)
    return array.view(np.uint8).reshape(*array.shape, array.dtype.itemsize) if array.dtype.names else array


def _write(path: Path, content: bytes) -> str:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest()


class DamagedCheckpointError(CheckpointError):
    """A checkpoint that was cut off or changed on disk."""


def save_checkpoint(
    folder: Path, step: int, meta: Mapping[str, Any], weights: Arrays, state: Arrays, keep: int = 2
) -> Path:
    """Write a checkpoint beside the others and drop all but the newest `keep`."""
    target = folder / f"{step:012d}"
    _write_whole(target, step, meta, {"weights.safetensors": weights, "state.safetensors": state})
    for old in _folders(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def save_milestone(folder: Path, step: int, meta: Mapping[str, Any], weights: Arrays) -> Path:
    """Write weights that are kept for good."""
    return _write_whole(folder / "milestones" / f"{step:012d}", step, meta, {"weights.safetensors": weights})


def save_best(folder: Path, step: int, meta: Mapping[str, Any], weights: Arrays) -> Path:
    """Write the best weights so far in place of the best before them."""
    return _write_whole(folder / "best", step, meta, {"weights.safetensors": weights})


def _write_whole(target: Path, step: int, meta: Mapping[str, Any], files: Mapping[str, Arrays]) -> Path:
    """Write a checkpoint's folder whole or not at all; one of that name gives way at the last moment."""
    part, old = target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.old")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        sums = {
            name: _write(part / name, serialize_tensors({key: _plain(array) for key, array in arrays.items()}))
            for name, arrays in files.items()
        }
        content = {"format": FORMAT, "step": step, **meta, "sha256": sums}
        _write(part / "checkpoint.json", json.dumps(content, indent=2).encode())
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.replace(old)
        part.replace(target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise CheckpointError(
            f"cannot save {target}: {error.strerror}; the checkpoint before it is whole: free some space and start the "
            "same command again"
        ) from None
    return target


def sweep(folder: Path) -> None:
    """Clear away what a process left that was killed while it saved; what had to give way already comes back."""
    for part in [*folder.glob(".*.part"), *folder.glob("milestones/.*.part")]:
        shutil.rmtree(part, ignore_errors=True)
    for old in [*folder.glob(".*.old"), *folder.glob("milestones/.*.old")]:
        target = old.with_name(old.name.removeprefix(".").removesuffix(".old"))
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.replace(target)


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.name.isdigit()) if folder.is_dir() else []


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run, or None; `folder` may also be a checkpoint itself."""
    if (folder / "checkpoint.json").exists():
        return folder
    found = _folders(folder)
    return found[-1] if found else None


def find_checkpoint(run_or_checkpoint: str | Path, runs_dir: Path | None = None) -> Path:
    """The newest checkpoint of a run, by the run's name or path, or the checkpoint that is named."""
    folder = find_run(str(run_or_checkpoint), runs_dir)
    path = latest_checkpoint(folder if (folder / "checkpoint.json").exists() else folder / "checkpoints")
    if path is None:
        raise CheckpointError(f"run {folder.name!r} has no checkpoint yet; train it first")
    return path


def milestones(folder: Path) -> list[Path]:
    """The milestones of a run, oldest first."""
    return _folders(folder / "milestones")


def read_meta(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself; empty if it is not there or cannot be read."""
    try:
        return dict(json.loads((path / "checkpoint.json").read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def load_newest(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole, or None where there is none at all.

    Damaged ones before it are told of and set aside under another name; if all are damaged, the newest one's error is
    raised and nothing is touched.
    """
    errors: dict[Path, DamagedCheckpointError] = {}
    for path in reversed(_folders(folder)):
        try:
            checkpoint = load_checkpoint(path)
        except DamagedCheckpointError as error:
            errors[path] = error
            continue
        for damaged, reason in errors.items():
            aside = damaged.with_name(f"{damaged.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            damaged.replace(aside)
            what = str(reason).partition(";")[0]
            warn(f"{what}; it is set aside as {aside.name}, and the run goes on from {path.name}")
        return checkpoint
    if errors:
        raise next(iter(errors.values()))
    return None


def load_checkpoint(path: Path, *, with_state: bool = True) -> Checkpoint:
    """Read a checkpoint, checksums verified. No code of the file is ever executed."""
    try:
        meta = json.loads((path / "checkpoint.json").read_text())
        if meta["format"] != FORMAT:
            raise CheckpointError(
                f"checkpoint {path} has format {meta['format']}, this Maple reads {FORMAT}; use the Maple that wrote it"
            )
        _check_layout(path, meta["config"])
        meta["config"] = OwnFiles.around(path).at_hand(meta["config"])
        names = ["weights.safetensors", "state.safetensors"] if with_state else ["weights.safetensors"]
        return Checkpoint(meta, *([*(_read(path, name, meta["sha256"][name]) for name in names), {}][:2]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise DamagedCheckpointError(f"checkpoint {path} is damaged ({_reason(error)}); {_way_out(path)}") from None


def _check_layout(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse what learned from views that were laid out otherwise: it would look for everything in the wrong place."""
    field = game_settings(config["name"]).model_fields.get("layout")  # which few games have
    if field is None:
        return
    stored, now = config["game"].get("layout"), field.get_default(call_default_factory=True)
    if stored != now:
        raise CheckpointError(
            f"checkpoint {path} learned from views laid out by schema {stored}, and this Maple lays them out by {now}; "
            "use the Maple that wrote it, or train anew"
        )


def _read(path: Path, name: str, sha256: str) -> dict[str, NDArray[Any]]:
    content = (path / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{name} does not match its checksum")
    return dict(parse_tensors(content))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{Path(str(error.filename)).name}: {error.strerror}"
    return f"no {error} in checkpoint.json" if isinstance(error, KeyError) else str(error).split("\n")[0]


def _way_out(path: Path) -> str:
    earlier = [p for p in _folders(path.parent) if p.name < path.name]
    if not earlier:
        run = path.parent.parent.name
        best = f", with --from {run}@best" if (path.parent / "best" / "checkpoint.json").is_file() else ""
        return f"there is none before it, so start the run anew under another name{best}"
    return f"the one before it is {earlier[-1]}: remove the damaged folder to go on from there"
