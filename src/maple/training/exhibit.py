"""One battle with its log: a new one between two players, or a recorded one played again."""

from __future__ import annotations

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.arena.record import GameRecord, play_on_record, record_at
from maple.core.errors import GameError
from maple.games.contract import Game
from maple.training.evaluate import Player

__all__ = ["play_again", "play_recorded"]


def _one_battle(game: Game, seed: int) -> NodeArena:
    return NodeArena(game, 1, seed, processes=1, limits=PoolLimits(spares=0), check=False)


def _log_of(arena: NodeArena) -> list[str]:
    if not arena.records:
        raise GameError("the battle was lost before its end, and its log with it; try again")
    return list(arena.records[0]["lines"])


def play_recorded(game: Game, players: list[tuple[str, Player]], seed: int) -> tuple[list[str], GameRecord]:
    """The first battle of `seed` with a named player a seat: its log and its record; `game` has to keep logs."""
    with _one_battle(game, seed) as arena:
        record = record_at(arena, game, players, seed)
        return _log_of(arena), record


def play_again(game: Game, record: GameRecord) -> list[str]:
    """The log of a recorded battle; `game` has to keep logs."""
    with _one_battle(game, record.seed) as arena:
        for _ in play_on_record(record, arena):
            pass
        return _log_of(arena)
