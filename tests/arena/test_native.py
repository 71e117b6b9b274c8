from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.errors import ActionError
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game

SEED = 5
TABLES = 200  # three ranges of at least 64 rows: a team of three really splits


@pytest.fixture(scope="module")
def game() -> Game:
    return make_game("ofc", {"hand_cap": 3})


@pytest.fixture(scope="module", params=[1, 2, 3])
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    with Team(request.param) as threads:
        yield threads


def play(game: Game, bot: str, tables: int, team: Team, steps: int, first_table: int = 0) -> dict[str, NDArray[Any]]:
    """Everything that happens at some tables: decisions, actions, rewards and ended games."""
    arena = NativeArena(game, tables, SEED, team, options=True, first_table=first_table)
    log: dict[str, list[NDArray[Any]]] = {}
    ended = np.zeros((steps, tables), game.spec.figures)
    for i in range(steps):
        step, action = arena.recv(), np.zeros(tables, np.int32)
        ended[i, step.ended.table - first_table] = step.ended.figures
        team.run(game.bot(bot), tables, step.view, SEED, step.keys, action, grain=4)
        keys = (step.keys.table, step.keys.game, step.keys.seat, step.keys.decision)
        for name, array in {
            "keys": np.stack([key.astype(np.int64) for key in keys], axis=1),
            "view": step.view,
            "observation": step.observation,
            "mask": step.mask,
            "reward": step.reward,
            "action": action,
        }.items():
            log.setdefault(name, []).append(array.copy())
        arena.send(action)
    return {"ended": ended, **{name: np.stack(arrays) for name, arrays in log.items()}}


def assert_same(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]], lo: int, hi: int) -> None:
    """`other` is what `one` has at tables [lo, hi)."""
    for name in one:
        np.testing.assert_array_equal(one[name][:, lo:hi], other[name], err_msg=name)


PLAYED = [("random", 40), ("safe", 40), ("rollout", 16)]


@pytest.fixture(scope="module")
def reference(game: Game) -> dict[tuple[str, int], dict[str, NDArray[Any]]]:
    with Team(1) as team:
        return {(bot, steps): play(game, bot, TABLES, team, steps) for bot, steps in PLAYED}


@pytest.mark.parametrize(("bot", "steps"), PLAYED)
def test_threads_change_nothing(game: Game, reference: Any, team: Team, bot: str, steps: int) -> None:
    assert_same(reference[bot, steps], play(game, bot, TABLES, team, steps), 0, TABLES)


@pytest.mark.parametrize(("bot", "steps"), PLAYED)
def test_the_number_of_tables_changes_nothing(game: Game, reference: Any, team: Team, bot: str, steps: int) -> None:
    assert_same(reference[bot, steps], play(game, bot, 70, team, steps), 0, 70)


@pytest.mark.parametrize(("bot", "steps"), PLAYED)
def test_a_split_into_arenas_changes_nothing(game: Game, reference: Any, team: Team, bot: str, steps: int) -> None:
    for first, last in ((0, 13), (13, 80), (80, TABLES)):
        assert_same(reference[bot, steps], play(game, bot, last - first, team, steps, first), first, last)


def test_the_reference_games_end_and_differ(reference: Any) -> None:
    """Else the comparisons above compare little."""
    for log in reference.values():
        assert (log["ended"]["how"] != 0).sum() > 0.9 * TABLES
        assert len({bytes(view) for view in log["view"][0]}) == TABLES
    assert reference["safe", 40]["ended"]["entries"].sum() > 0


def test_the_seed_changes_the_games(game: Game) -> None:
    with Team(1) as team:
        one, other = (NativeArena(game, 50, seed, team).recv().view.copy() for seed in (1, 2))
    assert (one != other).any(axis=1).all()


def _first_legal(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    return mask.argmax(axis=1)


@pytest.mark.parametrize("bad", [-1, 243, 270, 10_000, 0])
def test_illegal_actions_are_refused_by_row(game: Game, bad: int) -> None:
    """Beyond the actions, of another street, or five cards for the top (0): the row is named, nothing is played."""
    with Team(1) as team:
        arena = NativeArena(game, 8, SEED, team, first_table=40)
        step = arena.recv()
        before = {name: array.copy() for name, array in arena.state().items()}
        action = _first_legal(step.mask)
        action[5] = bad
        text = rf"action {bad} is not legal for seat {step.keys.seat[5]} at table 45 of ofc; .* step.mask\[5\]"
        with pytest.raises(ActionError, match=text):
            arena.send(action)
        for name, array in arena.state().items():
            np.testing.assert_array_equal(array, before[name])
        action[5] = _first_legal(step.mask)[5]
        arena.send(action)
        assert (arena.recv().keys.seat == (before["tables"]["button"] + 2) % 3).all()


def test_first_street_actions_are_refused_later(game: Game) -> None:
    with Team(1) as team:
        arena = NativeArena(game, 2, SEED, team)
        for _ in range(3):
            arena.send(_first_legal(arena.recv().mask))
        step = arena.recv()
        assert step.mask[:, :243].sum() == 0
        with pytest.raises(ActionError, match=r"step.mask\[0\]"):
            arena.send(np.array([121, int(step.mask[1].argmax())]))


def test_restore_continues_the_same_games(game: Game) -> None:
    with Team(1) as team:
        arena, other = NativeArena(game, 30, SEED, team), NativeArena(game, 30, SEED, team)
        for i in range(33):
            if i == 15:  # a send() has just ended games: they are part of the state
                other.restore({name: array.copy() for name, array in arena.state().items()})
            step, action = arena.recv(), np.zeros(30, np.int32)
            game.bot("random")(step.view, SEED, step.keys, action, 0, 30)
            if i >= 15:
                twin = other.recv()
                np.testing.assert_array_equal(step.view, twin.view)
                np.testing.assert_array_equal(step.reward, twin.reward)
                np.testing.assert_array_equal(step.ended.figures, twin.ended.figures)
                np.testing.assert_array_equal(step.keys.decision, twin.keys.decision)
                other.send(action)
            if i == 15:
                assert len(step.ended.table) > 0
            arena.send(action)


def test_state_is_the_same_byte_for_byte(game: Game) -> None:
    """Also between the fields of the records, where np.concatenate leaves what was in memory before."""
    single = make_game("ofc", {"fantasyland": "off"})
    saved = []
    with Team(1) as team:
        for _ in range(2):
            arena = NativeArena(game, 300, SEED, team, variants=[(single, 100)])
            for _ in range(16):
                arena.send(_first_legal(arena.recv().mask))
            noise = [np.full(size, 0xAB, np.uint8) for size in range(1000, 300_000, 1000)]
            del noise
            saved.append({name: array.tobytes() for name, array in arena.state().items()})
    assert saved[0] == saved[1]
    records = np.frombuffer(saved[0]["ended"], np.uint8).reshape(300, -1)
    assert (records[:, 1] == 0).all()  # between `how` and `hands`


def test_encodings_that_were_not_asked_for_are_empty(game: Game) -> None:
    with Team(1) as team:
        step = NativeArena(game, 4, SEED, team, observations=False, check=False).recv()
        assert step.observation.shape == (4, 0)
        assert step.mask.shape == (4, 0)
        assert step.options is None
        full = NativeArena(game, 4, SEED, team, options=True).recv()
    assert full.observation.shape == (4, game.spec.observation)
    assert full.mask.shape == (4, game.spec.actions)
    assert full.options is not None
    np.testing.assert_array_equal(np.diff(full.options.offset), full.mask.sum(1))


def test_options_of_a_game_without_them_are_refused() -> None:
    plain: Any = make_game("ofc")
    plain.spec = replace(plain.spec, options=None)
    with Team(1) as team, pytest.raises(ActionError, match="ofc does not describe its options"):
        NativeArena(plain, 2, SEED, team, options=True).recv()


def test_variants_play_as_they_would_alone(game: Game) -> None:
    """Blocks of tables with other options are the same games as in arenas of their own."""
    single = make_game("ofc", {"fantasyland": "off"})
    with Team(3) as team:
        mixed = NativeArena(game, TABLES, SEED, team, variants=[(single, 90)])
        alone = NativeArena(game, 110, SEED, team), NativeArena(single, 90, SEED, team, first_table=110)
        for _ in range(33):
            step, parts = mixed.recv(), [arena.recv() for arena in alone]
            np.testing.assert_array_equal(step.view, np.concatenate([part.view for part in parts]))
            np.testing.assert_array_equal(step.reward, np.concatenate([part.reward for part in parts]))
            np.testing.assert_array_equal(step.mask, np.concatenate([part.mask for part in parts]))
            for name in ("table", "game", "outcome", "figures"):
                both = np.concatenate([getattr(part.ended, name) for part in parts])
                np.testing.assert_array_equal(getattr(step.ended, name), both)
            action = np.zeros(TABLES, np.int32)
            game.bot("safe")(step.view, SEED, step.keys, action, 0, TABLES)
            mixed.send(action)
            alone[0].send(action[:110])
            alone[1].send(action[110:])
        state = {name: array.copy() for name, array in mixed.state().items()}
        before = mixed.recv().view.copy()
        mixed.send(mixed.recv().mask.argmax(axis=1))
        mixed.restore(state)
        np.testing.assert_array_equal(mixed.recv().view, before)
    assert len(set((step.view[:, 11] >> np.uint64(40) & np.uint64(255)).tolist())) == 2
