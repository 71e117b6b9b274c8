"""Observations and described options against what the slow rules know."""

from __future__ import annotations

import numpy as np
import pytest

from maple.arena.native import NativeArena
from maple.core.step import Step
from maple.core.threads import Team
from maple.games.wargame import course, options
from maple.games.wargame.encode import GLOBALS, OBSERVATION, ROW
from maple.games.wargame.state import ACTIONS
from tests.games.wargame.match import SideBySide, seen_cell, wargame
from tests.games.wargame.slow_pieces import WIDTH, Cell, Squad, apart
from tests.games.wargame.slow_table import MOVING, SlowGame

AREA = 17 * 17
SCALE = [1] * 8 + [20, 6] + [1] * 11
# Features that squads, or objectives, of a kind share; all others are there once.
ALIKE = [
    (course._SQUAD, course.SHARED),
    (course._GRIP, course._MOVE),
    (options._WAYS, options._ENEMY),
]


def _profile(slow: SlowGame, side: int, slot: int) -> list[int]:
    unit = slow.sides[side][slot].unit
    b, r, m = unit.body, unit.ranged, unit.melee
    body = [b.models, b.wounds, b.toughness, b.save, b.invulnerable or 7, b.move, b.control, b.leadership, b.points]
    shot = [r.range, r.attacks, r.skill, r.strength, r.piercing, r.damage] if r else [0] * 6
    whole = [*body, *shot, 0, m.attacks, m.skill, m.strength, m.piercing, m.damage]
    return [value // scale for value, scale in zip(whole, SCALE, strict=True)]


def _offset(cell: Cell, here: Cell) -> list[int]:
    dx, dy = cell[0] - here[0], cell[1] - here[1]
    return [max(0, dx), max(0, -dx), max(0, dy), max(0, -dy)]


def _goals(slow: SlowGame) -> set[Cell]:
    """The cells where a squad counts for an objective of the mission."""
    at = [(c % WIDTH, c // WIDTH) for label in slow.mission.objectives for c in slow.map.objectives()[label]]
    return {(x + dx, y + dy) for x, y in at for dx in range(-2, 3) for dy in range(-2, 3)}


def _harm(slow: SlowGame, ranged: bool, side: int, squad: Squad, foe: Squad) -> set[int]:
    """Wounds that an attack should cause, rounded; both neighbours where that is a matter of the last bits."""
    weapon = squad.unit.ranged if ranged else squad.unit.melee
    if weapon is None:
        return {0}
    b, s, t = foe.unit.body, weapon.strength, foe.unit.body.toughness
    wound = 2 if s >= 2 * t else 6 if 2 * s <= t else 4 if s == t else 3 if s > t else 5
    bonus = foe.braced + (ranged and slow.covered(squad.cell, foe.cell))
    save = min(7, max(2, min(b.save + weapon.piercing - bonus, b.invulnerable or 7)))
    each = weapon.attacks * (7 - weapon.skill) / 6 * (7 - wound) / 6 * (save - 1) / 6 * min(weapon.damage, b.wounds)
    left = (foe.models - 1) * b.wounds + foe.wounds
    amount = min(left, squad.models * each)
    return {min(12, int(amount + 0.5 + nudge)) for nudge in (-1e-4, 1e-4)}


def _check_globals(row: np.ndarray, slow: SlowGame, here: Cell) -> None:
    me = slow.side
    assert row[:2].tolist() == [slow.round, slow.game.settings.rounds - slow.round]
    assert np.flatnonzero(row[2:7]).tolist() == [slow.phase]
    assert row[7:9].tolist() == [slow.turn == me, slow.first == me]
    assert row[9:11].tolist() == [min(20, slow.vp[me] // 3), min(20, slow.vp[1 - me] // 3)]
    ahead = [slow.vp[me] - slow.vp[1 - me], slow.vp[1 - me] - slow.vp[me]]
    assert row[11:13].tolist() == [max(0, min(12, lead // 2)) for lead in ahead]
    assert row[13:15].tolist() == [slow.command[me], slow.command[1 - me]]
    for label, objective in slow.mission.objectives.items():
        own = slow.map.facing(label) if me else label
        mine, theirs = slow.control(me, own), slow.control(1 - me, own)
        at = 24 + 9 * (label - 1)
        pays = slow.round >= objective.opens
        wait = max(0, objective.opens - slow.round)
        cells = slow.map.objectives()[label]
        place = cells[len(cells) // 2]
        where = _offset((place % WIDTH, place // WIDTH), here)
        assert row[at : at + 9].tolist() == [objective.vp, pays, wait, mine > theirs, theirs > mine, *where]
    unused = {label for label in range(1, 7) if label not in slow.mission.objectives}
    assert not any(row[24 + 9 * (label - 1) : 24 + 9 * label].any() for label in unused)


def _check_squads(row: np.ndarray, slow: SlowGame, here: Cell) -> None:
    for side in range(2):
        who = slow.side if side == 0 else 1 - slow.side
        for slot in range(8):
            at = GLOBALS + (side * 8 + slot) * ROW
            squads = slow.sides[who]
            if slot >= len(squads) or not squads[slot].alive:
                assert not row[at : at + ROW].any()
                continue
            squad = squads[slot]
            assert row[at : at + 2].tolist() == [1, side == 0 and slot == slow.slot]
            assert row[at + 2 : at + 23].tolist() == _profile(slow, who, slot)
            assert row[at + 23 : at + 25].tolist() == [squad.models, squad.wounds]
            marks = (squad.shaken, squad.rushed, squad.charged, squad.braced, squad.done, squad.deferred)
            assert row[at + 25 : at + 31].tolist() == list(marks)
            assert row[at + 31 : at + 35].tolist() == _offset(seen_cell(slow.side, squad), here)
            assert row[at + 35 : at + 37].tolist() == [bool(slow.engaged(who, squad)), squad.cell in _goals(slow)]
            _check_meeting(row[at + 37 : at + 43].tolist(), slow, side, squad)


def _check_meeting(told: list[int], slow: SlowGame, side: int, squad: Squad) -> None:
    """How far a squad is from the one that decides, and what the two do to each other."""
    if slow.slot is None:
        assert not any(told)
        return
    me = slow.sides[slow.side][slow.slot]
    assert told[0] == min(15, apart(me.cell, squad.cell) // 4)
    if side == 0:
        assert not any(told[1:])
        return
    foe = 1 - slow.side
    number = slow.sides[foe].index(squad)
    assert told[1] == slow.sees(me.cell, squad.cell)
    assert told[2] in (_harm(slow, True, slow.side, me, squad) if number in slow.in_sight(slow.side, me) else {0})
    assert told[3] in (_harm(slow, True, foe, squad, me) if slow.slot in slow.in_sight(foe, squad) else {0})
    assert told[4] in _harm(slow, False, slow.side, me, squad)
    assert told[5] in _harm(slow, False, foe, squad, me)


def _check_planes(row: np.ndarray, slow: SlowGame, here: Cell) -> None:
    planes = row[GLOBALS + 16 * ROW :].reshape(6, 17, 17)
    where = [{seen_cell(slow.side, s) for s in slow.alive(who)} for who in (slow.side, 1 - slow.side)]
    goals = _goals(slow)
    for y in range(17):
        for x in range(17):
            cell = (here[0] + x - 8, here[1] + y - 8)
            inside = 0 <= cell[0] < 22 and 0 <= cell[1] < 15
            mark = slow.mark(cell) if inside else "#"
            assert planes[0, y, x] == (mark == "#")
            assert planes[1, y, x] == (mark == "+")
            assert planes[2, y, x] == (cell in where[0])
            assert planes[3, y, x] == (cell in where[1])
            assert planes[4, y, x] == (inside and cell in goals)
    if slow.phase != MOVING:
        assert not planes[5].any()
        return
    assert slow.slot is not None
    squad = slow.sides[slow.side][slow.slot]
    near = 2 * squad.unit.body.move
    ways = slow.ways(slow.side, squad, near if slow.engaged(slow.side, squad) else near + 4)
    told = {slow.index(slow.side, squad, cell): inches for cell, inches in ways.items() if inches}
    assert {int(i): int(planes[5].flat[i]) for i in np.flatnonzero(planes[5])} == told


def test_observations_match_plain_python(team: Team) -> None:
    both = SideBySide(wargame(), 6, 5, team)
    for _ in range(160):
        slow = both.slow
        step = both.arena.recv()
        if not len(step.ended.table):
            for table, game in enumerate(slow):
                here = (10, 7)
                if game.slot is not None:
                    here = seen_cell(game.side, game.sides[game.side][game.slot])
                _check_globals(step.observation[table], game, here)
                _check_squads(step.observation[table], game, here)
                _check_planes(step.observation[table], game, here)
        both.step("tactician")


@pytest.fixture(scope="module")
def steps(team: Team) -> list[Step]:
    """Decisions of all phases, options described."""
    game = wargame()
    arena = NativeArena(game, 64, 9, team, options=True)
    action, found = np.zeros(64, np.int32), []
    for number in range(150):
        step = arena.recv()
        if number % 10 == 0:
            keep = {"view": step.view.copy(), "mask": step.mask.copy(), "observation": step.observation.copy()}
            found.append(
                Step(step.keys, keep["view"], step.reward, keep["observation"], keep["mask"], step.options, step.ended)
            )
        game.bot("tactician" if number % 2 else "random")(step.view, 3, step.keys, action, 0, 64)
        arena.send(action)
    return found


def test_the_observation_is_as_long_as_declared(steps: list[Step]) -> None:
    spec = wargame().spec
    assert spec.observation == OBSERVATION
    assert spec.actions == ACTIONS
    for step in steps:
        assert step.observation.shape == (64, spec.observation)
        assert step.mask.shape == (64, spec.actions)


def test_options_are_the_legal_actions_in_order(steps: list[Step]) -> None:
    for step in steps:
        assert step.options is not None
        for i in range(64):
            mine = step.options.action[step.options.offset[i] : step.options.offset[i + 1]]
            assert mine.tolist() == np.flatnonzero(step.mask[i]).tolist()


def test_descriptions_fit_and_a_choice_is_shared_and_its_part(steps: list[Step]) -> None:
    game = wargame()
    spec = game.spec.options
    assert spec is not None
    for step in steps:
        told = step.options
        assert told is not None
        assert told.shared_length.max() <= spec.shared_width
        assert told.part_length.max() <= spec.part_width
        chosen = told.action[told.offset[1:] - 1].copy()
        feature, length = np.zeros((64, spec.state_width), np.int16), np.zeros(64, np.int16)
        game.describe_choice(step.view, chosen, feature, length, 0, 64)
        for i in range(64):
            part = int(told.option_part[told.offset[i + 1] - 1, 0])
            both = [
                *told.shared[i, : told.shared_length[i]],
                *told.part[part, : told.part_length[part]],
            ]
            assert feature[i, : length[i]].tolist() == both
            assert min(both) >= 0
            assert max(both) < spec.features
            alone = [f for f in both if not any(first <= f < last for first, last in ALIKE)]
            assert len(set(alone)) == len(alone)
        game.describe_state(step.view, feature, length, 0, 64)
        assert (length == told.shared_length).all()


def test_the_same_games_for_any_threads_and_batches() -> None:
    game = wargame()

    def played(tables: int, first: int, threads: int) -> list[tuple[int, ...]]:
        found, action = [], np.zeros(tables, np.int32)
        with Team(threads) as crew:
            arena = NativeArena(game, tables, 4, crew, first_table=first, observations=False, check=False)
            for _ in range(120):
                step = arena.recv()
                found.append(step.view.copy())
                game.bot("random")(step.view, 4, step.keys, action, 0, tables)
                arena.send(action)
        return [tuple(view.reshape(-1).tolist()) for view in np.stack(found, axis=1)]

    whole = played(8, 0, 1)
    assert played(8, 0, 2) == whole
    assert played(3, 0, 1) + played(5, 3, 2) == whole


def test_actions_about_squads_are_about_squads_that_are_there(team: Team) -> None:
    """What the spec declares of entities: a legal action about row i of a group means that row i is no padding."""
    game = wargame()
    arena = NativeArena(game, 32, 5, team)
    met = {group.name: 0 for group in game.spec.entities}
    for _ in range(300):
        step = arena.recv()
        for group in game.spec.entities:
            rows = step.observation[:, group.begin : group.end].reshape(-1, group.count, group.width)
            there = rows[:, :, group.present] != 0
            assert not rows[~there].any()
            for begin in group.actions:
                legal = step.mask[:, begin : begin + group.count]
                assert not (legal & ~there).any()
                met[group.name] += int(legal.sum())
        action = np.zeros(32, np.int32)
        game.bot("random")(step.view, 1, step.keys, action, 0, 32)
        arena.send(action)
    assert min(met.values()) > 20
    assert sum(group.end - group.begin for group in game.spec.entities) == 16 * ROW
