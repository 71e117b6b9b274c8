"""The user's team files, as texts for the bridge, where the format's own validator reads them."""

from __future__ import annotations

from pathlib import Path

from maple.core.errors import GameError

__all__ = ["read_team_files"]


def read_team_files(paths: str) -> list[dict[str, str]]:
    """The texts of files, and of the .txt files of folders, that are named by commas."""
    found = []
    for path in (Path(part) for part in paths.split(",") if part):
        files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
        if not files:
            raise GameError(f"there is no team in {path}; put .txt files there, in the form that Showdown exports")
        found += [{"file": str(file), "text": _text(file)} for file in files]
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise GameError(
            f"the team file {file} cannot be read: {(error.strerror or 'no reason given').lower()}"
        ) from None
    except ValueError:
        raise GameError(f"the team file {file} is no text; save it as Showdown exports it, in UTF-8") from None
