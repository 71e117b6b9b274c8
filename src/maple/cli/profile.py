"""`maple profile`: where a run's time went."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from maple.cli.options import JsonOption, RunsDirOption
from maple.cli.output import notes, print_json, results
from maple.core.errors import RunError, nearest
from maple.perf import bottleneck, chrome_trace, html_page, text_report
from maple.perf.report import figures_of
from maple.runs.store import RunFolder, find_run, write_atomically

__all__ = ["profile", "profiles_of", "save_profile"]

FOLDER = "profiles"


def profiles_of(run: Path) -> dict[str, Path]:
    """The files of a run's profiles by name."""
    return {path.stem: path for path in (run / FOLDER).glob("*.json") if not path.name.endswith(".trace.json")}


def save_profile(run: RunFolder, name: str, found: dict[str, Any], with_trace: bool = True) -> Path:
    """Write a profile into the run's folder: JSON, the report and the trace; returns where the JSON is."""
    folder = run.path / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make {folder}: {error.strerror}; choose another --runs-dir") from None
    if with_trace:
        write_atomically(folder / f"{name}.trace.json", jsonlib.dumps(chrome_trace(found)))
    write_atomically(folder / f"{name}.txt", text_report(found) + "\n")
    accounts = [{key: value for key, value in a.items() if key != "events"} for a in found["accounts"]]
    slim = {**found, "accounts": accounts, "figures": figures_of(found), "bottleneck": bottleneck(found)}
    write_atomically(folder / f"{name}.json", jsonlib.dumps(slim) + "\n")
    return folder / f"{name}.json"


def _newest(path: Path, name: str | None) -> Path:
    """The file of the profile called `name`, or of the newest one."""
    known = profiles_of(path)
    if not known:
        raise RunError(f"run {path.name!r} has no profile; train it with --profile")
    if name is not None and name not in known:
        raise RunError(f"run {path.name!r} has no profile {name!r}; {nearest(name, known)}")
    return known[name] if name is not None else max(known.values(), key=lambda p: p.stat().st_mtime)


def profile(
    run: Annotated[str, typer.Argument(help="A run's name or path.", metavar="RUN")],
    name: Annotated[str | None, typer.Option(help="Which of its profiles [default: the newest].")] = None,
    html: Annotated[bool, typer.Option("--html", help="Write one self-contained page beside the profile.")] = False,
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Show where a run's time went, thread by thread, what bounds it and what would change that.

    - `maple train ofc --minutes 1 --run first --profile`
    - `maple profile first`
    - `maple profile first --html` (the trace beside it opens in Perfetto and speedscope)
    """
    path = _newest(find_run(run, runs_dir), name)
    try:
        found = jsonlib.loads(path.read_text(encoding="utf-8"))
        text = text_report(found)
    except (OSError, ValueError, KeyError, TypeError):
        raise RunError(f"profile {path} is damaged; make a new one: maple train … --profile") from None
    if html:
        page = path.with_suffix(".html")
        write_atomically(page, html_page(found, f"{path.parents[1].name}: {path.stem}"))
        notes.print(f"wrote {page}", soft_wrap=True)
        found["html"] = str(page)
    if json:
        print_json(found)
    else:
        results.print(text, markup=False, soft_wrap=True)
