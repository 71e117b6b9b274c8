"""Replay by itself and in learning: prioritized beside uniform draws and beside other libraries' buffers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from maple.bench.measure import machine, ratio_interval
from maple.bench.peers.replay import PEERS, PeerReplay
from maple.core.config import Config, DqnConfig
from maple.core.spec import GameSpec, Metric
from maple.core.threads import Team
from maple.learn.replay import Priorities, Replay
from maple.nets.policy import Choice
from maple.nets.q import IndexQ
from maple.nets.seen import Seen
from maple.training.learners import DqnLearner, make_policy

__all__ = ["bench_replay"]

ROUNDS = 5
WORDS, ACTIONS, TABLES = 12, 16, 1024  # rows of 96 bytes, a decision of OFC
SIDE_PARTS = ("sample_per_s", "update_per_s", "learn_per_s")


class _Bytes:
    """An encoder of made-up rows: the view's bytes are the observation, and every action is legal."""

    spec = GameSpec(
        name="bytes",
        seats=1,
        actions=ACTIONS,
        observation=8 * WORDS,
        view=WORDS,
        signals=("reward",),
        figures=np.dtype([("how", np.int8)]),
        opponents=(),
        metric=Metric("reward", 0.0),
        energy=8.0 * WORDS,
    )

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[Any], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None:
        observation[lo:hi] = view[lo:hi].view(np.uint8)
        mask[lo:hi] = True

    def _none(self, *_: Any) -> None:
        raise NotImplementedError("these rows have no options")

    count_options = describe = describe_state = describe_choice = permute = _none


class _Side(Protocol):
    def sample(self) -> None:
        """Draw and copy out one batch."""

    def update(self) -> None:
        """The same, and give its rows new priorities."""


class _Peer:
    """Somebody else's buffer."""

    def __init__(self, replay: PeerReplay, error: NDArray[np.float32]) -> None:
        self._replay, self._error = replay, error

    def sample(self) -> None:
        self._replay.sample()

    def update(self) -> None:
        self._replay.update(self._replay.sample(), self._error)


class _Ours:
    """A full replay, and a network that learns from it."""

    def __init__(self, capacity: int, batch: int, prioritized: bool, team: Team, seed: int) -> None:
        self._batch, self._seed, self._number = batch, seed, 0
        self._error = np.random.default_rng(seed).exponential(size=batch).astype(np.float32)
        dqn = DqnConfig(policy="index", minibatch=batch, capacity=capacity, warmup=0, prioritized=prioritized)
        config = Config.model_validate({"name": "bytes", "algo": "dqn", "dqn": dqn, "net": {"hidden": [64, 64]}})
        net = make_policy(config, Seen(_Bytes(), team), torch.device("cpu"))
        assert isinstance(net, IndexQ)
        self.replay = _filled(capacity, prioritized, seed)
        self._learner, self._updates = DqnLearner(net, config, self.replay, False), dqn.updates_per_step

    def sample(self) -> None:
        self.replay.draw(self._batch, 1, 0.4, self._seed, self._next())

    def update(self) -> None:
        drawn = self.replay.draw(self._batch, 1, 0.4, self._seed, self._next())
        self.replay.reweigh(drawn.row, self._error)

    def learn(self) -> int:
        """The whole path with a network in it; returns how many updates that were."""
        self._learner.update(self._next(), 0.5)
        return self._updates

    def _next(self) -> int:
        self._number += 1
        return self._number


def _filled(capacity: int, prioritized: bool, seed: int) -> Replay:
    """A replay full of three-step transitions of random bytes, with priorities of all sizes."""
    rng = np.random.default_rng(seed)
    replay = Replay(
        capacity, 1, TABLES, 1, WORDS, n_step=3, gamma=0.99, priorities=Priorities() if prioritized else None
    )
    table, seat, choice = np.arange(TABLES, dtype=np.int32), np.zeros(TABLES, np.int8), Choice.allocate(TABLES, 1)
    for _ in range(-(-capacity // TABLES) + 4):
        view = (rng.random((TABLES, 8 * WORDS)) < 0.15).astype(np.uint8).view(np.uint64)
        choice.action[:] = rng.integers(0, ACTIONS, TABLES)
        replay.add(table, seat, rng.random((TABLES, 1), np.float32), view, choice)
    ready = np.flatnonzero(replay.ready)
    replay.reweigh(ready, rng.exponential(size=len(ready)).astype(np.float32))
    return replay


def _per_s(work: Callable[[], int | None], seconds: float) -> float:
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        done += work() or 1
    return done / (time.perf_counter() - began)


def _open_peers(capacity: int, batch: int, seed: int) -> tuple[dict[str, _Peer], dict[str, Any]]:
    """Those that are installed and work here, and why the others do not."""
    rng = np.random.default_rng(seed)
    observation = (rng.random((capacity, 8 * WORDS)) < 0.15).astype(np.uint8)
    error = rng.exponential(size=batch).astype(np.float32)
    there, missing = {}, {}
    for name, make in PEERS.items():
        try:
            there[name] = _Peer(make(observation, batch), error)
        except (ImportError, RuntimeError) as reason:  # TorchRL's binaries fit one version of torch each
            missing[name] = {"missing": str(reason).split("\n")[0]}
    return there, missing


def bench_replay(
    capacity: int, batch: int, seconds: float, peers: bool, seed: int, threads: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Batches a second: drawn, drawn and weighed anew, and learned from; all sides in turns, about `seconds` in all."""
    torch.set_num_threads(1)
    with Team(threads) as team:
        tell(f"filling {capacity:,} rows")
        ours = {name: _Ours(capacity, batch, name == "prioritized", team, seed) for name in ("prioritized", "uniform")}
        others, missing = _open_peers(capacity, batch, seed) if peers else ({}, {})
        sides: dict[str, _Side] = {**ours, **others}
        speeds: dict[str, dict[str, list[float]]] = {name: {part: [] for part in SIDE_PARTS} for name in sides}
        slice_s = seconds / ((ROUNDS + 1) * (2 * len(sides) + len(ours)))
        for number in range(ROUNDS + 1):
            tell(f"round {number} of {ROUNDS}" if number else "warming up")
            for name in list(sides)[:: 1 if number % 2 else -1]:
                found = {"sample_per_s": _per_s(sides[name].sample, slice_s)}
                found["update_per_s"] = _per_s(sides[name].update, slice_s)
                if name in ours:
                    found["learn_per_s"] = _per_s(ours[name].learn, slice_s)
                for part, speed in found.items() if number else ():
                    speeds[name][part].append(speed)
    return _report(speeds, missing) | {
        "capacity": capacity,
        "batch": batch,
        "row_bytes": 8 * WORDS,
        "threads": threads,
        "seed": seed,
        "machine": machine(),
    }


def _report(speeds: dict[str, dict[str, list[float]]], missing: dict[str, Any]) -> dict[str, Any]:
    medians = {
        name: {part: float(np.median(values)) for part, values in parts.items() if values}
        for name, parts in speeds.items()
    }
    first, second = speeds["prioritized"], speeds["uniform"]
    whole, alone = (ratio_interval(first[part], second[part]) for part in ("learn_per_s", "update_per_s"))
    peers: dict[str, Any] = {}
    for name in medians.keys() - {"prioritized", "uniform"}:
        ahead = ratio_interval(first["update_per_s"], speeds[name]["update_per_s"])
        peers[name] = {**medians[name], "ratio": ahead[0], "ratio_ci95": list(ahead[1])}
    return {
        "prioritized": medians["prioritized"],
        "uniform": medians["uniform"],
        "ratio": whole[0],
        "ratio_ci95": list(whole[1]),
        "replay_ratio": alone[0],
        "replay_ratio_ci95": list(alone[1]),
        "peers": {**peers, **missing},
    }
