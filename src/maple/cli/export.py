"""`maple export`: a trained network for other programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from maple.cli.options import JsonOption, RunsDirOption
from maple.cli.output import notes, print_json, results
from maple.runs.store import find_run

__all__ = ["Export", "export_run"]


class Export(TyperCommand):
    """The command, whose `--onnx` may stand without a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ever, with an empty name where none follows: typer knows no option whose value may be left out."""
        given: list[str] = []
        for word, after in zip(args, [*args[1:], "-"], strict=True):
            given += [word, ""] if word == "--onnx" and after.startswith("-") else [word]
        return super().parse_args(ctx, given)


def _usual_file(run: str, runs_dir: Path | None) -> Path:
    """Where a network goes if nobody says where: `export/` of the run's folder, named for the run and a checkpoint."""
    found = find_run(run, runs_dir)
    if not (found / "checkpoint.json").is_file():
        return found / "export" / f"{found.name}.onnx"
    home = next((folder.parent for folder in found.parents if folder.name == "checkpoints"), found.parent)
    return home / "export" / f"{home.name}-{found.name.lstrip('0') or '0'}.onnx"


def export_run(
    run: Annotated[str, typer.Argument(help="A run's name or path, NAME@best, or a checkpoint folder.", metavar="RUN")],
    onnx: Annotated[
        str, typer.Option(help="The ONNX file to write; without a name, into the run's folder.", metavar="[FILE]")
    ],
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Write a run's network as an ONNX file, and check the file on decisions of real games.

    - `maple export first --onnx` (into `export/` of the run's folder)
    - `maple export first@best --onnx best.onnx`
    """
    from maple.core.threads import Team
    from maple.training.agent import load_agent
    from maple.training.export import export_onnx

    file = Path(onnx) if onnx else _usual_file(run, runs_dir)
    with Team(1) as team, notes.status("exporting"):
        written = export_onnx(load_agent(run, runs_dir, team), file)
    if json:
        print_json(asdict(written))
        return
    inputs = ", ".join(f"{name} {shape}" for name, shape in written.inputs.items())
    results.print(f"wrote {file}: {inputs} to {', '.join(written.outputs)}")
    results.print(
        f"on {written.rows_checked} decisions of real games it differs from the network by at most "
        f"{written.largest_difference:.1g}"
    )
