"""Linux's control groups, in which containers have their limits: where those around this process lie."""

from __future__ import annotations

from pathlib import Path

__all__ = ["first_line", "groups_around", "lines_of"]


def groups_around(kind: str, root: Path = Path("/")) -> list[Path]:
    """The folders that may limit a `kind` of resource, "cpu" or "memory", for this process."""
    folders = []
    for line in lines_of(root / "proc/self/cgroup"):
        _, kinds, path = line.split(":", 2)
        if kinds and kind not in kinds.split(","):
            continue
        base = root / "sys/fs/cgroup" / (kind if kinds else "")  # the first version has a folder for each kind
        own = base / path.lstrip("/")  # in a container the path may be the host's, and only the base is there
        folders += [folder for folder in (own, *own.parents) if folder == base or base in folder.parents]
    return folders


def first_line(path: Path) -> str:
    """The first line of a file, or nothing."""
    return next(iter(lines_of(path)), "")


def lines_of(path: Path) -> list[str]:
    """The lines of a file, or none where it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
