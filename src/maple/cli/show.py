"""`maple show`: a game for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maple.cli.options import GameArgument, JsonOption, RunsDirOption, SetOption
from maple.cli.output import notes, print_json, results
from maple.core.errors import GameError, nearest

__all__ = ["show"]


def show(
    game: GameArgument,
    run: Annotated[str | None, typer.Option(help="Who plays the first seat [default: an opponent in the box].")] = None,
    against: Annotated[str, typer.Option(help="Who plays the other: an opponent in the box or a run.")] = "heuristic",
    seed: Annotated[int, typer.Option(min=0, help="Which game.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Where the files go [default: here].")] = None,
    settings: SetOption = None,
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Play one game and write it down.

    - `maple show showdown --run battles --seed 7` (a replay for Showdown's viewer, its log, and text)
    """
    if game != "showdown":
        raise GameError(f"there is no way to show {game!r}; {nearest(game, ['showdown'])}")
    from maple.cli.showdown import show_battle

    found = show_battle(run, against, seed, out or Path(), settings or [], runs_dir)
    if json:
        print_json({key: value for key, value in found.items() if key != "text"})
        return
    results.print(found["text"], markup=False, soft_wrap=True)
    notes.print(f"wrote {found['html']}, {found['log']} and {found['readable']}", soft_wrap=True)
