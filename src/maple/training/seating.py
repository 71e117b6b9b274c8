"""Who plays each seat of each table: the learner, a frozen snapshot of it, a scripted bot.

The learner has one seat of every game, which moves from game to game; the others are drawn by weight and stay for the
whole game. Draws are keyed by (table, game, seat), so they depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maple.core.errors import ConfigError, nearest
from maple.core.kernels import kernel
from maple.core.rng import Purpose, bounded, key, scramble, stream_next, uniform

__all__ = ["LEARNER", "SNAPSHOT", "OpponentMix", "Seating", "learner_seat"]

LEARNER = 0  # a player is 0, 1 + the number of a bot, or SNAPSHOT + the number of a snapshot
SNAPSHOT = 1000
_PAST = -1
_SEATING = int(Purpose.SEATING)


@dataclass(frozen=True, slots=True)
class OpponentMix:
    """Kinds of opponent and their weights."""

    names: tuple[str, ...]
    weights: tuple[float, ...]

    @staticmethod
    def parse(text: str, bots: Sequence[str]) -> OpponentMix:
        """Read `self:0.5,past:0.3,random:0.2`; a name alone weighs 1."""
        names, weights = [], []
        for part in text.split(","):
            name, _, weight = part.strip().partition(":")
            if name not in ("self", "past", *bots):
                raise ConfigError(f"--opponents: there is no {name!r}; {nearest(name, ('self', 'past', *bots))}")
            try:
                weights.append(float(weight) if weight else 1.0)
            except ValueError:
                raise ConfigError(f"--opponents: the weight of {name!r} is {weight!r}, not a number") from None
            names.append(name)
        if min(weights) < 0 or sum(weights) <= 0 or not np.isfinite(sum(weights)):
            raise ConfigError(f"--opponents {text}: weights are positive numbers, such as self:0.5,random:0.5")
        total = sum(weights)
        return OpponentMix(tuple(names), tuple(weight / total for weight in weights))

    @property
    def bots(self) -> list[str]:
        """The scripted ones, in the order of their numbers."""
        return [name for name in self.names if name not in ("self", "past")]

    @property
    def uses_past(self) -> bool:
        """Whether snapshots are wanted."""
        return "past" in self.names


@kernel
def learner_seat(table, game, seats):
    """The seat that is always the learner's: it moves with the games, also against a button that does the same."""
    return (table + game + game // seats) % seats


@kernel
def _seat_tables(player, table, game, codes, cumulative, snapshots, seed):
    """Draw the players of new games. Writes player."""
    seats = player.shape[1]
    for t, g in zip(table, game):
        for seat in range(seats):
            state = key(seed, _SEATING, t, g, seat, 0, 0)
            kind = np.searchsorted(cumulative, uniform(state), side="right")
            code = codes[min(kind, len(codes) - 1)]
            if code == _PAST:
                draw = bounded(scramble(stream_next(state)), max(1, len(snapshots)))
                code = SNAPSHOT + snapshots[draw] if len(snapshots) else LEARNER
            player[t, seat] = LEARNER if seat == learner_seat(t, g, seats) else code


class Seating:
    """The players of every table."""

    def __init__(self, mix: OpponentMix, tables: int, seats: int, seed: int) -> None:
        self.mix = mix
        self.player = np.zeros((tables, seats), np.int32)
        self._seed = np.uint64(seed)
        number = {name: 1 + i for i, name in enumerate(mix.bots)}
        special = {"self": LEARNER, "past": _PAST}
        self._codes = np.array([special.get(name, number.get(name, 0)) for name in mix.names], np.int64)
        self._cumulative = np.cumsum(np.array(mix.weights))
        self.only_learner = mix.names == ("self",)

    def seat(self, table: NDArray[np.int32], game: NDArray[np.int64], snapshots: Sequence[int]) -> None:
        """Seat the players of games that begin; no snapshot yet means the learner itself."""
        if not self.only_learner:
            numbers = np.array(list(snapshots), np.int64)
            _seat_tables(self.player, table, game, self._codes, self._cumulative, numbers, self._seed)
