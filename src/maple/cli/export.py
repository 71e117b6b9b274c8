"""`maple export`: a trained network for other programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maple.cli.options import JsonOption, RunsDirOption
from maple.cli.output import notes, print_json, results

__all__ = ["export_run"]


def export_run(
    run: Annotated[str, typer.Argument(help="A run's name or path, NAME@best, or a checkpoint folder.", metavar="RUN")],
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Write a run's network as an ONNX file, and check the file on decisions of real games.

    - `maple export first --onnx first.onnx`
    """
    from maple.core.threads import Team
    from maple.training.agent import load_agent
    from maple.training.export import export_onnx

    with Team(1) as team, notes.status("exporting"):
        written = export_onnx(load_agent(run, runs_dir, team), onnx)
    if json:
        print_json(asdict(written))
        return
    inputs = ", ".join(f"{name} {shape}" for name, shape in written.inputs.items())
    results.print(f"wrote {onnx}: {inputs} to {', '.join(written.outputs)}")
    results.print(
        f"on {written.rows_checked} decisions of real games it differs from the network by at most "
        f"{written.largest_difference:.1g}"
    )
