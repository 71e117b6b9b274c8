"""What the machine does while something runs: processors, memory, context switches, the GPU where there is one."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import psutil

from maple.perf.spans import IDLE, Clock, span

__all__ = ["SAMPLING", "SystemSampler", "summarize_samples"]

SAMPLING = "sample_system"
CHILDREN_EVERY = 5  # samples: to find the children means to look at every process of the machine


class SystemSampler:
    """Takes a sample every `interval_s` on a thread of its own; `also` gives what else belongs into it."""

    def __init__(self, clock: Clock, interval_s: float, also: Callable[[], dict[str, Any]]) -> None:
        self.samples: list[dict[str, Any]] = []
        self.worked_s = 0.0  # processor time of all looks
        self._clock = clock
        self._interval_s = interval_s
        self._also = also
        self._stop = threading.Event()
        self._me = psutil.Process()
        self._children: dict[int, Any] = {}
        self._graphics = shutil.which("nvidia-smi")
        self._thread = threading.Thread(target=self._live, name="maple-sampler", daemon=True)

    def __enter__(self) -> SystemSampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _live(self) -> None:
        with span(SAMPLING):
            self._look()  # percentages are since a thread's look before: the first one says nothing
        while True:
            with span(IDLE):
                stopped = self._stop.wait(self._interval_s)
            with span(SAMPLING):
                self.samples.append(self._look())
            self.worked_s = time.thread_time()  # of this thread alone, which does nothing else
            if stopped:
                return

    def _look(self) -> dict[str, Any]:
        if len(self.samples) % CHILDREN_EVERY == 0:
            found = {child.pid: child for child in self._me.children(recursive=True)}
            self._children = {pid: self._children.get(pid, child) for pid, child in found.items()}
        own = self._one(self._me)
        children = [figures for child in self._children.values() if (figures := self._one(child)) is not None]
        processes = [figures for figures in (own, *children) if figures is not None]
        return {
            "at": self._clock(),
            **self._also(),
            "cpu_per_core": psutil.cpu_percent(percpu=True),
            "cpu_per_process": {str(figures["pid"]): figures["cpu"] for figures in processes},
            "memory_bytes": sum(figures["memory_bytes"] for figures in processes),
            "context_switches": sum(figures["context_switches"] for figures in processes),
            "threads": sum(figures["threads"] for figures in processes),
            **(self._gpu() if self._graphics else {}),
        }

    def _one(self, process: Any) -> dict[str, Any] | None:
        try:
            with process.oneshot():
                switches = process.num_ctx_switches()
                return {
                    "pid": process.pid,
                    "cpu": process.cpu_percent(),
                    "memory_bytes": process.memory_info().rss,
                    "context_switches": switches.voluntary + switches.involuntary,
                    "threads": process.num_threads(),
                }
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return None  # it ended between two looks

    def _gpu(self) -> dict[str, Any]:
        query = [str(self._graphics), "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
        asked = subprocess.run(query, capture_output=True, text=True, check=False)
        rows = [line.split(",") for line in asked.stdout.splitlines() if line.count(",") == 1]
        return {"gpu_percent": [float(row[0]) for row in rows], "gpu_memory_mib": [float(row[1]) for row in rows]}


def summarize_samples(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and peaks of the samples; empty where there are none."""
    if not samples:
        return {}
    cores = [sum(sample["cpu_per_core"]) / max(1, len(sample["cpu_per_core"])) for sample in samples]
    whole = [sum(sample["cpu_per_process"].values()) for sample in samples]
    lasted = samples[-1]["at"] - samples[0]["at"]
    switches = samples[-1]["context_switches"] - samples[0]["context_switches"]
    found = {
        "machine_cpu_percent": sum(cores) / len(cores),
        "cpu_percent": sum(whole) / len(whole),
        "cpu_percent_peak": max(whole),
        "memory_bytes": samples[-1]["memory_bytes"],
        "memory_peak_bytes": max(sample["memory_bytes"] for sample in samples),
        "context_switches_per_s": max(0.0, switches / lasted) if lasted > 0 else 0.0,
        "processes_peak": max(len(sample["cpu_per_process"]) for sample in samples),
    }
    busy = [max(sample["gpu_percent"]) for sample in samples if sample.get("gpu_percent")]
    if busy:
        memory = [sum(sample["gpu_memory_mib"]) for sample in samples if sample.get("gpu_memory_mib")]
        found |= {"gpu_percent": sum(busy) / len(busy), "gpu_memory_peak_mib": max(memory)}
    return found
