"""`maple showdown`: what belongs to Pokémon Showdown alone."""

from __future__ import annotations

import typer

from maple.cli.options import JsonOption
from maple.cli.output import notes, print_json, results

__all__ = ["app"]

app = typer.Typer(help="Pokémon Showdown: its simulator and its servers.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """A group of commands, also while there is only one."""


@app.command("setup")
def setup(json: JsonOption = False) -> None:
    """Install the simulator's pinned npm packages beside this Python; afterwards nothing needs a network."""
    from maple.games.showdown.runtime import find_node, install, node_version

    node = find_node()
    with notes.status("installing the simulator"):
        folder = install(notes.print)
    found = {"node": node, "node_version": node_version(node), "packages": str(folder)}
    if json:
        print_json(found)
    else:
        results.print(f"Node {found['node_version']} ({node}); the simulator is in {folder}", soft_wrap=True)
