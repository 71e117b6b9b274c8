"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AlgoOption", "GameArgument", "JsonOption", "PresetOption", "RunsDirOption", "SeedOption", "SetOption"]

GameArgument = Annotated[str, typer.Argument(help="The game; `maple games` lists them.", metavar="GAME")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]
RunsDirOption = Annotated[Path | None, typer.Option(help="Where runs live [default: runs, or $MAPLE_RUNS_DIR].")]
SeedOption = Annotated[int | None, typer.Option(help="The seed of everything random.")]
PresetOption = Annotated[
    str | None,
    typer.Option(help="Settings that go together: speed, balance, sb3, tuned (by maple tune), or a YAML file."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any setting, such as game.fantasyland=off or net.hidden=[256,64]."
    ),
]
AlgoOption = Annotated[
    str | None, typer.Option(help="How to learn: afterstate or ppo [default: the game's strongest].")
]
