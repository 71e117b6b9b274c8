"""What the commands of `maple bench` share: their settings, holding the machine, showing figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from maple.bench.measure import machine_lock
from maple.cli.output import notes, print_json, print_table
from maple.cli.sitting import compile_kernels
from maple.core.config import Config
from maple.core.sources import load_config
from maple.games import entry

__all__ = ["SecondsOption", "bench_config", "measured", "show"]

SecondsOption = Annotated[float, typer.Option(min=0.1, help="How long to measure (per side, beside a peer).")]


def bench_config(
    game: str, preset: str | None, settings: list[str] | None, algo: str | None, seed: int | None, **more: Any
) -> Config:
    """The settings that a measurement of a game uses."""
    flags = {"algo": algo, "seed": seed, **more}
    return load_config(game, preset, settings, entry(game).defaults, flags)


def show(title: str, found: dict[str, Any], json: bool) -> None:
    """Print figures, as a table or as JSON."""
    if json:
        print_json(found)
        return
    rows = [[key, f"{value:,.3f}" if isinstance(value, float) else str(value)] for key, value in _flat(found)]
    print_table(title, ["figure", "value"], rows)


def measured(config: Config, work: Callable[[Callable[[str], None]], dict[str, Any]]) -> dict[str, Any]:
    """Have the kernels ready, hold the machine, and do `work`, which says how far it is."""
    compile_kernels(config)
    with machine_lock(notes.print), notes.status("measuring") as status:
        return work(status.update)


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list) or key.endswith("ratio_ci95"):
            pairs.append((prefix + key, value))
    return pairs
