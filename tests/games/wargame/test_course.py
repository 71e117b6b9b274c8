"""What options share and what attacks promise, against what the slow rules know."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from maple.core.threads import Team
from maple.games.wargame import course, options
from maple.games.wargame.game import WargameGame
from tests.games.wargame.match import SideBySide, wargame
from tests.games.wargame.slow_pieces import Squad
from tests.games.wargame.slow_table import HOLD, MOVING, SHOOT, SlowGame


def _ahead(number: float) -> int:
    return 15 + max(-15, min(15, math.floor(number)))


def _left(squad: Squad) -> float:
    """Points of a squad's wounds that are left."""
    b = squad.unit.body
    return b.points / (b.models * b.wounds) * ((squad.models - 1) * b.wounds + squad.wounds)


def _times(slow: SlowGame, side: int, opens: int) -> int:
    """How often an objective pays a side from now on, counted turn by turn."""
    rounds, total = slow.game.settings.rounds, 1  # all pay once more at the end
    for number in range(slow.round, rounds + 1):
        begun = number == slow.round and (side in (slow.turn, slow.first))
        total += number >= opens and not begun
    return total


def _expected(slow: SlowGame) -> set[int]:
    me, them = slow.side, 1 - slow.side
    outlook, found = slow.vp[me] - slow.vp[them], set()
    found.add(course._MARGIN + _ahead(outlook / 2))
    for label, objective in slow.mission.objectives.items():
        own = slow.map.facing(label) if me else label  # what a seat sees as its objective `label`
        grip = slow.control(me, own) - slow.control(them, own)
        found.add(course._GRIP + min(11, objective.vp) * 9 + 4 + max(-4, min(4, grip)))
        if grip:
            payee = me if grip > 0 else them
            outlook += (1 if grip > 0 else -1) * objective.vp * _times(slow, payee, objective.opens)
    points = [sum(_left(squad) for squad in slow.alive(who)) for who in (me, them)]
    found.add(course._OUTLOOK + _ahead(outlook / 4))
    found.add(course._RATE + min(7, slow.mission.points_per_vp // 4))
    found.add(course._WAITING + sum(not squad.done for squad in slow.alive(me)))
    for side in range(2):
        found.add(course._POINTS + side * course._FORCE + min(course._FORCE - 1, int((points[side] + 0.1) / 40)))
    return found


def _frees(slow: SlowGame, foe: Squad) -> int:
    """VP a turn that the end of a squad wins or denies: control is counted with it and without it."""

    def paid() -> int:
        total = 0
        for label, objective in slow.mission.objectives.items():
            mine, theirs = slow.control(slow.side, label), slow.control(1 - slow.side, label)
            total += objective.vp * ((mine > theirs) - (theirs > mine))
        return total

    before, models = paid(), foe.models
    foe.models = 0
    after = paid()
    foe.models = models
    return after - before


def _positions(game: WargameGame, seed: int, rounds: int, team: Team) -> Iterator[tuple[NDArray[np.uint64], SlowGame]]:
    """The view of each decision of some games, and the slow rules at the same point."""
    both = SideBySide(game, 6, seed, team)
    for _ in range(rounds):
        step = both.arena.recv()
        if not len(step.ended.table):
            yield from ((step.view[table : table + 1], slow) for table, slow in enumerate(both.slow))
        both.step("tactician")


def _told(game: WargameGame, view: NDArray[np.uint64], action: int | None = None) -> list[int]:
    """The features of an action, or of the state that all actions share."""
    spec = game.spec.options
    assert spec is not None
    feature, length = np.zeros((1, spec.state_width), np.int16), np.zeros(1, np.int16)
    if action is None:
        game.describe_state(view, feature, length, 0, 1)
    else:
        game.describe_choice(view, np.array([action], np.int16), feature, length, 0, 1)
    return list(feature[0, : length[0]].tolist())


def test_the_course_of_a_game_is_described_as_it_is(team: Team) -> None:
    game, checked = wargame(), 0
    for view, slow in _positions(game, 8, 200, team):
        assert _expected(slow) <= set(_told(game, view))
        checked += 1
    assert checked > 600


def test_attacks_say_what_the_end_of_their_target_frees(team: Team) -> None:
    game, met = wargame(), 0
    for view, slow in _positions(game, 9, 250, team):
        for action in [a for a in slow.legal() if SHOOT <= a < HOLD]:
            kind, foe = (action - SHOOT) // 8, slow.sides[1 - slow.side][(action - SHOOT) % 8]
            frees = _frees(slow, foe)
            assert options._FREED + kind * 21 + min(20, frees) in _told(game, view, action)
            met += frees > 0
    assert met > 20


def test_who_controls_objectives_without_the_squad_that_moves(team: Team) -> None:
    """An objective that only this squad holds is nobody's to it, wherever it stands."""
    game, leaves = wargame(), 0
    for view, slow in _positions(game, 10, 200, team):
        if slow.phase != MOVING or slow.slot is None:
            continue
        ways = [f - options._WAYS for f in _told(game, view, HOLD)]
        squad, held = slow.sides[slow.side][slow.slot], _holders(slow)
        models, squad.models = squad.models, 0
        without = _holders(slow)
        squad.models = models
        assert sorted(f // 10 for f in ways if 0 <= f < 30) == without
        leaves += held != without
    assert leaves > 10


def _holders(slow: SlowGame) -> list[int]:
    """Nobody, me or they, for each objective, in order."""
    grips = [slow.control(slow.side, label) - slow.control(1 - slow.side, label) for label in slow.mission.objectives]
    return sorted(1 if grip > 0 else 2 if grip < 0 else 0 for grip in grips)
