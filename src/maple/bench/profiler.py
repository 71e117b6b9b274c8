"""What profiling costs: a span by itself, how many there are in a second, and a run with and without."""

from __future__ import annotations

import time
from typing import Any

from maple.bench.measure import interleave, machine, ratio_interval
from maple.bench.train import PAIRS, MapleSide
from maple.core.config import Config
from maple.perf import Profiler, Recorder, span

__all__ = ["bench_profiler", "span_cost_s"]

SPANS = 100_000


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


def bench_profiler(config: Config, seconds: float) -> dict[str, Any]:
    """The cost of spans by count, and the ratio of slices with and without a profiler, taken in turns."""
    slice_s, spans, walls = seconds / PAIRS, 0, 0.0
    cost = span_cost_s()
    with MapleSide(config) as side:
        side.slice(min(2.0, slice_s))

        def profiled() -> float:
            nonlocal spans, walls
            with Profiler() as profiler:
                speed = side.slice(slice_s)
            nodes = [node for account in profiler.recorder.accounts for _, node in account.root.walk()]
            spans, walls = spans + sum(node.count for node in nodes), walls + profiler.profile({})["wall_s"]
            return speed

        with_it, without = interleave(profiled, lambda: side.slice(slice_s), PAIRS)
    ratio, interval = ratio_interval(with_it, without)
    return {
        "game": config.name,
        "algo": config.algo,
        "span_us": 1e6 * cost,
        "spans_per_s": spans / walls,
        "cost_by_count": cost * spans / walls,
        "ratio": ratio,
        "ratio_ci95": list(interval),
        "seed": config.seed,
        "machine": machine(),
    }
