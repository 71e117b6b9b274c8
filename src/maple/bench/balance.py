"""Whether a game is fair and worth playing: what decides when the same player sits on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.bench.measure import machine
from maple.core.errors import GameError
from maple.core.threads import Team
from maple.games import make_game
from maple.games.wargame.game import WargameGame
from maple.training.evaluate import bot_player, evaluate, play_all

__all__ = ["bench_balance"]

# Of the games that objectives alone, or fighting alone, turned against the other: in most, the winner is ahead on both.
LIMITS = {"side": 0.55, "first_player": 0.55, "no_kill": 0.10, "step": 0.55, "decides": 0.05}


def _share(rows: NDArray[np.bool_]) -> float:
    return float(rows.mean()) if len(rows) else 0.0


def _of_games(figures: NDArray[Any]) -> dict[str, float]:
    """What decided these games."""
    decided = figures[figures["winner"] >= 0]
    winner, games = decided["winner"].astype(np.int64), np.arange(len(decided))
    ahead_on_objectives = decided["scored"][games, winner] > decided["scored"][games, 1 - winner]
    ahead_on_kills = decided["destroyed"][games, winner] > decided["destroyed"][games, 1 - winner]
    return {
        "games": float(len(figures)),
        "draws": _share(figures["winner"] < 0),
        "first_side_wins": _share(decided["winner"] == 0),
        "first_player_wins": _share(decided["winner"] == decided["first"]),
        "no_kill": _share(figures["kills"].sum(axis=1) == 0),
        "wipe_outs": _share(figures["end_reason"] == 1),
        "winner_ahead_on_objectives": _share(ahead_on_objectives),
        "winner_ahead_on_kills": _share(ahead_on_kills),
        "objectives_alone": _share(ahead_on_objectives & ~ahead_on_kills),
        "kills_alone": _share(ahead_on_kills & ~ahead_on_objectives),
        "vp_from_objectives": float(figures["scored"].sum() / max(1, figures["vp"].sum())),
        "length": float(figures["length"].sum() / max(1, len(figures))),
    }


def _verdicts(overall: dict[str, float], steps: list[dict[str, Any]]) -> dict[str, bool]:
    def even(share: float, most: float) -> bool:
        return 1 - most <= share <= most

    return {
        "sides_even": even(overall["first_side_wins"], LIMITS["side"]),
        "first_player_even": even(overall["first_player_wins"], LIMITS["first_player"]),
        "games_have_kills": overall["no_kill"] < LIMITS["no_kill"],
        "objectives_and_fighting_decide": min(overall["objectives_alone"], overall["kills_alone"]) >= LIMITS["decides"],
        "each_opponent_beats_the_one_before": all(step["win_rate"] >= LIMITS["step"] for step in steps),
    }


def bench_balance(
    name: str, options: dict[str, Any], games: int, seed: int, threads: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The strongest scripted player against itself, by map and mission; each opponent against the one before it."""
    game = make_game(name, options)
    if not isinstance(game, WargameGame):
        raise GameError(f"balance is measured of the wargame, not of {name}; write maple bench balance wargame")
    best, steps = game.spec.opponents[-1], []
    with Team(threads) as team:
        tell(f"{best} against itself, {games} games")
        both = [bot_player(game, best, team) for _ in range(2)]
        figures = play_all(game, both, -(-games // 2), seed, team)
        for weaker, stronger in zip(game.spec.opponents, game.spec.opponents[1:], strict=False):
            tell(f"{stronger} against {weaker}, {games} games")
            pair = bot_player(game, stronger, team), [bot_player(game, weaker, team)]
            found = evaluate(game, *pair, games, seed, team)
            row = {"player": stronger, "against": weaker, "win_rate": found.figures["win_rate"]}
            steps.append({**row, "ci95": list(found.ci95)})
    overall = _of_games(figures)
    return {
        "game": name,
        "player": best,
        "overall": overall,
        "maps": {map_: _of_games(figures[figures["board"] == i]) for i, map_ in enumerate(game.maps)},
        "missions": {task: _of_games(figures[figures["mission"] == i]) for i, task in enumerate(game.missions)},
        "opponents": steps,
        "verdicts": _verdicts(overall, steps),
        "seed": seed,
        "machine": machine(),
    }
