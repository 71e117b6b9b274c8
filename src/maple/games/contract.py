"""What a native game gives: tables that play themselves in ranges, and encoders over views."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from maple.core.encoder import Encoder
from maple.core.step import Keys

__all__ = ["Bot", "Furnished", "Game", "Readable", "Tables", "Watchable", "files_of"]


class Tables(Protocol):
    """A batch of tables. Methods take a range, release the GIL and may run side by side on disjoint ranges."""

    @property
    def state(self) -> NDArray[Any]:
        """All there is to know of every table, one record each: what a checkpoint saves and restores."""

    @property
    def ended(self) -> NDArray[Any]:
        """A record of spec.figures for each table; its `how` is an Outcome, of the last `play`."""

    @property
    def last_view(self) -> NDArray[np.uint64]:
        """(T, seats, V) what each seat saw last, written where `how` is TRUNCATED."""

    def start(self, lo: int, hi: int) -> None:
        """Begin the first game at each table."""

    def decisions(self, keys: Keys, reward: NDArray[np.float32], view: NDArray[np.uint64], lo: int, hi: int) -> None:
        """The waiting decision of each table. Writes keys but table, reward, view."""

    def play(self, action: NDArray[np.int32], lo: int, hi: int) -> None:
        """Play one action at each table; a finished game is recorded in `ended` and the next one begins."""


class Bot(Protocol):
    """A scripted player: a pure function of each row's view and of its random key."""

    def __call__(
        self, view: NDArray[np.uint64], seed: int, keys: Keys, action: NDArray[np.int32], lo: int, hi: int
    ) -> None:
        """Choose for rows [lo, hi). Writes action."""


class Game(Encoder, Protocol):
    """The rules of one game with its options chosen."""

    @property
    def settings(self) -> BaseModel:
        """The options as chosen, defaults filled in."""

    def tables(self, count: int, seed: int, first_table: int = 0, tables_per_deal: int = 1) -> Tables:
        """A batch of tables, not yet started; `tables_per_deal` neighbours play the same deals (duplicate play)."""

    def bot(self, name: str) -> Bot:
        """A scripted player of spec.opponents."""

    def summarize(self, figures: NDArray[Any], seat: NDArray[np.int64]) -> dict[str, float]:
        """The game's own figures for the player that sat at `seat` of each finished game, as means."""


@runtime_checkable
class Furnished(Protocol):
    """A game that may be played with files of the user's own, whose contents are part of what a run is."""

    @property
    def files(self) -> dict[str, str]:
        """The absolute path of each such file, and the SHA-256 of what was read from it."""


def files_of(game: Game) -> dict[str, str]:
    """What files of the user's own a game is played with; most have none."""
    return game.files if isinstance(game, Furnished) else {}


@runtime_checkable
class Readable(Protocol):
    """A game that people can look at; not every game is."""

    def show(self, view: NDArray[np.uint64]) -> str:
        """One view as text."""


@runtime_checkable
class Watchable(Protocol):
    """A native game that people can watch from outside, with all that a table holds."""

    def frame(self, table: Any) -> str:
        """A table's record as text."""

    def say(self, table: Any, action: int) -> str:
        """What an action at that table means."""

    def tell(self, table: Any, action: int, after: Any) -> list[str]:
        """What came of an action, a line each, from the table before and after it: dice that were thrown."""

    def picture(self, table: Any, action: int, after: Any) -> str:
        """A table's record as an SVG, with the action that was chosen there and what came of it."""

    def ending(self, end: dict[str, Any]) -> str:
        """How a game ended, from its figures, in a line."""
