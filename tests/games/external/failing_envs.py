"""Envs that fail outside of a step: while they are made, or while a game begins."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tests.games.external.envs import Walk


class Stumble(Walk):
    """A walk that ends its process, or hangs, when a game begins with a seed that is a multiple of `every`."""

    def __init__(self, fault: str = "exit", every: int = 7) -> None:
        super().__init__("method", 6)
        self.fault, self.every = fault, every

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed and seed % self.every == 0:
            if self.fault == "exit":
                os._exit(9)
            time.sleep(60)
        return super().reset(seed=seed, options=options)
