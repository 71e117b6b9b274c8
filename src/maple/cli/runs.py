"""`maple runs`: what was trained, what is under way."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from maple.cli.options import JsonOption, RunsDirOption
from maple.cli.output import notes, print_json, print_table, results
from maple.core.config import flat
from maple.core.errors import RunError
from maple.runs.curves import curve, curves_svg
from maple.runs.listing import RunSummary, list_runs, summarize
from maple.runs.own_files import OwnFiles
from maple.runs.store import RunFolder, default_runs_dir, find_run, write_atomically

__all__ = ["app"]

app = typer.Typer(help="List runs, compare, keep, remove and attach to them.", invoke_without_command=True)

NamesArgument = Annotated[list[str], typer.Argument(help="Runs, by name or path.", metavar="RUN...")]
State = Literal["running", "finished", "stopped"]
Sorting = Literal["changed", "name", "steps", "best", "speed"]
SORTED_BY: dict[str, Any] = {
    "changed": lambda run: -run.changed,
    "name": lambda run: run.name,
    "steps": lambda run: -run.steps,
    "best": lambda run: -(run.best if run.best is not None else float("-inf")),
    "speed": lambda run: -run.steps_per_s,
}


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return "now"


@app.callback()
def runs(
    context: typer.Context,
    game: Annotated[str | None, typer.Option(help="Only runs of this game.")] = None,
    state: Annotated[State | None, typer.Option(help="Only runs that are in this state.")] = None,
    sort: Annotated[Sorting, typer.Option(help="What comes first.")] = "changed",
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """List runs, compare, keep, remove and attach to them.

    - `maple runs --state running`
    - `maple runs compare first second`
    - `maple runs attach first`
    """
    if context.invoked_subcommand is not None:
        return
    base = runs_dir or default_runs_dir()
    found = [run for run in list_runs(base) if game in (None, run.game) and state in (None, run.state)]
    found.sort(key=SORTED_BY[sort])
    if json:
        print_json({"runs": [asdict(run) for run in found]})
        return
    if not found:
        results.print(f"no such runs in {base.resolve()}; train one: maple train ofc --run first")
        return
    columns = ["run", "game", "state", "progress", "steps", "best", "changed", "steps/s", "learner"]
    print_table(f"runs in {base}", columns, [_row(run) for run in found], spare=2)


def _row(run: RunSummary) -> list[str]:
    return [
        run.name + (" (kept)" if run.kept else ""),
        run.game,
        run.state,
        f"{run.progress:.0%}",
        f"{run.steps:,}",
        f"{run.best:+.2f}" if run.best is not None else "",
        _ago(time.time() - run.changed),
        f"{run.steps_per_s:,.0f}",
        run.algo,
    ]


def _folder(name: str, runs_dir: Path | None) -> RunFolder:
    """A run's own folder; one without a checkpoint yet is a run, too, and so is one that is about to begin."""
    base = runs_dir or default_runs_dir()
    for path in (base / name, Path(name)):
        folder = RunFolder(path)
        if (path / "config.json").is_file() or (path.is_dir() and (path / ".lock").is_file() and folder.in_use):
            return folder
    found = find_run(name, runs_dir)
    if not (found / "checkpoints").is_dir():
        raise RunError(f"{name} is a checkpoint, not a run; name the run alone")
    return RunFolder(found)


@app.command("rm")
def remove(
    names: NamesArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    runs_dir: RunsDirOption = None,
) -> None:
    """Remove runs for good; those in use or marked as kept are left alone."""
    folders = [_folder(name, runs_dir) for name in names]
    for folder in folders:
        if folder.in_use:
            raise RunError(f"run {folder.name!r} is in use by another process; nothing was removed; wait for it to end")
        if folder.kept:
            raise RunError(
                f"run {folder.name!r} is kept; first: maple runs keep --undo {folder.name}. Nothing was removed"
            )
    if not yes and not typer.confirm(f"remove {', '.join(folder.name for folder in folders)} for good?"):
        return
    for folder in folders:
        try:
            shutil.rmtree(folder.path)
        except OSError as error:
            raise RunError(f"cannot remove run {folder.name!r}: {error.filename}: {error.strerror}") from None
        notes.print(f"removed {folder.name}")


@app.command("keep")
def keep(
    names: NamesArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Take the mark back.")] = False,
    runs_dir: RunsDirOption = None,
) -> None:
    """Mark runs as ones to keep: `maple runs rm` then leaves them alone."""
    for folder in [_folder(name, runs_dir) for name in names]:
        try:
            folder.set_kept(not undo)
        except OSError as error:
            raise RunError(
                f"cannot mark run {folder.name!r}: {error.strerror}; see who may write {folder.path}"
            ) from None
        notes.print(f"{folder.name} is {'no longer ' if undo else ''}kept")


def _drawn(folders: list[RunFolder]) -> str:
    """Their strength over time; what is drawn has to mean the same for each."""
    from maple.games import make_game

    configs = [OwnFiles(folder.path).at_hand(folder.read_json("config.json")) for folder in folders]
    kinds = {(str(config.get("name")), str(config.get("probe_against"))) for config in configs}
    if len(kinds) > 1:
        told = " and ".join(f"{game} against {other}" for game, other in sorted(kinds))
        raise RunError(f"these runs cannot share a picture: their looks are of {told}; leave --svg out")
    (game, other), metric = kinds.pop(), make_game(configs[0]["name"], configs[0]["game"]).spec.metric.name
    found = [curve(folder, metric) for folder in folders]
    for one in found:
        if len(one.values) < 2:
            raise RunError(f"run {one.name!r} has fewer than two looks at its strength; nothing can be drawn of it")
    return curves_svg(found, f"{game}: {metric} against {other}")


@app.command("compare")
def compare(
    names: NamesArgument,
    svg: Annotated[Path | None, typer.Option(help="Write a picture of their strength over time.")] = None,
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Put runs side by side: the settings in which they differ, and what they reached.

    - `maple runs compare first second --svg curves.svg`
    """
    folders = [_folder(name, runs_dir) for name in names]
    if svg is not None:
        write_atomically(svg, _drawn(folders), "--svg")
    settings = [flat(folder.read_json("config.json")) for folder in folders]
    keys = sorted(set().union(*settings))
    differing = {key: [str(one.get(key, "")) for one in settings] for key in keys}
    differing = {key: values for key, values in differing.items() if len(set(values)) > 1}
    summaries = [summarize(folder) for folder in folders]
    if json:
        print_json({"settings": differing, "runs": [asdict(run) for run in summaries]})
        return
    rows = [[key, *values] for key, values in differing.items()]
    reached: list[tuple[str, Any]] = [
        ("steps", lambda run: f"{run.steps:,}"),
        ("minutes", lambda run: f"{run.elapsed_s / 60:.1f}"),
        ("steps/s", lambda run: f"{run.steps_per_s:,.0f}"),
        ("best look", lambda run: f"{run.best:+.2f}" if run.best is not None else ""),
    ]
    rows += [[label, *(show(run) for run in summaries)] for label, show in reached]
    print_table("runs side by side", ["", *(run.name for run in summaries)], rows)


@app.command("attach")
def attach(
    name: Annotated[str, typer.Argument(help="A run, by name or path.", metavar="RUN")], runs_dir: RunsDirOption = None
) -> None:
    """Show a run's progress until it ends; Ctrl-C leaves it running."""
    folder = _folder(name, runs_dir)
    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.fields[line]}"))
    shown: dict[str, Any] = {}
    with Progress(*columns, console=notes, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=1.0, line="waiting for the first update")
        while True:
            going_on = folder.in_use
            last = folder.last_record("events.jsonl")
            if last and last != shown:
                shown = last
                _show(bar, task, last, str(folder.read_json("config.json").get("probe_against")))
            if not going_on:
                break
            time.sleep(1.0)
    ended = summarize(folder).progress >= 1.0
    notes.print(f"{folder.name} has ended" if ended else f"{folder.name} is not running")


def _show(bar: Progress, task: TaskID, record: dict[str, Any], probe_against: str) -> None:
    """Show a record of an update; one that somebody has edited may say nothing that can be shown."""
    from maple.cli.progress import line_of

    try:
        line, text = line_of(record, probe_against), f"{record['progress']:4.0%}"
    except (KeyError, TypeError, ValueError, AttributeError):
        return
    bar.update(task, completed=record["progress"], line=line)
    if not notes.is_terminal:
        notes.print(f"{text}  {line}", soft_wrap=True)
