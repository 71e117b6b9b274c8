"""A profile: the accounts of this process and of its children, and what the machine did meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from maple.perf.spans import IDLE, UNTRACKED, Account, Clock, Distribution, Recorder
from maple.perf.system import SystemSampler, summarize_samples

__all__ = ["PARTS", "Profiler", "account_figures", "child_profile"]

PARTS = "_MAPLE_PROFILE_PARTS"  # where children leave their accounts; set while a Profiler runs, by nobody else


def account_figures(account: Account, now: float, process: str) -> dict[str, Any]:
    """An account as plain figures: spans by name and as a tree; idle and untracked time are spans as well."""
    wall, spans = account.standing(now)
    names: dict[str, dict[str, Any]] = {}
    total: dict[tuple[str, ...], float] = {}
    for each in spans:
        entry = names.setdefault(each.name, {"name": each.name, "self_s": 0.0, "share": 0.0, "count": 0})
        entry["self_s"] += each.self_s
        entry["share"] += each.self_s / wall if wall > 0 else 0.0
        entry["count"] += each.count
        for depth in range(len(each.path) + 1):
            total[each.path[:depth]] = total.get(each.path[:depth], 0.0) + each.self_s
    names.setdefault(IDLE, {"name": IDLE, "self_s": 0.0, "share": 0.0, "count": 0})
    return {
        "name": account.name,
        "process": process,
        "began": account.began,
        "wall_s": wall,
        "idle_s": names[IDLE]["self_s"],
        "untracked_s": names[UNTRACKED]["self_s"],
        "spans": sorted(names.values(), key=lambda entry: -entry["self_s"]),
        "tree": [
            {"path": list(each.path), "self_s": each.self_s, "total_s": total[each.path], "count": each.count}
            for each in spans
        ],
    }


def _part(recorder: Recorder, process: str, offset: float, with_events: bool = True) -> dict[str, Any]:
    """What one process has to tell, its times moved by `offset`: onto a clock that processes share."""
    accounts = []
    for account in list(recorder.accounts):
        figures = account_figures(account, recorder.ended or recorder.clock(), process)
        figures["began"] += offset
        events = account.trace() if with_events else []
        figures["events"] = [[e.name, e.began + offset, e.ended + offset] for e in events]
        accounts.append(figures)
    return {"process": process, "pid": os.getpid(), "accounts": accounts, **recorder.tallies()}


@contextmanager
def child_profile(name: str, within: str | None = None) -> Iterator[None]:
    """Around the whole work of a worker process: records if the parent does, and hands over at the end.

    With `within`, all of it is in a span of that name. Opened and closed by the caller, it would leave moments before
    and after it, which are much of the account of a process that stood by and is not needed any more.
    """
    folder = os.environ.get(PARTS)
    if folder is None:
        yield
        return
    recorder = Recorder()
    try:
        with recorder:
            if within is not None:
                recorder.account().begin_in(within)
            yield
    finally:
        offset = time.time() - recorder.clock()
        if Path(folder).is_dir():  # else the parent is gone, and nobody wants it
            target = Path(folder) / f"{os.getpid()}.json"
            part = target.with_suffix(".part")
            part.write_text(json.dumps(_part(recorder, f"{name}-{os.getpid()}", offset)), encoding="utf-8")
            part.replace(target)


class Profiler:
    """Records while it is entered: spans of all threads, the system, and children that use child_profile()."""

    def __init__(self, clock: Clock = time.perf_counter, sample_every_s: float = 1.0) -> None:
        self.recorder = Recorder(clock)
        self._sampler = SystemSampler(clock, sample_every_s, self._so_far)
        self._folder = ""
        self._began_unix = 0.0
        self._parts: list[dict[str, Any]] = []

    def __enter__(self) -> Profiler:
        self._folder = tempfile.mkdtemp(prefix="maple-profile-")
        os.environ[PARTS] = self._folder
        self.recorder.__enter__()
        self._began_unix = time.time()
        self._sampler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sampler.__exit__(kind, error, trace)
        self.recorder.__exit__(kind, error, trace)
        os.environ.pop(PARTS, None)
        offset = self._began_unix - self.recorder.began
        self._parts = [_part(self.recorder, "main", offset), *self._children()]
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def sampling_s(self) -> float:
        """Processor time that looks at the system took."""
        return self._sampler.worked_s

    def _so_far(self) -> dict[str, Any]:
        """Self time by span of the thread that entered, what is open included, for the timeline."""
        spans: dict[str, float] = {}
        for each in self.recorder.accounts[0].standing(self.recorder.clock())[1]:
            spans[each.name] = spans.get(each.name, 0.0) + each.self_s
        return {"spans": spans}

    def _children(self) -> list[dict[str, Any]]:
        files = sorted(Path(self._folder).glob("*.json"))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]

    def profile(self, facts: dict[str, Any]) -> dict[str, Any]:
        """All that was found, as one JSON tree; `facts` are what the caller knows: counts and settings.

        While it still records, it is what was found so far: without the trace, and without children, who hand over when
        they end.
        """
        recorder, began = self.recorder, self._began_unix
        now = recorder.ended or recorder.clock()
        parts = self._parts or [_part(recorder, "main", began - recorder.began, with_events=False)]
        counters: dict[str, float] = {}
        distributions: dict[str, Distribution] = {}
        for part in parts:
            for name, amount in part["counters"].items():
                counters[name] = counters.get(name, 0.0) + amount
            for name, found in part["distributions"].items():
                buckets = {int(bucket): number for bucket, number in found["buckets"].items()}
                distributions.setdefault(name, Distribution()).merge(Distribution(**{**found, "buckets": buckets}))
        samples = [{**sample, "at": sample["at"] - recorder.began} for sample in list(self._sampler.samples)]
        return {
            "format": 1,
            "began_unix": began,
            "wall_s": now - recorder.began,
            "facts": facts,
            "accounts": [_moved(account, -began) for part in parts for account in part["accounts"]],
            "counters": counters,
            "distributions": {name: asdict(found) for name, found in distributions.items()},
            "system": summarize_samples(samples),
            "samples": samples,
        }


def _moved(account: dict[str, Any], offset: float) -> dict[str, Any]:
    """An account's figures with its times moved by `offset`."""
    events = [[name, first + offset, last + offset] for name, first, last in account["events"]]
    return {**account, "began": account["began"] + offset, "events": events}
