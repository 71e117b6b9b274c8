"""Which minibatch, and how many epochs or updates, pay: steps in one direction for as long as the gate lets them.

Each step is a comparison with the settings kept so far. It is kept if it is surely faster, not rejected, and no weaker
than the margin as far as was seen; then the next step in that direction follows, as long as there is time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from maple.bench.compare import Plan, compare, two_sides
from maple.bench.gate import Limits
from maple.core.config import Config, DqnConfig, validated
from maple.core.errors import ConfigError
from maple.games import make_game

__all__ = ["Learned", "improve", "improve_learning"]

SEEDS = 3
STEPS = 3  # comparisons that a budget should have room for
PAIRS = 5
HANDS, HANDS_PER_S = (150, 1500), 50  # of each match: at least and at most, and for a second of the budget

Judge = Callable[[Config, Config], dict[str, Any]]  # what a comparison of base and candidate found


@dataclass(slots=True)
class Learned:
    """What was kept, by its dotted name, and all that was tried."""

    kept: dict[str, int] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)


def _larger(config: Config) -> tuple[str, int]:
    return "minibatch", 2 * config.recipe.minibatch


def _fewer(config: Config) -> tuple[str, int]:
    """Fewer epochs, or for DQN half the updates in a round; less than one cannot be set, and ends the direction."""
    recipe = config.recipe
    if isinstance(recipe, DqnConfig):
        return "updates_per_step", recipe.updates_per_step // 2
    return "epochs", recipe.epochs - 1


def improve(
    config: Config, seconds: float, judge: Judge, tell: Callable[[str], None], clock: Callable[[], float]
) -> Learned:
    """Try the first step in every direction, and further ones where those before were kept and time is left."""
    found, began, longest = Learned(), clock(), 0.0
    directions = deque([_larger, _fewer])
    firsts = len(directions)
    while directions:
        step = directions.popleft()
        name, value = step(config)
        key, firsts = f"{config.algo}.{name}", firsts - 1
        if firsts < 0 and clock() - began + longest > seconds:
            continue
        started = clock()
        try:
            candidate = validated(config.model_dump() | {config.algo: {**config.recipe.model_dump(), name: value}})
            tell(f"trying {key}={value}")
            content = judge(config, candidate)
        except ConfigError:
            continue  # as far as it goes
        longest = max(longest, clock() - started)
        found.tried.append({"setting": f"{key}={value}", **content, "kept": _pays(content)})
        if found.tried[-1]["kept"]:
            found.kept[key], config = value, candidate
            directions.append(step)
    return found


def _pays(content: dict[str, Any]) -> bool:
    faster = content["throughput_ratio_ci95"][0] > 1.0
    strong = content["strength_diff"] >= -content["thresholds"]["margin"]
    return bool(content["verdict"] != "reject" and faster and strong)


def improve_learning(config: Config, seconds: float, tell: Callable[[str], None]) -> Learned:
    """Improve a run's recipe for about `seconds`, by the gate."""
    limits = Limits.of(make_game(config.name, config.game).spec.metric, seeds=SEEDS)
    each, hands = max(0.5, seconds / (2 * SEEDS * STEPS)), min(HANDS[1], max(HANDS[0], int(HANDS_PER_S * seconds)))
    plan = Plan(limits, each, PAIRS, hands, hands // 5, (config.probe_against,), config.seed)
    with two_sides() as sides:
        return improve(
            config,
            seconds,
            lambda base, candidate: compare(sides, base, candidate, plan, tell).as_json(),
            tell,
            time.monotonic,
        )
