"""Places that fsspec reaches, as folders with a few things to do there: put, get, list, remove.

What is put there is looked at again. The files of a checkpoint are read back and compared, since a run may have nothing
else left; records, which grow and are copied over and over, are compared by their size.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from maple.core.errors import ConfigError, MissingExtraError
from maple.core.section import plain_url
from maple.runs.own_files import FILES

__all__ = ["Place", "is_checkpoint", "is_record", "open_place"]

# What a run's folder holds besides checkpoints; a replay that is kept in a file is not copied: a run fills it anew.
RECORD_ENDINGS = (".json", ".jsonl", ".csv", ".log", ".txt")
RECORD_FOLDERS = ("tensorboard", "profiles", "games", FILES)
PIECE = 2**22  # bytes of a record that are in memory at a time


class Place:
    """A folder behind a URL."""

    def __init__(self, filesystem: Any, root: str, shown: str) -> None:
        self._fs, self._root, self.shown = filesystem, root.rstrip("/"), shown

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def put(self, local: Path, name: str) -> None:
        """Copy a file there and look whether it arrived."""
        at = self._at(name)
        parent = str(PurePosixPath(at).parent)
        self._fs.makedirs(parent, exist_ok=True)
        if is_checkpoint(name):
            content = local.read_bytes()
            self._fs.pipe_file(at, content)
            self._fs.invalidate_cache(parent)
            arrived = self.get(name) == content
        else:
            size = self._send(local, at)
            self._fs.invalidate_cache(parent)
            arrived = self._fs.size(at) == size
        if not arrived:
            raise OSError(f"{name} did not arrive whole")

    def _send(self, local: Path, at: str) -> int:
        """Copy a file as long as it is now, in pieces: a record of a week does not fit into memory, and grows on."""
        with local.open("rb") as source, self._fs.open(at, "wb") as target:
            size = left = os.fstat(source.fileno()).st_size
            while left and (piece := source.read(min(left, PIECE))):
                target.write(piece)
                left -= len(piece)
        return size - left

    def get(self, name: str) -> bytes:
        """The content of a file."""
        return bytes(self._fs.cat_file(self._at(name)))

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if it is not there."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(self._at(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(PurePosixPath(path).name for path in found)

    def records(self) -> list[str]:
        """The run's files here that are not of a checkpoint."""
        self._fs.invalidate_cache()
        names = [path.removeprefix(f"{self._root}/") for path in self._fs.find(self._root)]
        return sorted(name for name in names if is_record(name))

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        self._fs.invalidate_cache()
        return bool(self._fs.exists(self._at(name)))

    def remove(self, folder: str) -> None:
        """Remove a folder, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._at(folder), recursive=True)


def open_place(url: str) -> Place:
    """The folder that a URL names; nothing is read or written yet."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("storage needs fsspec: pip install 'maple-rl[storage]'") from None
    try:
        plain_url(url)
    except ValueError as error:
        raise ConfigError(f"--storage: {error}") from None
    try:
        filesystem, root = fsspec.core.url_to_fs(url)
    except ValueError:
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "az", "file", "memory"))
        raise ConfigError(
            f"--storage {url}: there is no storage of scheme {urlsplit(url).scheme!r}; some that are: {known}"
        ) from None
    except ImportError as error:
        raise MissingExtraError(f"--storage {url} needs another package: {error}") from None
    return Place(filesystem, root, url)


def is_checkpoint(name: str) -> bool:
    """Whether a file of a run, by its path in the folder, is part of a checkpoint."""
    return name.startswith("checkpoints/")


def is_record(name: str) -> bool:
    """Whether a file of a run, by its path in the folder, is one of its records."""
    *folders, last = name.split("/")
    if last.startswith(".") or last.endswith(".part"):
        return False
    return folders[0] in RECORD_FOLDERS if len(folders) == 1 else not folders and last.endswith(RECORD_ENDINGS)
