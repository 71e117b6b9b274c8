"""Time to strength: how long the default recipe trains until it reaches a given result against fixed opponents."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from maple.arena.choose import evaluation_arena
from maple.bench.measure import machine
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer
from maple.training.evaluate import bot_player, evaluate, greedy_player
from maple.training.loop import Update
from maple.training.warming import warm_up

__all__ = ["bench_strength"]


class _PausedClock:
    """A clock that stands still while the strength is looked at."""

    def __init__(self) -> None:
        self._paused_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() - self._paused_s

    def pause(self, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        result = work()
        self._paused_s += time.monotonic() - began
        return result


def bench_strength(
    config: Config, target: float, against: str, hands: int, look_every_s: float, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Train until the metric against `against` in all other seats reaches `target`, or the budget is spent."""
    compile_s = warm_up(config, [against])
    game = make_game(config.name, config.game)
    threads = config.threads or available_cores()
    torch.set_num_threads(1)
    clock, curve = _PausedClock(), []
    with Team(threads) as team:
        trainer = build_trainer(config, game, team)
        trainer.clock = clock
        others = [bot_player(game, against, team)] * (game.spec.seats - 1)
        player = greedy_player(trainer.learner.policy)
        envs = partial(evaluation_arena, limits=config.workers)
        next_look = look_every_s

        def look(update: Update) -> bool:
            nonlocal next_look
            if update.counters.elapsed_s < next_look:
                return True
            next_look = update.counters.elapsed_s + look_every_s
            result = clock.pause(lambda: evaluate(game, player, others, hands, 1, team, envs=envs))
            reached = result.figures[game.spec.metric.name]
            curve.append({"seconds": update.counters.elapsed_s, "steps": update.counters.steps, **result.figures})
            tell(f"{update.counters.elapsed_s:.1f} s: {reached:+.2f} {game.spec.metric.name}")
            return bool(reached < target)

        trainer.run(look)
    hit = bool(curve) and curve[-1][game.spec.metric.name] >= target
    return {
        "game": config.name,
        "algo": config.algo,
        "target": target,
        "against": against,
        "seconds_to_target": curve[-1]["seconds"] if hit else None,
        "compile_s": compile_s,
        "curve": curve,
        "seed": config.seed,
        "machine": machine(),
    }
