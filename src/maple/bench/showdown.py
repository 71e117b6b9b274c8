"""Battles: the bridge with everything encoded, beside the simulator alone, as it is, and other ways to play it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Protocol

import numpy as np

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.arena.node_process import NodeProcess, Transport
from maple.bench.measure import machine, ratio_interval
from maple.games import make_game
from maple.games.bridged import Bridged
from maple.games.showdown.runtime import find_node, node_version
from maple.games.showdown.server import LocalServer

__all__ = ["BridgeSide", "PlayingSide", "SimulatorSide", "Way", "bench_showdown", "bound_by"]

ROUNDS = 12
WARM_UP_S = 10.0  # the simulator's compiler needs some seconds to settle


class PlayingSide(Protocol):
    """Something that plays battles and can be measured in slices."""

    name: str

    def slice(self, seconds: float) -> float:
        """Play for about so long; returns decisions a second."""


Way = Literal["ipc", "shared", "pipe", "server"]
_TRANSPORTS: dict[Way, Transport] = {"ipc": "auto", "shared": "shared", "pipe": "pipe", "server": "auto"}


class BridgeSide:
    """Random play through the arena, with observation and mask written for each decision.

    By `server`, the battles are played on a real server that is started here.
    """

    def __init__(self, options: dict[str, Any], processes: int, battles: int, seed: int, way: Way = "ipc") -> None:
        self.name = f"bridge, {way}"
        self._options, self._tables, self._processes = options, processes * battles, processes
        self._seed, self._way = seed, way
        self._stack = ExitStack()

    def __enter__(self) -> BridgeSide:
        with ExitStack() as stack:
            options = self._options
            if self._way == "server":
                server = stack.enter_context(LocalServer())
                options = {**options, "servers": f"127.0.0.1:{server.port}/{self._tables}"}
            game = make_game("showdown", options)
            self._bot = game.bot("random")
            self.arena = NodeArena(
                game,
                self._tables,
                self._seed,
                processes=self._processes,
                transport=_TRANSPORTS[self._way],
                check=False,
                limits=PoolLimits(spares=0),
            )
            stack.callback(self.arena.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def slice(self, seconds: float) -> float:
        """Play for so long; returns decisions a second."""
        began, decisions = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            step = self.arena.recv()
            action = np.empty(len(step.keys), np.int32)
            self._bot(step.view, self._seed, step.keys, action, 0, len(action))
            self.arena.send(action)
            decisions += len(action)
        return decisions / (time.perf_counter() - began)


class SimulatorSide:
    """The same processes and battles with random choices made in Node: no Python, no encoding."""

    def __init__(self, options: dict[str, Any], processes: int, battles: int, seed: int, accelerate: bool) -> None:
        game = make_game("showdown", {**options, "accelerate": accelerate})
        assert isinstance(game, Bridged)
        self.name = "simulator alone, accelerated" if accelerate else "simulator alone, as it is"
        self._battles = battles
        program = game.program(seed, 1)
        self._pool = [NodeProcess.start(program, 0, "auto") for _ in range(processes)]
        for process in self._pool:
            said = process.wait_ready()
            if "failed" in said:
                raise game.refuse(said["failed"])
        self.not_accelerated = str(said["notAccelerated"])
        self.simulator = str(said["simulator"])

    def __enter__(self) -> SimulatorSide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._pool:
            process.close()

    def slice(self, seconds: float) -> float:
        """Play for so long; returns decisions a second, of all processes together."""
        for process in self._pool:
            process.play_alone(self._battles, seconds)
        counts = [process.played() for process in self._pool]
        return float(sum(count["decisions"] / count["seconds"] for count in counts))


def _rounds(
    sides: Sequence[PlayingSide], warm_up_s: float, slice_s: float, tell: Callable[[str], None]
) -> list[list[float]]:
    """Slices of every side, to and fro, after a warm-up of each."""
    for side in sides:
        tell(f"warming up: {side.name}")
        side.slice(warm_up_s)
    speeds: list[list[float]] = [[] for _ in sides]
    for number in range(ROUNDS):
        tell(f"measuring, round {number + 1} of {ROUNDS}")
        order = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
        for which in order:
            speeds[which].append(sides[which].slice(slice_s))
    return speeds


def _figures(speeds: list[float]) -> dict[str, Any]:
    return {"decisions_per_s": float(np.median(speeds)), "slices": speeds}


def bound_by(efficiency: float) -> str:
    """What takes most of a decision's time: the simulator alone needs this share of it in the same processes."""
    return "the simulator" if efficiency > 0.5 else "the bridge"


def bench_showdown(
    options: dict[str, Any],
    processes: int,
    battles: int,
    seconds: float,
    seed: int,
    tell: Callable[[str], None],
    peer: Callable[[], Any] | None = None,
    ways: Sequence[Way] = ("ipc",),
    warm_up_s: float = WARM_UP_S,
) -> dict[str, Any]:
    """Decisions a second of the bridge and, in the same rounds, of what it is compared with; `seconds` a side."""
    with ExitStack() as stack:
        bridges = [stack.enter_context(BridgeSide(options, processes, battles, seed, way)) for way in ways]
        alone = stack.enter_context(SimulatorSide(options, processes, battles, seed, accelerate=True))
        stock = stack.enter_context(SimulatorSide(options, processes, battles, seed, accelerate=False))
        sides: list[PlayingSide] = [*bridges, alone, stock]
        if peer is not None:
            sides.append(stack.enter_context(peer()))
        speeds = _rounds(sides, warm_up_s, seconds / ROUNDS, tell)
        counters = bridges[0].arena.report()
    mine, n = speeds[0], len(bridges)
    efficiency, efficiency_ci = ratio_interval(mine, speeds[n])
    faster, faster_ci = ratio_interval(speeds[n], speeds[n + 1])
    found = {
        "game": "showdown",
        "format": make_game("showdown", options).settings.model_dump()["format"],
        **_figures(mine),
        "simulator_alone": _figures(speeds[n]),
        "stock": _figures(speeds[n + 1]),
        "efficiency": efficiency,
        "efficiency_ci95": list(efficiency_ci),
        "acceleration": faster,
        "acceleration_ci95": list(faster_ci),
        "not_accelerated": alone.not_accelerated,
        "node_starts": counters["starts"],
        "bytes_per_decision": counters["bytes_per_decision"],
        "frames_per_decision": counters["frames_per_decision"],
        "refusals": counters["refusals"],
        "anomalies": counters["anomalies"],
        "processes": processes,
        "battles_a_process": battles,
        "bound_by": bound_by(efficiency),
        "seed": seed,
        "machine": {**machine(), "node": node_version(find_node()), "pokemon-showdown": alone.simulator},
    }
    if n > 1:
        ratio, interval = ratio_interval(mine, speeds[1])
        others = {bridge.name: _figures(slices) for bridge, slices in zip(bridges[1:], speeds[1:n], strict=True)}
        found["transports"] = {bridges[0].name: _figures(mine), **others, "ratio": ratio, "ratio_ci95": list(interval)}
    if peer is not None:
        ratio, interval = ratio_interval(mine, speeds[-1])
        found |= {
            "peer": {"name": sides[-1].name, **_figures(speeds[-1])},
            "ratio": ratio,
            "ratio_ci95": list(interval),
        }
    return found
