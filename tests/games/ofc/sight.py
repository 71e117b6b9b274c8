"""A view read back into lists of cards, and decisions of real games to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.games.ofc.cards import cards_of

__all__ = ["VARIANTS", "Sight", "decisions", "game_of"]

VARIANTS: dict[str, dict[str, Any]] = {
    "pineapple": {"fantasyland": "off"},
    "two seats": {"seats": 2, "fantasyland": "fixed"},
    "regular": {"variant": "regular"},
    "jokers": {"jokers": 2},
}


@cache
def game_of(variant: str) -> Game:
    """The game of one of VARIANTS."""
    return make_game("ofc", VARIANTS[variant])


@dataclass(frozen=True)
class Sight:
    """What a seat knows."""

    boards: list[list[list[int]]]  # mine, the next seat's, the previous seat's
    hand: list[int]
    discards: list[int]
    street: int
    position: int
    seats: int
    fantasy: list[int]  # cards of the next and of the previous seat's fantasyland hand
    mode: int  # fantasyland off, fixed, progressive
    pineapple: bool
    jokers: int

    @staticmethod
    def read(view: NDArray[np.uint64]) -> Sight:
        words = [cards_of(word) for word in view[:11]]
        street, position, seats, *fantasy, mode, pineapple, jokers = int(view[11]).to_bytes(8, "little")
        boards = [words[0:3], words[3:6], words[6:9]]
        return Sight(boards, words[9], words[10], street, position, seats, fantasy, mode, bool(pineapple), jokers)

    @property
    def unseen(self) -> list[int]:
        """Cards that may be anywhere."""
        seen = {card for board in self.boards for row in board for card in row} | set(self.hand) | set(self.discards)
        return [card for card in range(52 + self.jokers) if card not in seen]


def _moments(game: Game, bot: str, tables: int, steps: int, seed: int) -> Iterator[NDArray[np.uint64]]:
    with Team(1) as team:
        arena = NativeArena(game, tables, seed, team, observations=False, check=False)
        action = np.zeros(tables, np.int32)
        for _ in range(steps):
            step = arena.recv()
            yield step.view.copy()
            game.bot(bot)(step.view, seed, step.keys, action, 0, tables)
            arena.send(action)


@cache
def decisions(variant: str) -> NDArray[np.uint64]:
    """Views of all streets and seats, from random and from sensible play."""
    game = game_of(variant)
    steps = game.spec.seats * (9 if VARIANTS[variant].get("variant") == "regular" else 5)
    views = [view for bot, seed in (("random", 3), ("safe", 4)) for view in _moments(game, bot, 10, steps, seed)]
    return np.concatenate(views)
