"""What squads are said to see and touch, against a look at the board, over thousands of games."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games.wargame.book import RANGE, RANGED, weapon_column
from tests.games.wargame.match import wargame

REACH = weapon_column(RANGED, RANGE)


@numba.njit
def _looked_up(tables, book, targets, engaged):  # type: ignore[no-untyped-def]
    """Work out for every pair of enemies whether they see each other in range and touch. Writes targets, engaged."""
    for i in range(len(tables)):
        t = tables[i]
        for side in range(2):
            for slot in range(8):
                targets[i, side, slot] = engaged[i, side, slot] = 0
                a = np.int64(t.cell[side, slot])
                for foe in range(8):
                    b = np.int64(t.cell[1 - side, foe])
                    if a < 0 or b < 0:
                        continue
                    across, along = abs(a % 22 - b % 22), abs(a // 22 - b // 22)
                    far, short = max(across, along), min(across, along)
                    sees = (book.sight[t.board, a, b // 64] >> np.uint64(b % 64)) & np.uint64(1)
                    if far == 1:
                        engaged[i, side, slot] |= 1 << foe
                    if sees and 2 * far + short <= book.profile[t.unit[side, slot], REACH]:
                        targets[i, side, slot] |= 1 << foe


def _check(state: NDArray[Any], book: NDArray[Any]) -> NDArray[np.bool_]:
    """(tables,) whether all that is cached is what the board says."""
    targets, engaged = (np.empty((len(state), 2, 8), np.int64) for _ in range(2))
    _looked_up(state, book[0], targets, engaged)
    same = (state["targets"] == targets) & (state["engaged"] == engaged) | (state["cell"] < 0)
    gone = (state["cell"] < 0) & ((state["targets"] != 0) | (state["engaged"] != 0))
    return (same & ~gone).all((1, 2)) & (state["stale"] == 0).all(1)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("options", "bot", "games"),
    [({"armies": "drawn"}, "random", 2000), ({"maps": ["ruins", "courtyard"], "rounds": 3}, "charger", 1000)],
)
def test_cached_answers_are_those_of_the_board(options: dict[str, object], bot: str, games: int, team: Team) -> None:
    game, tables, finished, seen = wargame(**options), 500, 0, np.zeros(2, np.int64)
    arena = NativeArena(game, tables, 5, team, observations=False, check=False)
    play, action = game.bot(bot), np.zeros(tables, np.int32)
    while finished < games:
        step = arena.recv()
        finished += len(step.ended.table)
        state = arena._blocks[0].tables.state  # type: ignore[attr-defined]
        assert _check(state, game.book).all()
        seen += np.count_nonzero(state["targets"]), np.count_nonzero(state["engaged"])
        play(step.view, 5, step.keys, action, 0, tables)
        arena.send(action)
    assert (seen > 10_000).all()
    for name in ("targets", "engaged"):
        spoiled = state.copy()
        spoiled[name][3, 1, np.flatnonzero(state["cell"][3, 1] >= 0)[0]] ^= 1
        assert np.flatnonzero(~_check(spoiled, game.book)).tolist() == [3]
