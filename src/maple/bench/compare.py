"""The gate: base and candidate trained in turns from the same seeds, then played against each other.

Each side gets the same seconds of training a seed, in slices that alternate while the other side stands still. What is
compared is what a user gets for that time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from maple.arena.choose import evaluation_arena
from maple.bench.gate import Evidence, Limits, Paired, Verdict, decide, paired_difference, seed_interval
from maple.bench.measure import machine
from maple.bench.side import SideProcess
from maple.core.config import Config, flat, validated
from maple.core.cores import available_cores
from maple.core.errors import ConfigError
from maple.core.threads import Team
from maple.games import make_game
from maple.training.agent import load_agent
from maple.training.evaluate import Player, Result, bot_player, evaluate

__all__ = ["Comparison", "Plan", "bisect", "check_sides", "compare", "differing", "two_sides"]

GAMES_SEED = 2**41 + 3  # deals that no training run plays
LOOKS = 5  # at the strength on the way, for the time to strength
BASE, CANDIDATE = "base", "candidate"
ALGOS = ("afterstate", "ppo", "dqn")  # sections of which a run reads the one that its algo names
NOT_READ = (
    *("seed", "steps", "minutes", "checkpoint_every_s", "probe_every_s", "probe_against", "probe_hands"),
    *("evaluate", "log", "price_per_hour", "profile", "perf_every"),
)
Sides = dict[str, SideProcess]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done."""

    limits: Limits
    seconds: float  # of training, a side and seed
    pairs: int  # of slices, a seed; the first is warm-up
    hands: int  # of each match
    look_hands: int  # of each look on the way
    opponents: tuple[str, ...]
    seed: int = 0


@dataclass(slots=True)
class Comparison:
    """What was found."""

    plan: Plan
    metric: str
    evidence: Evidence = field(default_factory=Evidence)
    figures: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by figure and side, one a seed
    results: list[float] = field(default_factory=list)  # the base's, by the metric: alone or against the first opponent
    curves: dict[str, list[list[tuple[float, float]]]] = field(default_factory=lambda: {BASE: [], CANDIDATE: []})
    verdict: Verdict = field(default_factory=lambda: Verdict("undecided", "nothing was measured yet"))

    @property
    def limits(self) -> Limits:
        """What the candidate has to reach, by what is known of the base."""
        return self.plan.limits.beside(_mean(self.results) or 0.0)

    def as_json(self) -> dict[str, Any]:
        """All figures."""
        seen, limits = self.evidence, self.limits
        ratio, speed = seen.speed()
        diff, strength = seen.strength()
        return {
            **self.verdict.as_json(),
            "throughput_ratio": ratio,
            "throughput_ratio_ci95": list(speed),
            "steps_per_s": {BASE: _mean(seen.base_speeds), CANDIDATE: _mean(seen.candidate_speeds)},
            "strength_metric": self.metric,
            "strength_diff": diff,
            "strength_diff_ci95": _finite(strength),
            "strength_ci_includes_seeds": len(seen.duels) > 1,
            "against": {
                name: {"diff": mean, "ci95": _finite(interval)} for name, (mean, interval) in seen.opponents().items()
            },
            "figures": {name: self._figure(rows) for name, rows in self.figures.items()},
            "time_to_strength": self._time_to_strength(),
            "thresholds": {
                "speed_up": limits.speed_up,
                "margin": limits.margin,
                "margin_of_base": limits.of_base or None,
            },
            "seeds": len(seen.duels),
            "slice_pairs": len(seen.base_speeds),
            "games": seen.games,
            "seconds_a_side_and_seed": self.plan.seconds,
            "seed": self.plan.seed,
            "machine": machine(),
        }

    def _figure(self, rows: dict[str, list[float]]) -> dict[str, Any]:
        diff, interval = seed_interval([c - b for b, c in zip(rows[BASE], rows[CANDIDATE], strict=True)])
        return {
            BASE: _mean(rows[BASE]),
            CANDIDATE: _mean(rows[CANDIDATE]),
            "diff": diff,
            "ci95": _finite(interval),
        }

    def _time_to_strength(self) -> dict[str, Any]:
        """Seconds until each side is as strong as the base at its end, less the margin.

        A candidate that never got there took longer than all of its training: with such seeds, the ratio of the base's
        time to its own is at most what is told, and nothing bounds it from below.
        """
        times: dict[str, list[float | None]] = {BASE: [], CANDIDATE: []}
        ratios = []
        for base, candidate in zip(self.curves[BASE], self.curves[CANDIDATE], strict=True):
            target = base[-1][1] - self.limits.margin
            for side, curve in ((BASE, base), (CANDIDATE, candidate)):
                times[side].append(next((at for at, reached in curve if reached >= target), None))
            ratios.append((times[BASE][-1] or base[-1][0]) / (times[CANDIDATE][-1] or candidate[-1][0]))
        reached = {side: sum(at is not None for at in found) for side, found in times.items()}
        censored = reached[CANDIDATE] < len(ratios)
        ratio, (low, high) = seed_interval(ratios) if ratios else (None, (float("-inf"), float("inf")))
        return {
            f"{BASE}_s": times[BASE],
            f"{CANDIDATE}_s": times[CANDIDATE],
            "reached": {**reached, "seeds": len(ratios)},
            "ratio": ratio,
            "at_most": censored,
            "ci95": _finite((float("-inf") if censored else low, high)),
        }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _finite(interval: tuple[float, float]) -> list[float | None]:
    """JSON knows no infinity."""
    return [bound if abs(bound) != float("inf") else None for bound in interval]


def differing(base: Config, candidate: Config) -> dict[str, tuple[Any, Any]]:
    """The settings in which two configs differ, by their dotted names."""
    a, b = flat(base.model_dump()), flat(candidate.model_dump())
    return {key: (a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)}


def check_sides(base: Config, candidate: Config, plan: Plan) -> None:
    """Two configs can be compared if they play the same game."""
    rules = [make_game(config.name, config.game) for config in (base, candidate)]
    if base.name != candidate.name or rules[0].settings != rules[1].settings:
        raise ConfigError("base and candidate have to play the same game with the same options; they differ in game.*")
    for name in plan.opponents:
        rules[0].bot(name)


@contextmanager
def two_sides() -> Iterator[Sides]:
    """The two processes of a comparison, or of several one after the other."""
    with SideProcess(BASE) as base, SideProcess(CANDIDATE) as candidate:
        yield {BASE: base, CANDIDATE: candidate}


def compare(sides: Sides, base: Config, candidate: Config, plan: Plan, tell: Callable[[str], None]) -> Comparison:
    """Train and play seed after seed until the verdict is clear or the seeds are used up."""
    check_sides(base, candidate, plan)
    found = Comparison(plan, make_game(base.name, base.game).spec.metric.name)
    configs = {BASE: base, CANDIDATE: candidate}
    for name, side in sides.items():
        side.ask("warm", config=configs[name].model_dump())
    for number in range(plan.limits.seeds):
        bounded = {"seed": plan.seed + number, "minutes": plan.seconds / 60, "steps": None}
        for name, side in sides.items():
            side.ask("begin", config=configs[name].model_copy(update=bounded).model_dump())
        _train(sides, found, f"seed {number + 1} of at most {plan.limits.seeds}", tell)
        tell(f"seed {number + 1}: playing")
        _play(sides, base, found)
        found.verdict = decide(found.evidence, found.limits)
        tell(_so_far(found))
        if found.verdict.verdict != "undecided":
            break
    return found


def _so_far(found: Comparison) -> str:
    ratio, (low, high) = found.evidence.speed()
    diff, _ = found.evidence.strength()
    speed = f"throughput × {ratio:.2f} ({low:.2f}–{high:.2f})"
    return f"{speed}, strength {diff:+.2f}: {found.verdict.verdict}"


def _train(sides: Sides, found: Comparison, title: str, tell: Callable[[str], None]) -> None:
    """Both sides through their budget, in slices A B B A …; looks at the strength on the way."""
    plan = found.plan
    slice_s, done = plan.seconds / plan.pairs, dict.fromkeys(sides, False)
    pairs: list[dict[str, float]] = []
    curves = {name: list[tuple[float, float]]() for name in sides}
    next_look = dict.fromkeys(sides, plan.seconds / LOOKS)
    while not all(done.values()):
        speeds = {}
        for name in (BASE, CANDIDATE) if len(pairs) % 2 == 0 else (CANDIDATE, BASE):
            if done[name]:
                continue
            tell(f"{title}: slice {len(pairs) + 1} of about {plan.pairs}, {name}")
            answer = sides[name].ask("train", seconds=slice_s)
            speeds[name], done[name] = answer["steps"] / answer["wall_s"], answer["done"]
            if answer["elapsed_s"] >= next_look[name] or done[name]:
                next_look[name] = answer["elapsed_s"] + plan.seconds / LOOKS
                look = sides[name].ask("look", against=plan.opponents[0], hands=plan.look_hands, seed=GAMES_SEED - 1)
                curves[name].append((answer["elapsed_s"], look["figures"][found.metric]))
        pairs.append(speeds)
    whole = [pair for pair in pairs if len(pair) == 2]
    for pair in whole[1:] or whole:  # the first is warm-up, where there are others
        found.evidence.base_speeds.append(pair[BASE])
        found.evidence.candidate_speeds.append(pair[CANDIDATE])
    for name, curve in curves.items():
        found.curves[name].append(curve)


def _play(sides: Sides, config: Config, found: Comparison) -> None:
    """Matches on the same deals: against each other and against bots; where nobody sits opposite, each by itself."""
    game, seed = make_game(config.name, config.game), GAMES_SEED + len(found.evidence.duels)
    envs = partial(evaluation_arena, limits=config.workers)
    with tempfile.TemporaryDirectory(prefix="maple-compare-") as folder, Team(available_cores()) as team:
        agents = {
            name: load_agent(side.ask("save", folder=str(Path(folder) / name))["path"], None, team)
            for name, side in sides.items()
        }

        def match(player: Player, others: list[Player]) -> Result:
            return evaluate(game, player, others, found.plan.hands, seed, team, envs=envs)

        if game.spec.seats == 1:
            alone = {name: match(agent, []) for name, agent in agents.items()}
            found.evidence.duels.append(_paired(alone[BASE], alone[CANDIDATE]))
            _note(found, alone, "")
            return
        opposite = game.spec.seats - 1
        lone = {BASE: match(agents[BASE], [agents[CANDIDATE]] * opposite)}
        lone[CANDIDATE] = match(agents[CANDIDATE], [agents[BASE]] * opposite)
        # Half the difference: what the candidate wins from a table of the base, if both matches say the same.
        found.evidence.duels.append(_paired(lone[BASE], lone[CANDIDATE], share=0.5))
        for name in found.plan.opponents:
            bots = [bot_player(game, name, team)] * opposite
            results = {side: match(agent, bots) for side, agent in agents.items()}
            found.evidence.against.setdefault(name, []).append(_paired(results[BASE], results[CANDIDATE]))
            _note(found, results, f" against {name}")


def _paired(base: Result, candidate: Result, share: float = 1.0) -> Paired:
    """The candidate's result less the base's on the same deals, or a share of that."""
    score = (share * base.deal_score, base.deal_hands, share * candidate.deal_score, candidate.deal_hands)
    return paired_difference(*score, games=base.games + candidate.games)


def _note(found: Comparison, results: dict[str, Result], against: str) -> None:
    """Keep the figures of a match of both sides."""
    if len(found.results) < len(found.evidence.duels):
        found.results.append(results[BASE].figures[found.metric])
    for side, result in results.items():
        for figure, value in result.figures.items():
            row = found.figures.setdefault(f"{figure}{against}", {BASE: [], CANDIDATE: []})
            row[side].append(value)


def bisect(sides: Sides, base: Config, candidate: Config, plan: Plan, tell: Callable[[str], None]) -> dict[str, Any]:
    """Take back the candidate's settings one by one; names the one without which it is best off.

    Only what the candidate reads is tried. What cannot be taken back alone, such as a horizon that the base's minibatch
    does not fit into, is skipped.
    """
    changed = {key: values for key, values in differing(base, candidate).items() if _is_read(key, candidate.algo)}
    if len(changed) == 1:
        return {"take_back": next(iter(changed)), "tried": [], "skipped": []}  # which leaves the base
    tried, skipped = list[dict[str, Any]](), list[dict[str, Any]]()
    for key, (before, after) in changed.items():
        setting = {"setting": key, "base": before, "candidate": after}
        try:
            without = _with(candidate, key, before)
            tell(f"taking back {key} = {after!r} (base: {before!r})")
            tried.append({**setting, **compare(sides, base, without, plan, tell).as_json()})
        except ConfigError as error:
            tell(f"taking back {key} = {after!r} alone is impossible: {error}")
            skipped.append({**setting, "reason": str(error)})
    rank = {"adopt": 0, "undecided": 1, "reject": 2}
    best = min(tried, key=lambda row: (rank[row["verdict"]], -row["strength_diff"]), default=None)
    helps = best is not None and best["verdict"] != "reject"
    return {"take_back": best["setting"] if best is not None and helps else None, "tried": tried, "skipped": skipped}


def _is_read(key: str, algo: str) -> bool:
    """Whether a side that learns by `algo` depends on a setting; what ends, saves and looks at runs is not its own."""
    section = key.partition(".")[0]
    return section not in NOT_READ and (section not in ALGOS or section == algo)


def _with(config: Config, key: str, value: Any) -> Config:
    tree = config.model_dump()
    *path, last = key.split(".")
    node = tree
    for part in path:
        node = node[part]
    node[last] = value
    return validated(tree)
