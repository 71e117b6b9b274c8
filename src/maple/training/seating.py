"""Who plays each seat of each table: the learner, a frozen snapshot of it, another run's agent, a scripted bot.

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
from maple.core.rng import Purpose, key, uniform

__all__ = ["LEARNER", "PAST", "RIVAL", "RUN", "SNAPSHOT", "OpponentMix", "Seating", "Shares", "learner_seat"]

# A player is 0, 1 + the number of a bot, RIVAL + the number of a rival, or SNAPSHOT + the number of a snapshot.
LEARNER = 0
RIVAL = 500
SNAPSHOT = 1000
PAST = ("latest", "past", "recent", "hard", "even")  # ways to draw from the run's own past
RUN = "run:"
_SEATING = int(Purpose.SEATING)


@dataclass(frozen=True, slots=True)
class OpponentMix:
    """Kinds of opponent and their weights."""

    names: tuple[str, ...]
    weights: tuple[float, ...]

    @staticmethod
    def parse(text: str, bots: Sequence[str]) -> OpponentMix:
        """Read `self:0.5,hard:0.3,random:0.1,run:NAME@best:0.1`; a name alone weighs 1."""
        shares: dict[str, float] = {}
        for part in text.split(","):
            prefix = RUN if part.strip().startswith(RUN) else ""
            name, colon, weight = part.strip().removeprefix(prefix).rpartition(":")
            name, weight = prefix + (name if colon else weight), weight if colon else "1"
            known = ("self", *PAST, *bots)
            if name == RUN or (name not in known and not prefix):
                raise ConfigError(f"--opponents: there is no {name!r}; {nearest(name, (*known, 'run:NAME'))}")
            if name in shares:
                raise ConfigError(f"--opponents {text}: {name!r} is there twice; add its weights up")
            try:
                shares[name] = float(weight)
            except ValueError:
                raise ConfigError(f"--opponents: the weight of {name!r} is {weight!r}, not a number") from None
        total = sum(shares.values())
        if min(shares.values()) < 0 or total <= 0 or not np.isfinite(total):
            raise ConfigError(f"--opponents {text}: weights are positive numbers, such as self:0.5,random:0.5")
        return OpponentMix(tuple(shares), tuple(weight / total for weight in shares.values()))

    @staticmethod
    def without_runs(text: str) -> str:
        """The same opponents but for those of other runs."""
        return ",".join(part for part in text.split(",") if not part.strip().startswith(RUN)) or "self"

    @property
    def bots(self) -> list[str]:
        """The scripted ones, in the order of their numbers."""
        return [name for name in self.names if name != "self" and name not in PAST and not name.startswith(RUN)]

    @property
    def runs(self) -> list[str]:
        """The runs whose agents are rivals, in the order of their numbers."""
        return [name.removeprefix(RUN) for name in self.names if name.startswith(RUN)]

    @property
    def uses_past(self) -> bool:
        """Whether snapshots are wanted."""
        return any(name in PAST for name in self.names)

    @property
    def only_learner(self) -> bool:
        """Whether the learner plays every seat of every game."""
        return self.names == ("self",)


@dataclass(frozen=True, slots=True)
class Shares:
    """Who is drawn for a seat, and how often."""

    player: NDArray[np.int64]  # (P,)
    share: NDArray[np.float64]  # (P,) adds up to 1


@kernel
def learner_seat(table, game, seats):
    """The seat that is always the learner's: it moves with the games, also against a button that does the same."""
    return (table + game + game // seats) % seats


@kernel
def _seat_tables(player, table, game, drawn, cumulative, seed):
    """Draw the players of new games. Writes player."""
    seats = player.shape[1]
    for t, g in zip(table, game):
        for seat in range(seats):
            at = np.searchsorted(cumulative, uniform(key(seed, _SEATING, t, g, seat, 0, 0)), side="right")
            code = drawn[min(at, len(drawn) - 1)]
            player[t, seat] = LEARNER if seat == learner_seat(t, g, seats) else code


class Seating:
    """The players of every table."""

    def __init__(self, tables: int, seats: int, seed: int) -> None:
        self.player = np.zeros((tables, seats), np.int32)
        self.guided = np.zeros(tables, np.bool_)  # games in which somebody else plays in the learner's place
        self._seed = np.uint64(seed)

    def seat(
        self,
        table: NDArray[np.int32],
        game: NDArray[np.int64],
        shares: Shares,
        guided: NDArray[np.bool_] | bool = False,
    ) -> None:
        """Seat the players of games that begin."""
        self.guided[table] = guided
        if len(shares.player) > 1 or shares.player[0] != LEARNER:
            _seat_tables(self.player, table, game, shares.player, np.cumsum(shares.share), self._seed)
        else:
            self.player[table] = LEARNER
