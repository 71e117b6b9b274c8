"""The examples of the how-to pages, run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs" / "howto"
MANY = """
import gymnasium as gym
import numpy as np
from one_part import OnePartAStep


class Guess(gym.Env):
    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.MultiDiscrete([20, 30, 10])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 4
        return 0, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.left -= 1
        return 1, float(action[2]), self.left == 0, False, {}


def wrapped():
    return OnePartAStep(Guess())
"""


def _blocks(page: str, folder: Path) -> str:
    """The code of a page; what is a file of its own is written into the folder."""
    code = ""
    for file, text in re.findall(r"```python(?: file=(\S+))?\n(.*?)```", (PAGES / page).read_text(), re.DOTALL):
        if file:
            (folder / file).write_text(text)
        else:
            code += text
    return code


def test_from_sb3_to_maple(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    code = _blocks("from-sb3.md", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    before, after = (float(word) for word in done.stdout.split()[-2:])
    assert -0.5 <= before <= 1.0
    assert after > 0.8  # the shortest way from every start


def test_actions_of_many_parts_are_chosen_one_by_one(tmp_path: Path) -> None:
    assert _blocks("your-own-env.md", tmp_path) == ""
    (tmp_path / "many.py").write_text(MANY)
    small = [f"--set={one}" for one in ("tables=4", "ppo.horizon=64", "ppo.minibatch=32", "net.hidden=[8]")]
    words = ["--workers", "0", "--steps", "200", "--run", "x", "--runs-dir", "runs", *small]
    refused, done = (
        subprocess.run(
            [sys.executable, "-m", "maple.cli", "train", f"many:{name}", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for name in ("Guess", "wrapped")
    )
    assert refused.returncode == 2
    assert (
        "has 6,000 combinations in its MultiDiscrete actions, and Maple lists up to 4,096; wrap the env"
        in refused.stderr
    )
    assert done.returncode == 0, done.stderr
    assert '"length": 12.0' in (tmp_path / "runs" / "x" / "events.jsonl").read_text()
