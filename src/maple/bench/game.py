"""A game by itself: random legal play, everything encoded for each decision."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from maple.arena.native import NativeArena
from maple.bench.measure import machine
from maple.core.threads import Team
from maple.games import make_game

__all__ = ["bench_game"]


def bench_game(
    name: str, game_options: dict[str, Any], threads: int, tables: int, seconds: float, options: bool, seed: int
) -> dict[str, Any]:
    """Decisions a second with observation and mask written, and with described options if asked."""
    game = make_game(name, game_options)
    with Team(threads) as team:
        arena = NativeArena(game, tables, seed, team, options=options, check=False)
        bot = game.bot("random")
        action = np.empty(tables, np.int32)
        described = 0

        def round_of_play() -> int:
            step = arena.recv()
            team.run(bot, tables, step.view, seed, step.keys, action)
            arena.send(action)
            return len(step.options.action) if step.options is not None else 0

        for _ in range(40):
            round_of_play()
        rounds, started, now = 0, time.perf_counter(), 0.0
        while now < seconds:
            described += round_of_play()
            rounds += 1
            now = time.perf_counter() - started
    found: dict[str, Any] = {
        "game": name,
        "decisions_per_s": rounds * tables / now,
        "threads": threads,
        "tables": tables,
        "seconds": now,
        "bound_by": "memory writes",
        "seed": seed,
        "machine": machine(),
    }
    if options:
        found |= {"options_per_s": described / now, "options_per_decision": described / (rounds * tables)}
    return found
