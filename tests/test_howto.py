"""The examples of the how-to pages, run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sb3_contrib")

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "from-sb3.md"


def test_from_sb3_to_maple(tmp_path: Path) -> None:
    blocks = re.findall(r"```python(?: file=(\S+))?\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = ""
    for file, text in blocks:
        if file:
            (tmp_path / file).write_text(text)
        else:
            code += text
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    before, after = (float(word) for word in done.stdout.split()[-2:])
    assert -0.5 <= before <= 1.0
    assert after > 0.8  # the shortest way from every start
