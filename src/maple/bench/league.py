"""A league beside plain self-play: what it costs that several policies act in one batch."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.train import PAIRS, UNBOUNDED, MapleSide
from maple.core.config import Config
from maple.training.seating import LEARNER

__all__ = ["bench_league"]

WARM_S = 2.0


def _league_side(config: Config, opponents: str, policies: int) -> MapleSide:
    """A run with `policies` - 1 snapshots in play, an update apart, and no more to come."""
    snapshots = config.snapshots.model_copy(update={"every_steps": UNBOUNDED, "keep": policies - 1})
    side = MapleSide(config.model_copy(update={"opponents": opponents, "snapshots": snapshots}))
    for _ in range(policies - 1):
        side.slice(0.0)
        side.trainer.take_snapshot("schedule")
    return side


def bench_league(config: Config, seconds: float, opponents: str, policies: int) -> dict[str, Any]:
    """Learned decisions a second of a league and of plain self-play, in turns; `seconds` is per side."""
    slice_s = seconds / PAIRS
    with ExitStack() as stack:
        league = stack.enter_context(_league_side(config, opponents, policies))
        plain = stack.enter_context(MapleSide(config.model_copy(update={"opponents": "self"})))
        for side in (league, plain):
            side.slice(min(WARM_S, slice_s))
        ours, theirs = interleave(lambda: league.slice(slice_s), lambda: plain.slice(slice_s), PAIRS)
        player = league.trainer.seating.player
        learned = float((player == LEARNER).mean())
        in_play = len(league.trainer.actor.snapshots) + 1
    ratio, interval = ratio_interval(ours, theirs)
    return {
        "game": config.name,
        "algo": config.algo,
        "opponents": opponents,
        "policies_in_play": in_play,
        "league": {"steps_per_s": float(np.mean(ours)), "slices": ours},
        "self_play": {"steps_per_s": float(np.mean(theirs)), "slices": theirs},
        "ratio": ratio,
        "ratio_ci95": list(interval),
        "learned_share": learned,
        "played_ratio": ratio / learned,
        "seed": config.seed,
        "machine": machine(),
    }
