"""Where a run took place: machine, versions, and the revision of the code beside it."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["PACKAGES", "describe_machine", "versions"]

PACKAGES = (
    *("maple-rl", "torch", "numba", "numpy", "gymnasium", "pettingzoo"),
    *("stable-baselines3", "sb3-contrib", "poke-env", "torchrl", "tianshou"),
)


def versions() -> dict[str, str]:
    """The packages that matter, as far as they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def describe_machine() -> dict[str, Any]:
    """This machine, its software, and the git revision of the folder that a run was started in."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions(),
        "git": {"revision": _git("rev-parse", "HEAD"), "changed": bool(changed)},
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
