"""Whole games as records: what was set, who played, every action, how it ended; enough to play them again exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from maple.arena.base import Arena
from maple.arena.native import NativeArena
from maple.arena.serial import SerialArena
from maple.arena.watched import WatchedArena
from maple.core.errors import GameError
from maple.core.spec import GameSpec
from maple.core.step import Keys, Outcome, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.games.external.game import ExternalGame

__all__ = ["GameRecord", "Moment", "Scribe", "load_record", "play_on_record", "record_at", "record_game", "replay"]

VERSION = 1
Choose = Callable[[NDArray[np.uint64], Keys, int], NDArray[Any]]  # an action for every row


@dataclass(frozen=True, slots=True)
class GameRecord:
    """One game."""

    game: str
    settings: dict[str, Any]
    seed: int
    table: int
    players: list[str]  # by seat
    actions: list[int]
    end: dict[str, Any]  # the game's figures
    version: int = VERSION

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self)) + "\n"


@dataclass(frozen=True, slots=True)
class Moment:
    """A decision and what was chosen; `table` is all there is to know of it, `after` what came of it.

    After the last action of a game, `after` is the table of the next one. Of an env neither is known.
    """

    seat: int
    view: NDArray[np.uint64]
    action: int
    table: Any
    after: Any


class Scribe:
    """Takes down the first game of table 0 while others play it: an evaluation, say."""

    def __init__(self) -> None:
        self._first: _Noted | None = None

    def over(self, arena: Arena) -> Arena:
        """The same arena, with somebody who looks on; only the first one that comes is looked at."""
        if self._first is not None:
            return arena
        self._first = _Noted(arena)
        return self._first

    def record(self, game: Game, seed: int, players: list[str]) -> GameRecord | None:
        """The game, with who sat where; None if it was lost."""
        noted = self._first
        if noted is None or noted.end is None:
            return None
        return GameRecord(game.spec.name, game.settings.model_dump(), seed, 0, players, noted.actions, noted.end)


class _Noted(WatchedArena):
    """An arena whose first game at table 0 is taken down."""

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self.actions: list[int] = []
        self.end: dict[str, Any] | None = None
        self._open = True
        self._rows = np.zeros(0, np.int64)

    def recv(self) -> Step:
        """What waits, and what ended; the end of that game is noted."""
        step = self._arena.recv()
        if self._open:
            for row in np.flatnonzero(step.ended.table == 0)[:1]:
                self._open = False
                self.end = _end(step, int(row)) if step.ended.outcome[row] != Outcome.LOST else None
            self._rows = np.flatnonzero(step.keys.table == 0)
        return step

    def send(self, action: NDArray[Any]) -> None:
        """Play; the actions of that game are noted."""
        if self._open:
            self.actions += np.asarray(action)[self._rows].tolist()
        self._arena.send(action)


def _one_table(game: Game, seed: int, table: int, team: Team) -> NativeArena | SerialArena:
    if isinstance(game, ExternalGame):
        return SerialArena(game, 1, seed, first_table=table)
    return NativeArena(game, 1, seed, team, first_table=table)


def _state(arena: NativeArena | SerialArena) -> Any:
    return arena.state()["tables"][0] if isinstance(arena, NativeArena) else None


def _end(step: Step, row: int = 0) -> dict[str, Any]:
    figures = step.ended.figures[row]
    return {name: np.asarray(figures[name]).tolist() for name in figures.dtype.names}


def record_game(
    game: Game, players: Sequence[tuple[str, Choose]], seed: int, table: int, tell: Callable[[int], None] | None = None
) -> GameRecord:
    """Play the first game of a table, a named player at each seat."""
    with Team(1) as team, _one_table(game, seed, table, team) as arena:
        return record_at(arena, game, players, seed, table, tell)


def record_at(
    arena: Arena,
    game: Game,
    players: Sequence[tuple[str, Choose]],
    seed: int,
    table: int = 0,
    tell: Callable[[int], None] | None = None,
) -> GameRecord:
    """The same at an arena that has only this table."""
    actions: list[int] = []
    while True:
        step = arena.recv()
        if len(step.ended.table):
            if step.ended.outcome[0] == Outcome.LOST:
                raise GameError(f"the game of {game.spec.name} was lost before its end; try again, or another --seed")
            names = [name for name, _ in players]
            return GameRecord(game.spec.name, game.settings.model_dump(), seed, table, names, actions, _end(step))
        chosen = _choose(step, [choose for _, choose in players], seed)
        actions += chosen.tolist()
        if tell is not None:
            tell(len(actions))
        arena.send(chosen)


def _choose(step: Step, players: list[Choose], seed: int) -> NDArray[np.int32]:
    """An action for every row, by the player who sits there."""
    action = np.zeros(len(step.keys), np.int32)
    for row, seat in enumerate(step.keys.seat):
        one = np.array([row])
        action[row] = players[int(seat)](step.view[one], step.keys.take(one), seed)[0]
    return action


def play_on_record(record: GameRecord, arena: Arena) -> Iterator[tuple[Step, NDArray[np.int32]]]:
    """Play a recorded game at an arena of one table: what was asked, and what is answered before the next is drawn.

    An action that is not open and an ending that differs are errors.
    """
    played = 0
    while True:
        step = arena.recv()
        if len(step.ended.table):
            if played != len(record.actions) or _end(step) != record.end:
                raise GameError("the record ends otherwise than the game does here; it was made by other rules")
            return
        given = np.array(record.actions[played : played + len(step.keys)], np.int32)
        _refuse_closed(given, played, step, arena.spec)
        yield step, given
        arena.send(given)
        played += len(given)


def _refuse_closed(given: NDArray[np.int32], first: int, step: Step, spec: GameSpec) -> None:
    if len(given) < len(step.keys):
        raise GameError(f"the record ends after {first} actions, but the game does not; it was made by other rules")
    for row, action in enumerate(given):
        if not (0 <= action < spec.actions and step.mask[row, action]):
            raise GameError(
                f"action {first + row} of the record, {action}, cannot be played here; it was made by other rules"
            )


def replay(record: GameRecord) -> Iterator[Moment]:
    """Every decision of a recorded game of this process."""
    game = make_game(record.game, record.settings)
    with Team(1) as team, _one_table(game, record.seed, record.table, team) as arena:
        waiting: list[Moment] = []
        for step, given in play_on_record(record, arena):
            table = _state(arena)
            yield from (replace(moment, after=table) for moment in waiting)
            seats, views = step.keys.seat.tolist(), step.view.copy()
            waiting = [Moment(*row, table, None) for row in zip(seats, views, given.tolist(), strict=True)]
        yield from (replace(moment, after=_state(arena)) for moment in waiting)


def load_record(path: Path) -> GameRecord:
    """A record from its file."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
        version = content.get("version") if isinstance(content, dict) else None
        if isinstance(version, int) and version != VERSION:
            raise GameError(f"record {path} has version {version}, here it is {VERSION}; record the game anew")
        return TypeAdapter(GameRecord).validate_json(text, strict=True)
    except OSError:
        raise GameError(f"record {path} cannot be read; name a file that `maple show --record` wrote") from None
    except ValueError:
        raise GameError(f"{path} is not a record of a game; name a file that `maple show --record` wrote") from None
