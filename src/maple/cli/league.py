"""`maple league`: what the games of a run say of its snapshots and their opponents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple.cli.options import JsonOption, RunsDirOption
from maple.cli.output import print_json, print_table, results
from maple.core.errors import RunError

if TYPE_CHECKING:
    from maple.training.league import League

__all__ = ["league"]

SHOWN = 5  # cycles that are listed


def league(
    run: Annotated[str, typer.Argument(help="A run's name or path.", metavar="RUN")],
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Ratings of a run's snapshots over time, who beats whom, and whether strength goes round in circles.

    All of it comes from the games of training, as of the run's newest checkpoint.

    - `maple league first`
    - `maple league first --json`
    """
    from maple.games import make_game
    from maple.training.build import stored_league
    from maple.training.checkpoint import find_checkpoint, load_checkpoint

    path = find_checkpoint(run, runs_dir)
    if not (path / "state.safetensors").exists():
        raise RunError(f"{run} holds weights alone, and a league is in a whole checkpoint; name the run by itself")
    checkpoint = load_checkpoint(path)
    config = checkpoint.config
    stored = stored_league(config, make_game(config.name, config.game), checkpoint.state)
    if stored.mix.only_learner:
        raise RunError(
            f"run {run!r} plays itself alone and has no league; train one with --opponents self:0.5,hard:0.5"
        )
    found = {"run": run, "game": config.name, "step": checkpoint.meta["step"], **_figures(stored)}
    if json:
        print_json(found)
    else:
        _show(found)


def _figures(stored: League) -> dict[str, Any]:
    from maple.training.league_ratings import cyclic_share, find_cycles, rate

    games, wins = stored.records.games, stored.records.wins
    ratings, names = rate(games, wins), stored.names
    first = len(stored.fixed)
    players = []
    for row, name in enumerate(names):
        snapshot = stored.taken[row - first] if row >= first else None
        rating, error = float(ratings.rating[row]), float(ratings.error[row])
        players.append(
            {
                "name": name,
                "steps": snapshot.steps if snapshot else None,
                "cause": snapshot.cause if snapshot else None,
                "in_pool": snapshot is not None and row - first in stored.pool,
                "rating": rating,
                "rating_ci95": [rating - 1.96 * error, rating + 1.96 * error],
                "results": float(games[row].sum()),
                "win_rate": float(wins[row].sum() / games[row].sum()) if games[row].any() else None,
            }
        )
    known = games > 0
    return {
        "players": players,
        "payoff": [
            [float(wins[a, b] / games[a, b]) if known[a, b] else None for b in range(len(names))]
            for a in range(len(names))
        ],
        "payoff_results": games.tolist(),
        "cycles": [
            {"players": [names[player] for player in cycle.players], "win_rates": list(cycle.win_rates)}
            for cycle in find_cycles(games, wins)
        ],
        "cyclic_share": cyclic_share(games, wins),
        "pool_win_rate": stored.pool_win_rate(),
    }


def _show(found: dict[str, Any]) -> None:
    rows = [
        [
            player["name"],
            player["cause"] or "",
            "yes" if player["in_pool"] else "",
            f"{player['rating']:+.0f}",
            "{:+.0f} … {:+.0f}".format(*player["rating_ci95"]),
            "" if player["win_rate"] is None else f"{player['win_rate']:.1%}",
            f"{player['results']:,.0f}",
        ]
        for player in found["players"]
    ]
    columns = ["player", "taken by", "in pool", "rating", "95 % interval", "won", "results"]
    print_table(f"league of {found['run']} at step {found['step']:,}", columns, rows)
    names = [player["name"] for player in found["players"]]
    payoff = [
        [name, *("" if share is None else f"{share:.0%}" for share in row)]
        for name, row in zip(names, found["payoff"], strict=True)
    ]
    print_table("how often the row beats the column", ["", *names], payoff)
    for cycle in found["cycles"][:SHOWN]:
        steps = [f"{name} ({share:.0%})" for name, share in zip(cycle["players"], cycle["win_rates"], strict=True)]
        results.print(f"a circle: {' beats '.join(steps)} beats {cycle['players'][0]}")
    share = found["cyclic_share"]
    results.print(f"{len(found['cycles'])} circles; {share:.1%} of the differences go round in circles", soft_wrap=True)
