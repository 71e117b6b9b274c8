"""Tables that are held play the same games as others, later."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from maple.arena.base import HOLD, Arena
from maple.arena.native import NativeArena
from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.core.errors import ActionError, MapleError
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game

TABLES = 5
NIM, MATCH = "tests.games.external.envs:Nim", "tests.games.external.envs:Match"


def _open(kind: str, game: Any, team: Team) -> Arena:
    if kind == "native":
        return NativeArena(game, TABLES, 3, team)
    if kind == "node":
        return NodeArena(game, TABLES, 3, processes=1, lanes=TABLES, limits=PoolLimits(spares=0))
    if kind == "workers":
        return WorkerArena(game, TABLES, 3, workers=2, spares=0)
    return SerialArena(game, TABLES, 3)


def _trace(arena: Arena, game: Game, share: float) -> dict[int, list[Any]]:
    """What each table was asked and told, in its own order, with a share of the tables held each time."""
    seen: dict[int, list[Any]] = defaultdict(list)
    rng, bot = np.random.default_rng(0), game.bot("random")
    while len(seen) < TABLES or min(len(rows) for rows in seen.values()) < 40:
        step = arena.recv()
        for k, table in enumerate(step.ended.table.tolist()):
            reward = step.ended.reward[k].tolist()
            seen[table].append(("ended", int(step.ended.game[k]), int(step.ended.outcome[k]), reward))
        action = np.empty(len(step.keys), np.int32)
        bot(step.view, 5, step.keys, action, 0, len(action))
        action[(rng.random(TABLES) < share)[step.keys.table]] = HOLD
        for i in np.flatnonzero(action != HOLD):
            keys = step.keys
            about = (int(keys.game[i]), int(keys.seat[i]), int(keys.decision[i]), step.view[i].tobytes())
            seen[int(keys.table[i])].append((*about, step.reward[i].tolist(), int(action[i])))
        arena.send(action)
    return {table: rows[:40] for table, rows in seen.items()}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("native", "ofc"),
        ("native", "wargame"),
        ("serial", NIM),
        ("serial", MATCH),
        ("workers", NIM),
        ("node", "showdown"),
    ],
)
def test_tables_that_are_held_play_the_same_games_later(kind: str, name: str, team: Team) -> None:
    try:
        game, traces = make_game(name), []
        for share in (0.0, 0.5):
            arena = _open(kind, game, team)
            traces.append(_trace(arena, game, share))
            arena.close()
    except MapleError as error:
        if kind != "node":
            raise
        pytest.skip(str(error))
    assert traces[0] == traces[1]


def test_a_lane_is_held_as_a_whole() -> None:
    try:
        arena = NodeArena(make_game("showdown"), 4, 3, processes=1, lanes=1, limits=PoolLimits(spares=0))
    except MapleError as error:
        pytest.skip(str(error))
    with arena:
        action = arena.recv().mask.argmax(axis=1)
        action[0] = HOLD
        with pytest.raises(ActionError, match="held together"):
            arena.send(action)
