"""A game by itself: random legal play, everything encoded for each decision."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from maple.arena.native import NativeArena
from maple.bench.limits import write_bandwidth
from maple.bench.measure import machine
from maple.core.errors import GameError
from maple.core.threads import Team
from maple.games import is_external, make_game

__all__ = ["GameSide", "bench_game"]

WARM_UP = 40
HALF = 0.5  # of what the same threads can fill memory with: above it, faster kernels would soon wait for memory


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


class GameSide:
    """A game that plays on threads of its own, measured in slices."""

    def __init__(
        self, name: str, game_options: dict[str, Any], threads: int, tables: int, options: bool, seed: int
    ) -> None:
        self.players = [_Player(name, game_options, tables, i * tables, options, seed) for i in range(threads)]
        for player in self.players:
            for _ in range(WARM_UP):
                player.play()
            player.decisions = player.described = 0
        self.wall_s = 0.0

    @property
    def bytes_per_decision(self) -> int:
        """What is written for a decision: view, observation, mask, and the action that is read."""
        spec = self.players[0].game.spec
        return spec.view * 8 + spec.observation + spec.actions + 4

    def slice(self, seconds: float) -> float:
        """Play for `seconds`; returns decisions a second."""
        started, before = time.perf_counter(), sum(player.decisions for player in self.players)

        def play_on(player: _Player) -> None:
            while time.perf_counter() - started < seconds:
                player.play()

        others = [threading.Thread(target=play_on, args=(player,)) for player in self.players[1:]]
        for other in others:
            other.start()
        play_on(self.players[0])
        for other in others:
            other.join()
        wall = time.perf_counter() - started
        self.wall_s += wall
        return (sum(player.decisions for player in self.players) - before) / wall


def bench_game(
    name: str, game_options: dict[str, Any], threads: int, tables: int, seconds: float, options: bool, seed: int
) -> dict[str, Any]:
    """Decisions a second with observation and mask written, and with described options if asked; `tables` a thread.

    What it is bound by follows from how much of the machine's bandwidth its writes take, options not counted.
    """
    if is_external(name):
        raise GameError(
            f"{name} is an env, not a game in kernels: `maple bench arena` measures how envs are played, "
            f"`maple train {name} --profile` where the time goes"
        )
    side = GameSide(name, game_options, threads, tables, options, seed)
    speed = side.slice(seconds)
    written = speed * side.bytes_per_decision / write_bandwidth(threads, min(1.0, seconds / 10))
    found: dict[str, Any] = {
        "game": name,
        "decisions_per_s": speed,
        "threads": threads,
        "tables": tables * threads,
        "seconds": side.wall_s,
        "bytes_per_decision": side.bytes_per_decision,
        "of_write_bandwidth": written,
        "bound_by": "memory writes" if written > HALF else "computation",
        "seed": seed,
        "machine": machine(),
    }
    if options:
        decisions, described = sum(p.decisions for p in side.players), sum(p.described for p in side.players)
        found |= {"options_per_s": described / side.wall_s, "options_per_decision": described / decisions}
    return found
