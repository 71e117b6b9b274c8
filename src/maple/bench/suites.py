"""The suites of `maple bench`: each part beside a peer where one is installed, and beside the limit that bounds it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from maple.adapters import gym_env
from maple.arena.choose import external_arena
from maple.bench.arena import ArenaSide
from maple.bench.burn import rounds_per_us
from maple.bench.game import GameSide
from maple.bench.inference import InferenceSide
from maple.bench.limits import matmul_flops, write_bandwidth
from maple.bench.loops import PlainLoops
from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.peers.vector import GymnasiumAsync
from maple.bench.replay import bench_replay
from maple.bench.roofline import bench_roofline
from maple.bench.train import PAIRS, bench_train
from maple.core.config import Config
from maple.core.sources import load_config
from maple.games import entry, make_game
from maple.games.bridged import Bridged
from maple.games.external.game import ExternalGame

__all__ = ["SUITES", "run_suites"]

TABLES = 8192  # of a game by itself, a thread
LIMIT_S = 0.5
SAME_RECIPE = ["opponents=random"]
ENVS, ENV_COST_US = 16, 50.0  # of envs in worker processes
CAPACITY, BATCH = 131_072, 256  # of replay
PEER_NAMES = {"torchrl": "TorchRL's buffer", "tianshou": "Tianshou's buffer"}


def _row(suite: str, what: str, per_s: float, limit: str, limit_per_s: float) -> dict[str, Any]:
    return {
        "suite": suite,
        "what": what,
        "per_s": per_s,
        "limit": limit,
        "limit_per_s": limit_per_s,
        "of_limit": per_s / limit_per_s,
        "against": None,
        "ratio": None,
        "ratio_ci95": None,
    }


def _beside(row: dict[str, Any], peer: str, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    ratio, interval = ratio_interval(ours, theirs)
    return {**row, "against": peer, "ratio": ratio, "ratio_ci95": list(interval)}


def _loop_of_one(config: Config) -> Callable[[float], float]:
    """A Gymnasium env of the same game in a Python loop: random legal steps a second."""
    env = gym_env(config.name, opponents="random", seed=config.seed, **config.game)
    rng = np.random.default_rng(config.seed)
    env.reset(seed=config.seed)

    def slice_of(seconds: float) -> float:
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            _, _, terminated, truncated, _ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
            steps += 1
            if terminated or truncated:
                env.reset()
        return steps / (time.perf_counter() - began)

    return slice_of


def is_native(config: Config) -> bool:
    """Whether kernels play the game here, which is what one can play by itself and give to a peer as an env."""
    return not isinstance(make_game(config.name, config.game), ExternalGame | Bridged)


def games_suite(config: Config, threads: int, seconds: float) -> dict[str, Any]:
    """The game alone with observation and mask, beside a Gymnasium env of it in a Python loop."""
    side, one = GameSide(config.name, config.game, threads, TABLES, False, config.seed), _loop_of_one(config)
    slice_s = seconds / (2 * (PAIRS + 1))
    ours, theirs = interleave(lambda: side.slice(slice_s), lambda: one(slice_s), PAIRS)
    limit = write_bandwidth(threads, LIMIT_S) / side.bytes_per_decision
    what = f"decisions played with observation and mask, {threads} threads"
    row = _row("games", what, float(np.median(ours)), f"memory writes, {side.bytes_per_decision} bytes each", limit)
    return _beside(row, "one Gymnasium env in a Python loop", ours, theirs)


def inference_suite(config: Config, threads: int, seconds: float) -> dict[str, Any]:
    """The peer's network over indices, by ours and by the peer's code."""
    same = load_config(config.name, "sb3", SAME_RECIPE, entry(config.name).defaults, {"seed": config.seed})
    side = InferenceSide(same.model_copy(update={"game": config.game, "threads": threads, "tables": config.tables}))
    slice_s = seconds / (2 * (PAIRS + 1))
    try:
        observation, mask = side.side.trainer.learner.policy.seen.all_observations(np.concatenate(side.views))
        if find_spec("sb3_contrib") is not None:
            from maple.bench.peers.sb3 import Sb3Policy

            peer = Sb3Policy(observation[: len(side.views[0])], mask[: len(side.views[0])], threads)
            ours, theirs = interleave(lambda: side.slice(slice_s), lambda: peer.slice(slice_s), PAIRS)
        else:
            ours, theirs = [side.slice(slice_s) for _ in range(PAIRS)], []
        hidden = same.net.hidden
        flops = matmul_flops(512, hidden[-1], mask.shape[1], threads, LIMIT_S)
        limit = flops / (2 * side.multiplications())
    finally:
        side.close()
    what = f"decisions chosen by a network of {hidden}, {threads} threads"
    row = _row("inference", what, float(np.median(ours)), "matrix products of its dense layers", limit)
    return _beside(row, Sb3Policy.name, ours, theirs) if theirs else row


def training_suite(config: Config, threads: int, seconds: float) -> dict[str, Any]:
    """Training end to end on the peer's recipe, and the sum of its parts as the limit."""
    same = load_config(config.name, "sb3", SAME_RECIPE, entry(config.name).defaults, {"seed": config.seed})
    same = same.model_copy(update={"game": config.game, "threads": threads, "tables": config.tables})
    make_peer = None
    if is_native(config) and find_spec("sb3_contrib") is not None:
        from maple.bench.peers.sb3 import Sb3Side

        make_peer = partial(Sb3Side, config.name, config.game, config.seed)
    found = bench_train(same, seconds / 3, make_peer)
    parts = bench_roofline(same, seconds / 3)
    what = f"decisions learned from, the peer's recipe, {threads} threads"
    row = _row("training", what, found["maple"]["steps_per_s"], "its parts one by one", parts["roofline_steps_per_s"])
    if "peer" not in found:
        return row
    return {**row, "against": found["peer"]["name"], "ratio": found["ratio"], "ratio_ci95": found["ratio_ci95"]}


def arenas_suite(config: Config, threads: int, seconds: float) -> dict[str, Any]:
    """Envs of a known cost in workers, beside Gymnasium's and beside plain loops; `maple bench arena` has more."""
    rounds = round(ENV_COST_US * rounds_per_us())
    game = make_game("maple.bench.burn:BurnEnv", {"rounds": rounds, "masks": "method"})
    assert isinstance(game, ExternalGame)
    slice_s = seconds / (2 * (PAIRS + 1))
    with (
        ArenaSide(external_arena(game, ENVS, config.seed, threads, threads)) as side,
        GymnasiumAsync(ENVS, rounds) as peer,
    ):
        ours, theirs = interleave(lambda: side.slice(slice_s), lambda: peer.slice(slice_s), PAIRS)
    with PlainLoops(ENVS, threads, rounds=rounds, masks="method") as loops:
        loops.slice(LIMIT_S)  # warm-up
        limit = loops.slice(LIMIT_S)
    what = f"steps of {ENVS} envs of {ENV_COST_US:g} µs a step, {threads} workers"
    row = _row("arenas", what, float(np.median(ours)), "as many plain loops at once, which share nothing", limit)
    return _beside(row, "Gymnasium's AsyncVectorEnv", ours, theirs)


def replay_suite(config: Config, threads: int, seconds: float) -> dict[str, Any]:
    """Prioritized replay by itself, beside a peer's and beside uniform draws; `maple bench replay` has more."""
    found = bench_replay(CAPACITY, BATCH, seconds, True, config.seed, threads, lambda _: None)
    what = f"minibatches of {BATCH} drawn by priority and weighed anew, of {CAPACITY:,}"
    ours, plain = found["prioritized"]["update_per_s"], found["uniform"]["update_per_s"]
    row = _row("replay", what, ours, "the same without priorities", plain)
    beside = {name: peer for name, peer in found["peers"].items() if "ratio" in peer}
    if not beside:
        return row
    name, peer = max(beside.items(), key=lambda item: item[1]["update_per_s"])  # the fastest of them
    return {**row, "against": PEER_NAMES[name], "ratio": peer["ratio"], "ratio_ci95": peer["ratio_ci95"]}


SUITES: dict[str, Callable[[Config, int, float], dict[str, Any]]] = {
    "games": games_suite,
    "inference": inference_suite,
    "training": training_suite,
    "arenas": arenas_suite,
    "replay": replay_suite,
}


def run_suites(
    names: list[str], config: Config, threads: int, seconds: float, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Run suites one after the other, about `seconds` each; those that a game has nothing for are left out."""
    rows, left_out = [], {}
    for name in names:
        if name == "games" and not is_native(config):
            left_out[name] = f"{config.name} has no kernels to be played alone; the suite arenas measures envs"
            tell(f"suite {name} is left out: {left_out[name]}")
            continue
        tell(f"suite {name}, about {seconds:g} s")
        rows.append(SUITES[name](config, threads, seconds))
    about = {"game": config.name, "rows": rows, "left_out": left_out, "threads": threads}
    return {**about, "seed": config.seed, "machine": machine()}
