"""What a run keeps on disk: the newest checkpoints, milestones now and then, and the best agent so far."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from maple.core.config import Config
from maple.training.build import trainer_state
from maple.training.checkpoint import (
    latest_checkpoint,
    load_checkpoint,
    milestones,
    read_meta,
    save_best,
    save_checkpoint,
    save_milestone,
)
from maple.training.learners import weights_of
from maple.training.loop import Trainer

__all__ = ["Keeper", "offer_newest"]

MILESTONE_STEPS = 1_000_000
MILESTONE_APART_S = 600.0


def offer_newest(folder: Path, result: float) -> bool:
    """Keep the newest checkpoint's agent as the best if `result` says that it is; whether it was kept."""
    newest, best = latest_checkpoint(folder), read_meta(folder / "best").get("result")
    if newest is None or (best is not None and result <= best):
        return False
    checkpoint = load_checkpoint(newest, with_state=False)
    save_best(folder, int(checkpoint.meta["step"]), {**checkpoint.meta, "result": result}, checkpoint.weights)
    return True


class Keeper:
    """Saves a trainer into a run's folder of checkpoints."""

    def __init__(
        self,
        folder: Path,
        config: Config,
        trainer: Trainer,
        files: dict[str, str],
        saved: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self._folder, self._config, self._trainer, self._saved = folder, config, trainer, saved
        self._files = files  # of the user's own, that the game is played with
        self.saved_steps = trainer.counters.steps
        last = read_meta(kept[-1]) if (kept := milestones(folder)) else {}
        self._milestone_steps = int(last.get("step", 0))
        self._milestone_s = float(last.get("counters", {}).get("elapsed_s", float("-inf")))
        self._best: float | None = read_meta(folder / "best").get("result")

    def save(self) -> None:
        """A checkpoint to resume from, and a milestone if one is due."""
        counters = self._trainer.counters
        meta, weights = self._meta(), weights_of(self._trainer.learner.policy)
        self._saved(save_checkpoint(self._folder, counters.steps, meta, weights, trainer_state(self._trainer)))
        self.saved_steps = counters.steps
        due = counters.steps // MILESTONE_STEPS > self._milestone_steps // MILESTONE_STEPS
        if due and counters.elapsed_s - self._milestone_s >= MILESTONE_APART_S:
            self._saved(save_milestone(self._folder, counters.steps, meta, weights))
            self._milestone_steps, self._milestone_s = counters.steps, counters.elapsed_s

    def offer(self, result: float) -> bool:
        """Keep the agent as the best if `result` says that it is; whether it was kept."""
        if self._best is not None and result <= self._best:
            return False
        meta = {**self._meta(), "result": result}
        self._saved(
            save_best(self._folder, self._trainer.counters.steps, meta, weights_of(self._trainer.learner.policy))
        )
        self._best = result
        return True

    def _meta(self) -> dict[str, Any]:
        return {
            "game": self._config.name,
            "config": self._config.model_dump(),
            "files": self._files,
            "counters": asdict(self._trainer.counters),
            "machine": {"python": platform.python_version(), "torch": torch.__version__, "system": platform.platform()},
        }
