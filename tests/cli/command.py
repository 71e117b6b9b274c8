"""The command line, run in the tests' own process: starting Python and torch anew takes longer than most commands."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from maple.cli.app import main

TINY = [
    "--set",
    "tables=48",
    "--set",
    "net.hidden=[16, 8]",
    "--set",
    "afterstate.horizon=720",
    "--set",
    "afterstate.minibatch=240",
    "--set",
    "probe_hands=30",
]


def command_line(*arguments: str | Path) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "maple.cli", *map(str, arguments)]


def maple(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What `maple` answers: its exit code and what it wrote."""
    words = ["maple", *map(str, arguments)]
    out, errors = StringIO(), StringIO()
    own = patch.multiple(sys, argv=words, path=[*sys.path], stdout=out, stderr=errors)
    with own, pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, out.getvalue(), errors.getvalue())


def maple_alone(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, for what a process alone can show."""
    environment = {**os.environ, **environment}
    return subprocess.run(command_line(*arguments), capture_output=True, text=True, check=False, env=environment)
