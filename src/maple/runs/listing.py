"""What there is in a folder of runs, read from the files alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple.runs.store import RunFolder

__all__ = ["RunSummary", "best_before", "list_runs", "summarize"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run at a glance."""

    name: str
    path: str
    game: str
    algo: str
    state: str  # running, finished or stopped
    kept: bool
    steps: int
    progress: float
    steps_per_s: float
    elapsed_s: float
    probe: dict[str, float]  # the last look at its strength
    best: float | None  # the best result of a look so far
    evaluations: dict[str, dict[str, Any]]  # the newest by opponents
    changed: float  # when it last wrote something, in seconds since 1970


def summarize(folder: RunFolder) -> RunSummary:
    """Read one run."""
    config, last = folder.read_json("config.json"), folder.last_record("events.jsonl")
    best = RunFolder(folder.checkpoints / "best").read_json("checkpoint.json")
    progress = _figure(last, "progress")
    state = "running" if folder.in_use else "finished" if progress >= 1.0 else "stopped"
    events = folder.path / "events.jsonl"
    return RunSummary(
        name=folder.name,
        path=str(folder.path),
        game=str(config.get("name", "?")),
        algo=str(config.get("algo", "?")),
        state=state,
        kept=folder.kept,
        steps=int(_figure(last, "steps")),
        progress=progress,
        steps_per_s=_figure(last, "steps_per_s"),
        elapsed_s=_figure(last, "elapsed_s"),
        probe=probe if isinstance(probe := last.get("probe"), dict) else {},
        best=result if isinstance(result := best.get("result"), int | float) else None,
        evaluations={",".join(row["against"]): row for row in _evaluations(folder)},
        changed=(events if events.exists() else folder.path).stat().st_mtime,
    )


def _evaluations(folder: RunFolder) -> list[dict[str, Any]]:
    """Its evaluations, without what somebody has edited so that nobody knows whom they are against."""
    rows = folder.records("evaluations.jsonl")
    return [
        row for row in rows if isinstance(row.get("against"), list) and all(isinstance(o, str) for o in row["against"])
    ]


def _figure(row: dict[str, Any], name: str) -> float:
    """A figure of a record, or 0: a file that somebody has edited does not keep the other runs from being listed."""
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def best_before(base: Path, row: dict[str, Any]) -> dict[str, Any] | None:
    """The best evaluation of any run in a folder on the same deals, options and opponents as `row`; None if none is."""
    same = ("game", "against", "metric", "games", "seed")
    rows = [old for folder in _folders(base) for old in folder.records("evaluations.jsonl")]
    rows = [old for old in rows if all(old.get(key) == row[key] for key in same)]
    return max(rows, key=lambda old: float(old[row["metric"]]), default=None)


def _folders(base: Path) -> Iterator[RunFolder]:
    for path in sorted(base.iterdir()) if base.is_dir() else []:
        if (path / "config.json").is_file():
            yield RunFolder(path)


def list_runs(base: Path) -> list[RunSummary]:
    """All runs of a folder, those that changed last first."""
    return sorted((summarize(folder) for folder in _folders(base)), key=lambda run: -run.changed)
