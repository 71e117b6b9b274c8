"""What profiling costs: a span by itself, how many there are in a second, and a run with and without."""

from __future__ import annotations

import time
from typing import Any

from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.train import MapleSide
from maple.core.config import Config
from maple.perf import Profiler, Recorder, span

__all__ = ["bench_profiler", "span_cost_s"]

SPANS = 100_000
TURN_S = 2.0  # long enough for the system to be looked at as often as in a run
PAIRS = 15


def span_cost_s() -> float:
    """Seconds that an empty span takes while somebody records, the loop around it taken off."""
    with Recorder():
        began = time.perf_counter()
        for _ in range(SPANS):
            with span("empty"):
                pass
        recorded = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(SPANS):
        pass
    return (recorded - (time.perf_counter() - began)) / SPANS


class _Turns:
    """A run in slices, with a profiler or without; keeps what a step costs in processor time as well."""

    def __init__(self, side: MapleSide, slice_s: float) -> None:
        self._side, self._slice_s = side, slice_s
        self.cpu_speeds: dict[bool, list[float]] = {True: [], False: []}
        self.spans, self.sampled_s, self.wall_s = 0, 0.0, 0.0

    def _slice(self, profiled: bool) -> float:
        cpu, steps = self._side.cpu_s, self._side.steps
        speed = self._side.slice(self._slice_s)
        self.cpu_speeds[profiled].append((self._side.steps - steps) / max(self._side.cpu_s - cpu, 1e-9))
        return speed

    def without(self) -> float:
        """Steps a second."""
        return self._slice(False)

    def profiled(self) -> float:
        """The same while a profiler runs."""
        with Profiler() as profiler:
            speed = self._slice(True)
        nodes = [node for account in profiler.recorder.accounts for _, node in account.root.walk()]
        self.spans += sum(node.count for node in nodes)
        self.sampled_s += profiler.sampling_s
        self.wall_s += profiler.recorder.ended - profiler.recorder.began
        return speed


def bench_profiler(config: Config, seconds: float) -> dict[str, Any]:
    """What spans and looks at the system cost by count, and the ratio of slices with and without them, taken in turns.

    The ratio by processor time is the steadier one where other programs use the same cores.
    """
    cost = span_cost_s()
    with MapleSide(config) as side:
        pairs = max(PAIRS, int(seconds / TURN_S))
        side.slice(min(TURN_S, seconds / pairs))
        turns = _Turns(side, seconds / pairs)
        with_it, without = interleave(turns.profiled, turns.without, pairs)
    ratio, interval = ratio_interval(with_it, without)
    cpu_ratio, cpu_interval = ratio_interval(turns.cpu_speeds[True][1:], turns.cpu_speeds[False][1:])
    return {
        "game": config.name,
        "algo": config.algo,
        "span_us": 1e6 * cost,
        "spans_per_s": turns.spans / turns.wall_s,
        "sampler_share": turns.sampled_s / turns.wall_s,
        "cost_by_count": (cost * turns.spans + turns.sampled_s) / turns.wall_s,
        "ratio": ratio,
        "ratio_ci95": list(interval),
        "cpu_ratio": cpu_ratio,
        "cpu_ratio_ci95": list(cpu_interval),
        "pairs": pairs,
        "seed": config.seed,
        "machine": machine(),
    }
