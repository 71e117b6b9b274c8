"""Files of the user's own that a run's settings name, by absolute paths: teams, rosters, maps, missions.

A copy of each is kept in the run's folder, with its checksum, and travels wherever the run does. Settings go on naming
the file itself; where that is gone, the copy is played with.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from maple.core.errors import RunError
from maple.runs.store import write_atomically

__all__ = ["FILES", "INDEX", "OwnFiles"]

FILES, INDEX = "files", "files.json"  # the copies, and the SHA-256 of each by the path that it is of
LEVELS = 3  # that a milestone lies below its run

Finder = Callable[[str], list[str]]


class OwnFiles:
    """The copies in one run's folder."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._sums = _read_index(run / INDEX)

    @classmethod
    def around(cls, path: Path) -> OwnFiles:
        """Those of the run that a checkpoint or a record lies in, if it lies in one."""
        folders = list(path.absolute().parents)[:LEVELS]
        return cls(next((folder for folder in folders if (folder / INDEX).is_file()), path))

    def keep(self, paths: Iterable[str]) -> None:
        """Copy files that are not kept yet."""
        known = dict(self._sums)
        for path in sorted(paths):
            if not self._names_of(path):
                known[path] = self._copy(Path(path))
        if known != self._sums:
            write_atomically(self._run / INDEX, json.dumps(known, indent=2) + "\n")
            self._sums = known

    def at_hand(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a run in which files that are gone are replaced by their copies."""
        return self._replaced(config, lambda part: [] if Path(part).exists() else self._copies_of(part))

    def by_contents(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a run in which its files have the names of their copies, wherever they lie themselves."""
        return self._replaced(config, self._names_of)

    def name_of(self, path: str) -> str:
        """The name of a file's copy; the path itself if it is not one of the run's."""
        return ",".join(self._names_of(path)) or path

    def _copy(self, path: Path) -> str:
        try:
            content = path.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            target = self._run / FILES / _copy_name(str(path), sha256)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            part.write_bytes(content)
            part.replace(target)
        except OSError as error:
            raise RunError(
                f"cannot keep a copy of {path} in {self._run}: {error.strerror}; free some space or choose another "
                "--runs-dir"
            ) from None
        return sha256

    def _names_of(self, part: str) -> list[str]:
        """The copies of a file, or of all files of a folder; a copy is known by its name, wherever it lay."""
        own, found = Path(part), []
        for path, sha256 in sorted(self._sums.items()):
            name = _copy_name(path, sha256)
            if part in (path, str(Path(path).parent)) or own.parts[-2:] == (FILES, name):
                found.append(name)
        return found

    def _copies_of(self, part: str) -> list[str]:
        sums = {_copy_name(path, sha256): (path, sha256) for path, sha256 in self._sums.items()}
        copies = []
        for name in self._names_of(part):
            copy = (self._run / FILES / name).resolve()
            if not copy.is_file():
                return []
            path, sha256 = sums[name]
            if hashlib.sha256(copy.read_bytes()).hexdigest() != sha256:
                raise RunError(f"{copy} is not what it was when the run began; put {path} back where it lay")
            copies.append(str(copy))
        return copies

    def _replaced(self, config: Mapping[str, Any], find: Finder) -> dict[str, Any]:
        """The settings with what `find` finds in the options of the game and of its variants."""
        if not self._sums:
            return dict(config)
        variants = [{**variant, "game": _walk(variant["game"], find)} for variant in config.get("practice", [])]
        return {**config, "game": _walk(config.get("game", {}), find), "practice": variants}


def _read_index(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in pairs if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)}


def _copy_name(path: str, sha256: str) -> str:
    return f"{sha256[:16]}-{PureWindowsPath(path).name}"  # which knows both kinds of slashes


def _walk(value: Any, find: Finder) -> Any:
    """A tree of options with what is found for each text, or for each of its parts between commas."""
    if isinstance(value, Mapping):
        return {key: _walk(below, find) for key, below in value.items()}
    if isinstance(value, list):
        return [_walk(below, find) for below in value]
    if not isinstance(value, str) or not value:
        return value
    return ",".join(find(value)) or ",".join(",".join(find(part)) or part for part in value.split(","))
