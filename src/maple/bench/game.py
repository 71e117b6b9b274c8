"""A game by itself: random legal play, everything encoded for each decision."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from maple.arena.native import NativeArena
from maple.bench.measure import machine
from maple.core.threads import Team
from maple.games import make_game

__all__ = ["bench_game"]

WARM_UP = 40


class _Player:
    """One thread's own tables."""

    def __init__(
        self, name: str, game_options: dict[str, Any], tables: int, first_table: int, options: bool, seed: int
    ):
        self.game = make_game(name, game_options)
        self.team = Team(1)
        self.arena = NativeArena(
            self.game, tables, seed, self.team, options=options, check=False, first_table=first_table
        )
        self.bot = self.game.bot("random")
        self.action = np.empty(tables, np.int32)
        self.seed = seed
        self.decisions = self.described = 0

    def play(self) -> None:
        """One decision at every table."""
        step = self.arena.recv()
        self.bot(step.view, self.seed, step.keys, self.action, 0, self.arena.tables)
        self.arena.send(self.action)
        self.decisions += self.arena.tables
        self.described += len(step.options.action) if step.options is not None else 0


def bench_game(
    name: str, game_options: dict[str, Any], threads: int, tables: int, seconds: float, options: bool, seed: int
) -> dict[str, Any]:
    """Decisions a second with observation and mask written, and with described options if asked; `tables` a thread."""
    players = [_Player(name, game_options, tables, i * tables, options, seed) for i in range(threads)]
    for player in players:
        for _ in range(WARM_UP):
            player.play()
        player.decisions = player.described = 0
    started = time.perf_counter()

    def play_on(player: _Player) -> None:
        while time.perf_counter() - started < seconds:
            player.play()

    others = [threading.Thread(target=play_on, args=(player,)) for player in players[1:]]
    for other in others:
        other.start()
    play_on(players[0])
    for other in others:
        other.join()
    wall = time.perf_counter() - started
    decisions, described = sum(p.decisions for p in players), sum(p.described for p in players)
    found: dict[str, Any] = {
        "game": name,
        "decisions_per_s": decisions / wall,
        "threads": threads,
        "tables": tables * threads,
        "seconds": wall,
        "bound_by": "memory writes",
        "seed": seed,
        "machine": machine(),
    }
    if options:
        found |= {"options_per_s": described / wall, "options_per_decision": described / decisions}
    return found
