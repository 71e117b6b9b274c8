"""Whole games as records: what was set, who played, every action, how it ended; enough to play them again exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from maple.arena.native import NativeArena
from maple.core.errors import GameError
from maple.core.step import Keys, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game

__all__ = ["GameRecord", "Moment", "load_record", "record_game", "replay"]

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

    After the last action of a game, `after` is the table of the next one.
    """

    seat: int
    view: NDArray[np.uint64]
    action: int
    table: Any
    after: Any


def _one_table(game: Game, seed: int, table: int, team: Team) -> NativeArena:
    return NativeArena(game, 1, seed, team, first_table=table)


def _state(arena: NativeArena) -> Any:
    return arena.state()["tables"][0]


def _end(step: Step) -> dict[str, Any]:
    figures = step.ended.figures[0]
    return {name: np.asarray(figures[name]).tolist() for name in figures.dtype.names}


def record_game(
    game: Game, players: list[tuple[str, Choose]], seed: int, table: int, tell: Callable[[int], None] | None = None
) -> GameRecord:
    """Play the first game of a table, a named player at each seat."""
    actions: list[int] = []
    with Team(1) as team, _one_table(game, seed, table, team) as arena:
        while True:
            step = arena.recv()
            if len(step.ended.table):
                names = [name for name, _ in players]
                return GameRecord(game.spec.name, game.settings.model_dump(), seed, table, names, actions, _end(step))
            action = players[int(step.keys.seat[0])][1](step.view, step.keys, seed)
            actions.append(int(action[0]))
            if tell is not None:
                tell(len(actions))
            arena.send(action)


def replay(record: GameRecord) -> Iterator[Moment]:
    """Every decision of a recorded game; an ending that differs is an error."""
    game = make_game(record.game, record.settings)
    with Team(1) as team, _one_table(game, record.seed, record.table, team) as arena:
        for number, action in enumerate(record.actions):
            step = arena.recv()
            if len(step.ended.table) or not (0 <= action < game.spec.actions and step.mask[0, action]):
                raise GameError(
                    f"action {number} of the record, {action}, cannot be played here; it was made by other rules"
                )
            seat, view, table = int(step.keys.seat[0]), step.view[0].copy(), _state(arena)
            arena.send(np.array([action], np.int32))
            yield Moment(seat, view, action, table, _state(arena))
        step = arena.recv()
        if not len(step.ended.table) or _end(step) != record.end:
            raise GameError("the record ends otherwise than the game does here; it was made by other rules")


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
