"""Checkpoints: safetensors and JSON in a folder of their own, whole or not there at all.

`weights.safetensors` is the network alone, for sharing; `state.safetensors` is what resuming needs besides: optimizer,
tables, open decisions, seating and snapshots. `checkpoint.json` names the game and holds the files' checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialize_tensors

from maple.core.errors import CheckpointError

__all__ = ["FORMAT", "Checkpoint", "latest_checkpoint", "load_checkpoint", "save_checkpoint"]

FORMAT = 2
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint in memory."""

    meta: dict[str, Any]
    weights: dict[str, NDArray[Any]]
    state: dict[str, NDArray[Any]]


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


def save_checkpoint(
    folder: Path, step: int, meta: Mapping[str, Any], weights: Arrays, state: Arrays, keep: int = 2
) -> Path:
    """Write a checkpoint beside the others and drop all but the newest `keep`."""
    target, part = folder / f"{step:012d}", folder / f".{step:012d}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        sums = {
            name: _write(part / name, serialize_tensors({key: _plain(array) for key, array in arrays.items()}))
            for name, arrays in (("weights.safetensors", weights), ("state.safetensors", state))
        }
        content = {"format": FORMAT, "step": step, **meta, "sha256": sums}
        _write(part / "checkpoint.json", json.dumps(content, indent=2).encode())
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise CheckpointError(
            f"cannot save {target}: {error.strerror}; the checkpoint before it is whole: free some space and start the "
            "same command again"
        ) from None
    for old in _folders(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def _folders(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.name.isdigit()) if folder.is_dir() else []


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run, or None; `folder` may also be a checkpoint itself."""
    if (folder / "checkpoint.json").exists():
        return folder
    found = _folders(folder)
    return found[-1] if found else None


def load_checkpoint(path: Path, *, with_state: bool = True) -> Checkpoint:
    """Read a checkpoint, checksums verified. No code of the file is ever executed."""
    try:
        meta = json.loads((path / "checkpoint.json").read_text())
        if meta["format"] != FORMAT:
            raise CheckpointError(
                f"checkpoint {path} has format {meta['format']}, this Maple reads {FORMAT}; use the Maple that wrote it"
            )
        names = ["weights.safetensors", "state.safetensors"] if with_state else ["weights.safetensors"]
        return Checkpoint(meta, *([*(_read(path, name, meta["sha256"][name]) for name in names), {}][:2]))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"checkpoint {path} is damaged ({_reason(error)}); {_way_out(path)}") from None


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
        return "there is none before it, so start the run anew under another name"
    return f"the one before it is {earlier[-1]}: remove the damaged folder to go on from there"
