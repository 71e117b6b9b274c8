"""The processors that there are for this process."""

from __future__ import annotations

import math
import os
from pathlib import Path

from maple.core.groups import first_line, groups_around

__all__ = ["available_cores"]


def available_cores(root: Path = Path("/")) -> int:
    """The cores that this process may use: those it may run on, or as many as its container's share of time makes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for group in groups_around("cpu", root) if (share := _share(group)) is not None]
    return max(1, min([cores, *shares]))


def _share(group: Path) -> int | None:
    """Whole cores of the time that a group may take, or None where it has no bound; a part of a core counts as one."""
    quota, _, period = first_line(group / "cpu.max").partition(" ")
    if not quota:
        quota, period = first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us")
    if not (quota.isdigit() and period.isdigit() and int(period)):  # "max" and -1 are no bounds
        return None
    return math.ceil(int(quota) / int(period))
