"""What the machine does while something runs: processors, memory, context switches, the GPU where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import psutil

from maple.perf.spans import IDLE, Clock, span

__all__ = ["SAMPLES", "SAMPLING", "SystemSampler", "merge_samples", "summarize_samples", "switches_of"]

SAMPLING = "sample_system"
SAMPLES = 1200  # at most; then two become one, and they are taken half as often: a week is one every 1,024 s
CHILDREN_EVERY = 5  # samples: to find the children means to look at every process of the machine
GPU_LIMIT_S = 2.0


class SystemSampler:
    """Takes a sample every `interval_s` on a thread of its own; `also` gives what else belongs into it."""

    def __init__(
        self, clock: Clock, interval_s: float, also: Callable[[], dict[str, Any]], most: int = SAMPLES
    ) -> None:
        self.samples: list[dict[str, Any]] = []
        self.worked_s = 0.0  # processor time of all looks
        self._clock = clock
        self._interval_s = interval_s
        self._most = most
        self._also = also
        self._stop = threading.Event()
        self._me = psutil.Process()
        self._children: dict[int, Any] = {}
        self._looks = 0
        self._switches: dict[int, int] = {}  # of each thread, as of the last look
        self._switched = 0  # since the first look
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
                self._keep(self._look())
                self.worked_s = time.thread_time()  # of this thread alone, which does nothing else
                if stopped:
                    return

    def _keep(self, sample: dict[str, Any]) -> None:
        """Add a sample; when there are many, two and two become one."""
        kept = [*self.samples, sample]
        if len(kept) >= self._most:
            pairs = zip(kept[::2], kept[1::2], strict=False)
            kept = [merge_samples(*pair) for pair in pairs] + kept[len(kept) // 2 * 2 :]
            self._interval_s *= 2
        self.samples = kept  # a list that is never changed, so that whoever reads it has a whole one

    def _look(self) -> dict[str, Any]:
        if self._looks % CHILDREN_EVERY == 0:
            found = {child.pid: child for child in self._me.children(recursive=True)}
            self._children = {pid: self._children.get(pid, child) for pid, child in found.items()}
        own = self._one(self._me)
        children = [figures for child in self._children.values() if (figures := self._one(child)) is not None]
        processes = [figures for figures in (own, *children) if figures is not None]
        self._count_switches({thread: n for figures in processes for thread, n in figures["switches"].items()})
        self._looks += 1
        return {
            "at": self._clock(),
            **self._also(),
            "cpu_per_core": psutil.cpu_percent(percpu=True),
            "cpu_per_process": {str(figures["pid"]): figures["cpu"] for figures in processes},
            "memory_bytes": sum(figures["memory_bytes"] for figures in processes),
            "context_switches": self._switched,
            "threads": sum(figures["threads"] for figures in processes),
            **(self._gpu() if self._graphics else {}),
        }

    def _count_switches(self, now: dict[int, int]) -> None:
        """Add what each thread made since the last look; one that is new made all of its own since."""
        if self._looks:
            self._switched += sum(max(0, number - self._switches.get(thread, 0)) for thread, number in now.items())
        self._switches = now

    def _one(self, process: Any) -> dict[str, Any] | None:
        try:
            with process.oneshot():
                return {
                    "pid": process.pid,
                    "cpu": process.cpu_percent(),
                    "memory_bytes": process.memory_info().rss,
                    "switches": switches_of(process),
                    "threads": process.num_threads(),
                }
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return None  # it ended between two looks

    def _gpu(self) -> dict[str, Any]:
        query = [str(self._graphics), "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
        try:
            asked = subprocess.run(query, capture_output=True, text=True, check=False, timeout=GPU_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired):
            self._graphics = None  # a driver that hangs is not asked again
            return {}
        rows = [line.split(",") for line in asked.stdout.splitlines() if line.count(",") == 1]
        return {"gpu_percent": [float(row[0]) for row in rows], "gpu_memory_mib": [float(row[1]) for row in rows]}


def switches_of(process: Any) -> dict[int, int]:
    """Context switches so far by thread; where the system does not tell them apart, of the process."""
    if sys.platform != "linux":
        made = process.num_ctx_switches()
        return {process.pid: made.voluntary + made.involuntary}
    folder, found = f"/proc/{process.pid}/task", {}  # psutil reads the main thread's alone
    with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        for thread in os.listdir(folder):
            with suppress(FileNotFoundError, ProcessLookupError):
                found[int(thread)] = _switches(f"{folder}/{thread}/status")
    return found


def _switches(status: str) -> int:
    """The sum of a status file's last two lines; 20 µs, where pathlib and a look at every line take four times that."""
    descriptor = os.open(status, os.O_RDONLY)
    try:
        text = os.read(descriptor, 16_384)
    finally:
        os.close(descriptor)
    at = text.rfind(b"\nvoluntary_ctxt_switches:")
    if at < 0:
        return 0  # some systems that stand in for Linux do not count them
    voluntary, _, forced = text[at:].partition(b"\nnon")
    return sum(int(line.partition(b":")[2]) for line in (voluntary, forced))


def merge_samples(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """One sample for two that follow each other: means of use, the higher memory; what is counted stands at the end."""
    merged = {
        **second,
        "cpu_per_core": _means(first["cpu_per_core"], second["cpu_per_core"]),
        "cpu_per_process": {
            pid: (first["cpu_per_process"].get(pid, 0.0) + second["cpu_per_process"].get(pid, 0.0)) / 2
            for pid in first["cpu_per_process"] | second["cpu_per_process"]
        },
        "memory_bytes": max(first["memory_bytes"], second["memory_bytes"]),
    }
    if "gpu_percent" in first and "gpu_percent" in second:
        merged["gpu_percent"] = _means(first["gpu_percent"], second["gpu_percent"])
        merged["gpu_memory_mib"] = max(first["gpu_memory_mib"], second["gpu_memory_mib"], key=sum)
    return merged


def _means(first: list[float], second: list[float]) -> list[float]:
    return [(a + b) / 2 for a, b in zip(first, second, strict=False)]


def summarize_samples(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and peaks of the samples; empty where there are none."""
    if not samples:
        return {}
    cores = [sum(sample["cpu_per_core"]) / max(1, len(sample["cpu_per_core"])) for sample in samples]
    whole = [sum(sample["cpu_per_process"].values()) for sample in samples]
    lasted = samples[-1]["at"]
    found = {
        "machine_cpu_percent": sum(cores) / len(cores),
        "cpu_percent": sum(whole) / len(whole),
        "cpu_percent_peak": max(whole),
        "memory_bytes": samples[-1]["memory_bytes"],
        "memory_peak_bytes": max(sample["memory_bytes"] for sample in samples),
        "context_switches_per_s": samples[-1]["context_switches"] / lasted if lasted > 0 else 0.0,
        "processes_peak": max(len(sample["cpu_per_process"]) for sample in samples),
    }
    busy = [max(sample["gpu_percent"]) for sample in samples if sample.get("gpu_percent")]
    if busy:
        memory = [sum(sample["gpu_memory_mib"]) for sample in samples if sample.get("gpu_memory_mib")]
        found |= {"gpu_percent": sum(busy) / len(busy), "gpu_memory_peak_mib": max(memory)}
    return found
