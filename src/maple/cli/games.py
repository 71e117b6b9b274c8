"""`maple games`: what can be played."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maple.cli.output import print_json, print_table, results
from maple.games import GAMES, make_game

__all__ = ["games"]


def games(json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """List the games in the box, their options and their scripted opponents.

    A game's options are set with `--set game.NAME=VALUE`, as in `maple train ofc --set game.fantasyland=off`.
    """
    listing: dict[str, dict[str, Any]] = {}
    for name, place in GAMES.items():
        game = make_game(name)
        spec = game.spec
        listing[name] = {
            "summary": place.summary,
            "seats": spec.seats,
            "actions": spec.actions,
            "opponents": list(spec.opponents),
            "metric": spec.metric.name,
            "options": game.settings.model_dump(),
        }
    if json:
        print_json({"games": listing})
        return
    for name, about in listing.items():
        print_table(
            f"{name}: {about['summary']}", ["option", "default"], [[k, str(v)] for k, v in about["options"].items()]
        )
        results.print(f"opponents: {', '.join(about['opponents'])}; judged by {about['metric']}\n")
