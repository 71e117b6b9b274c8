"""What the commands of `maple bench` share: their settings, and how figures are shown."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maple.cli.output import print_json, print_table
from maple.core.config import Config, flat
from maple.core.sources import load_config
from maple.games import entry

__all__ = ["SecondsOption", "bench_config", "show"]

SecondsOption = Annotated[float, typer.Option(min=0.1, help="How long to measure (per side, beside a peer).")]


def bench_config(
    game: str, preset: str | None, settings: list[str] | None, algo: str | None, seed: int | None, **more: Any
) -> Config:
    """The config of what is measured."""
    flags = {"algo": algo, "seed": seed, **more}
    return load_config(game, preset, settings, entry(game).defaults, flags)


def show(title: str, found: dict[str, Any], json: bool) -> None:
    """Figures as JSON or as a table; lists stay out of the table unless they are intervals."""
    if json:
        print_json(found)
        return
    rows = [
        [key, f"{value:,.3f}" if isinstance(value, float) else str(value)]
        for key, value in flat(found).items()
        if not isinstance(value, list) or key.endswith("ratio_ci95")
    ]
    print_table(title, ["figure", "value"], rows)
