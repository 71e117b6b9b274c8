"""How much memory a process may still take: the machine's, or what its container leaves of that."""

from __future__ import annotations

from pathlib import Path

__all__ = ["container_room"]

# Of each version of Linux's control groups: the limit, what is taken, and of that what would be given back if needed.
_FILES = {
    "v2": ("memory.max", "memory.current", "inactive_file"),
    "v1": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def container_room(root: Path = Path("/")) -> int | None:
    """Bytes that the limits around this process leave it; None where there are none, or none that can be read."""
    rooms = []
    for line in _lines(root / "proc/self/cgroup"):
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if kinds else "")
        own = base / path.lstrip("/")  # in a container the path may be the host's, and only the base is there
        groups = [folder for folder in (own, *own.parents) if folder == base or base in folder.parents]
        rooms += [room for group in groups if (room := _room(group, *_FILES["v1" if kinds else "v2"])) is not None]
    return min(rooms, default=None)


def _room(group: Path, limit: str, taken: str, reclaimable: str) -> int | None:
    numbers = [next(iter(_lines(group / name)), "") for name in (limit, taken)]
    if not all(number.isdigit() for number in numbers):  # "max" is no limit
        return None
    spare = [int(line.split()[1]) for line in _lines(group / "memory.stat") if line.startswith(f"{reclaimable} ")]
    return max(0, int(numbers[0]) - int(numbers[1]) + sum(spare))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
