"""How much memory a process may still take: the machine's, or what its container leaves of that."""

from __future__ import annotations

from pathlib import Path

from maple.core.groups import first_line, groups_around, lines_of

__all__ = ["container_room"]

# Of each version of Linux's control groups: the limit, what is taken, and of that what would be given back if needed.
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def container_room(root: Path = Path("/")) -> int | None:
    """Bytes that the limits around this process leave it; None where there are none, or none that can be read."""
    groups = groups_around("memory", root)
    rooms = [room for group in groups for files in _FILES if (room := _room(group, *files)) is not None]
    return min(rooms, default=None)


def _room(group: Path, limit: str, taken: str, reclaimable: str) -> int | None:
    numbers = [first_line(group / name) for name in (limit, taken)]
    if not all(number.isdigit() for number in numbers):  # "max" is no limit
        return None
    spare = [int(line.split()[1]) for line in lines_of(group / "memory.stat") if line.startswith(f"{reclaimable} ")]
    return max(0, int(numbers[0]) - int(numbers[1]) + sum(spare))
