"""`maple bench balance`: whether the wargame is fair and worth playing."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maple.bench.measure import machine_lock
from maple.cli.options import GameArgument, JsonOption, SetOption
from maple.cli.output import notes, print_json, print_table, results
from maple.core.sources import load_config

__all__ = ["balance"]

COLUMNS = {
    "first_side_wins": "first side wins",
    "first_player_wins": "first player wins",
    "draws": "draws",
    "no_kill": "no kill",
    "wipe_outs": "wipe-outs",
    "winner_ahead_on_objectives": "winner ahead on objectives",
    "winner_ahead_on_kills": "on kills",
    "objectives_alone": "on objectives alone",
    "kills_alone": "on kills alone",
    "vp_from_objectives": "VP from objectives",
}


def _row(name: str, found: dict[str, float]) -> list[str]:
    return [name, f"{found['games']:,.0f}", *(f"{found[key]:.0%}" for key in COLUMNS)]


def _print(found: dict[str, Any]) -> None:
    rows = [_row("all", found["overall"])]
    rows += [_row(f"map {name}", row) for name, row in found["maps"].items()]
    rows += [_row(f"mission {name}", row) for name, row in found["missions"].items()]
    print_table(f"{found['player']} against itself", ["", "games", *COLUMNS.values()], rows)
    steps = [
        [f"{row['player']} against {row['against']}", f"{row['win_rate']:.1%}", "{:.1%} … {:.1%}".format(*row["ci95"])]
        for row in found["opponents"]
    ]
    print_table("each opponent and the one before it", ["", "wins", "95 % interval"], steps)
    for name, holds in found["verdicts"].items():
        results.print(f"{'yes' if holds else 'NO '}  {name.replace('_', ' ')}")


def balance(
    game: GameArgument,
    games: Annotated[int, typer.Option(min=2, help="Games of each meeting.")] = 400,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads [default: one a core].")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the deals.")] = 0,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """The strongest scripted player on both sides: who wins, and by what; each opponent against the one before it.

    - `maple bench balance wargame`
    - `maple bench balance wargame --games 1000 --set game.maps=[ruins] --json`
    """
    from maple.bench.balance import bench_balance
    from maple.core.cores import available_cores

    options = load_config(game, settings=settings).game
    with machine_lock(notes.print), notes.status("measuring balance") as status:
        found = bench_balance(game, options, games, seed, threads or available_cores(), status.update)
    if json:
        print_json(found)
    else:
        _print(found)
