"""A profile as a trace that Perfetto, speedscope and Chrome open: every thread a track, every span a bar."""

from __future__ import annotations

from typing import Any

__all__ = ["chrome_trace"]


def chrome_trace(profile: dict[str, Any]) -> dict[str, Any]:
    """Trace events in Chrome's JSON format; times in microseconds from the beginning."""
    processes = {
        name: number for number, name in enumerate(dict.fromkeys(a["process"] for a in profile["accounts"]), 1)
    }
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for name, pid in processes.items()
    ]
    for tid, account in enumerate(profile["accounts"], 1):
        pid = processes[account["process"]]
        events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": account["name"]}})
        for name, began, ended in account["events"]:
            place = {"pid": pid, "tid": tid, "ts": round(1e6 * began, 1), "dur": round(1e6 * (ended - began), 1)}
            events.append({"ph": "X", "name": name, "cat": "span", **place})
    for sample in profile["samples"]:
        figures = {"memory MiB": sample["memory_bytes"] / 2**20, "cpu %": sum(sample["cpu_per_process"].values())}
        events += [
            {"ph": "C", "name": name, "pid": 1, "ts": round(1e6 * sample["at"], 1), "args": {name: round(value, 1)}}
            for name, value in figures.items()
        ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
