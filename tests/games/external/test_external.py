"""Envs of the user's own, against the plain way of playing them and against what they declare."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest

from maple.arena.seeds import env_seed
from maple.arena.serial import SerialArena
from maple.core.errors import GameError
from maple.core.spec import EntityGroup
from maple.core.step import Keys, Outcome
from maple.games import make_game
from maple.games.external.game import ExternalGame
from maple.games.external.plan import examine
from tests.arena.playing import play
from tests.games.external import envs

HERE = "tests.games.external.envs"
ODD = "tests.games.external.odd_envs"


def external(name: str, **arguments: Any) -> ExternalGame:
    game = make_game(f"{HERE}:{name}", arguments)
    assert isinstance(game, ExternalGame)
    return game


def _unpacked(game: ExternalGame, view: bytes) -> tuple[np.ndarray, np.ndarray]:
    rows = np.frombuffer(view, np.uint64)[None]
    observation = np.empty((1, game.spec.observation), game.spec.dtype)
    mask = np.empty((1, game.spec.actions), np.bool_)
    game.observe(rows, observation, mask, 0, 1)
    return observation[0], mask[0]


@pytest.mark.parametrize("masks", ["method", "info", "observation", "none"])
@pytest.mark.parametrize("floats", [True, False])
def test_a_gymnasium_env_plays_as_it_does_by_itself(masks: str, floats: bool) -> None:
    game = external("Walk", masks=masks, floats=floats)
    assert (game.spec.seats, game.spec.actions, game.spec.observation) == (1, 3, 7)
    assert game.spec.dtype == (np.float32 if floats else np.uint8)
    with SerialArena(game, 3, seed=9) as arena:
        trace = play(arena, game, 60)
    outcomes = set()
    for table, rows in trace.items():
        env, number, total, earned = envs.Walk(masks, floats=floats), 0, 0.0, 0.0
        seen, _ = env.reset(seed=env_seed(9, table, 0))
        over = (False, False)
        for row in rows:
            if row[0] == "ended":
                _, number_told, outcome, length, score, reward, last = row
                assert over[0] or over[1]
                assert outcome == (Outcome.TERMINATED if over[0] else Outcome.TRUNCATED)
                assert (number_told, length, score, reward) == (number, env.steps, [total], [[earned]])
                if over[1]:
                    where = seen["where"] if masks == "observation" else seen
                    observation, open_then = _unpacked(game, last[0])
                    np.testing.assert_array_equal(observation, where)
                    assert open_then.tolist() == (env._mask().tolist() if masks != "none" else [True] * 3)
                else:
                    assert not last
                outcomes.add(outcome)
                number, total, earned, over = number + 1, 0.0, 0.0, (False, False)
                seen, _ = env.reset(seed=env_seed(9, table, number))
                continue
            assert not any(over)
            _, game_told, seat, decision, view, reward, mask, action = row
            assert (game_told, seat, decision, reward) == (number, 0, env.steps, [earned])
            observation, unpacked = _unpacked(game, view)
            np.testing.assert_array_equal(observation, seen["where"] if masks == "observation" else seen)
            assert mask == unpacked.tolist() == (env._mask().tolist() if masks != "none" else [True] * 3)
            seen, earned, *over, _ = env.step(action)
            total += earned
    assert outcomes == {Outcome.TERMINATED, Outcome.TRUNCATED}


@pytest.mark.parametrize("start", [0, 5])
def test_every_kind_of_observation_and_actions_of_several_parts(start: int) -> None:
    game = external("Mixed", start=start)
    assert game.spec.actions == 6
    assert game.spec.observation == 4 + 5 + 3 + 4 + 2 + 2
    env = envs.Mixed(start)
    with SerialArena(game, 1, seed=2) as arena:
        env.reset(seed=env_seed(2, 0, 0))
        step = arena.recv()
        space = env.observation_space
        for action in (0, 5, 3, 1):
            row = step.observation[0]
            at = 0
            for key in space.spaces:  # in the space's own order, each part as Gymnasium flattens it
                flat = gymnasium.spaces.flatten(space[key], env.last[key])
                np.testing.assert_allclose(row[at : at + len(flat)], flat)
                at += len(flat)
            chosen = np.array([action // 3, 1 + action % 3])
            _, reward, *_ = env.step(chosen)
            arena.send(np.array([action]))
            step = arena.recv()
            assert step.reward[0, 0] == reward


@pytest.mark.parametrize("mask_form", ["indices", "parts", "tuple"])
def test_masks_of_actions_with_several_parts(mask_form: str) -> None:
    from maple.games.external.spaces import actions_of, bind_mask

    actions = actions_of(gymnasium.spaces.MultiDiscrete([2, 3]), "it")
    out = np.zeros(6, np.bool_)
    parts = (np.array([True, False]), np.array([True, False, True]))
    whole = (parts[0][:, None] & parts[1]).reshape(-1)
    given = {"indices": whole, "parts": np.concatenate(parts), "tuple": parts}[mask_form]
    bind_mask(actions, out)(given)
    np.testing.assert_array_equal(out, whole)


@pytest.mark.parametrize("limit", [100, 3])
def test_an_aec_env_gives_every_seat_its_rewards(limit: int) -> None:
    game = external("Nim", limit=limit)
    assert (game.spec.seats, game.spec.actions, game.spec.observation) == (2, 3, 12 + 2)
    with SerialArena(game, 4, seed=3) as arena:
        trace = play(arena, game, 40)
    found = set()
    for rows in trace.values():
        seat_in_turn, sticks = 0, None
        for row in rows:
            if row[0] == "ended":
                _, _, outcome, length, score, reward, last = row
                found.add(outcome)
                if outcome == Outcome.TERMINATED:
                    assert sorted(score) == [-1.0, 1.0]
                    assert reward == [[score[0]], [score[1]]]
                else:
                    assert (length, score) == (limit, [0.0, 0.0])
                    for seat in range(2):
                        observation, mask = _unpacked(
                            game, np.frombuffer(last[0], np.uint64).reshape(2, -1)[seat].tobytes()
                        )
                        assert observation[sticks] == 1
                        assert mask.tolist() == [k <= sticks for k in (1, 2, 3)]
                        assert observation[12 + seat] == 1
                seat_in_turn, sticks = 0, None
                continue
            _, _, seat, _, view, _, mask, action = row
            observation, _ = _unpacked(game, view)
            assert seat == seat_in_turn
            assert observation[12 + seat] == 1
            now = int(observation[:12].argmax())
            assert sticks in (None, now)
            assert mask == [k <= now for k in (1, 2, 3)]
            sticks, seat_in_turn = now - 1 - action, 1 - seat
    assert found == ({Outcome.TERMINATED} if limit == 100 else {Outcome.TERMINATED, Outcome.TRUNCATED})


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_parallel_env_asks_all_seats_at_once(cut: bool, leaves: bool) -> None:
    game = external("Match", cut=cut, leaves=leaves)
    assert (game.spec.seats, game.spec.observation) == (2, 4 + 2)
    scores = np.zeros(2)
    with SerialArena(game, 2, seed=4) as arena:
        actions: dict[int, list[int]] = {0: [], 1: []}
        for round_number in range(9):
            step = arena.recv()
            over = round_number in (4, 8)
            assert len(step.ended.table) == (2 if over else 0)
            if over:
                calls = np.array(actions[0][-4:])
                agreed = (calls == np.array(actions[1][-4:])) if not leaves else None
                scores = step.ended.figures["score"][0]
                if agreed is not None:
                    assert scores.tolist() == [agreed.sum(), (~agreed).sum()]
                assert (step.ended.outcome == (Outcome.TRUNCATED if cut else Outcome.TERMINATED)).all()
                assert step.ended.last_view.any() == cut
            alone = leaves and round_number % 4 != 0
            assert step.keys.seat.tolist() == ([0, 0] if alone else [0, 1, 0, 1])
            action = np.arange(len(step.keys), dtype=np.int32) % 2 if round_number % 2 else np.ones(len(step.keys))
            at = step.keys.table == 0
            for seat, chosen in zip(step.keys.seat[at], action[at], strict=True):
                actions[int(seat)].append(int(chosen))
            arena.send(action)


@pytest.mark.parametrize(
    ("closes", "last"),
    [
        ("called", [[False, True, False], [True, False, True]]),  # what the game would have left open
        ("all", [[True, True, False], [True, True, True]]),
        ("unsaid", [[True, True, False], [True, True, True]]),
    ],
)
def test_a_seat_that_is_cut_off_keeps_its_own_mask(closes: str, last: list[list[bool]]) -> None:
    game = make_game(f"{ODD}:Closing", {"closes": closes})
    with SerialArena(game, 2, seed=4) as arena:  # type: ignore[arg-type]
        for action in ([1, 0, 1, 0], [0, 1, 0, 1]):
            assert len(arena.recv().ended.table) == 0
            arena.send(np.array(action, np.int32))
        ended = arena.recv().ended
        assert ended.outcome.tolist() == [Outcome.TRUNCATED] * 2
        for views in ended.last_view:
            assert [_unpacked(game, view.tobytes())[1].tolist() for view in views] == last  # type: ignore[arg-type]


def test_random_play_is_even_over_open_actions() -> None:
    game = external("Walk")
    view = np.zeros((3000, game.spec.view), np.uint64)
    game.plan.layout.mask_of(view)[:, [0, 2]] = True
    keys = Keys(
        np.arange(3000, dtype=np.int32), np.zeros(3000, np.int64), np.zeros(3000, np.int8), np.zeros(3000, np.int32)
    )
    action = np.zeros(3000, np.int32)
    game.bot("random")(view, 1, keys, action, 0, 3000)
    counts = np.bincount(action, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 1500) < 150


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("no.such.module:make", {}, "there is no module 'no.such.module'"),
        (f"{HERE}:Wolk", {}, "has no 'Wolk'; did you mean 'Walk'"),
        (f"{HERE}:HERE", {}, "has no 'HERE'"),
        (f"{HERE}:Walk", {"masks": "none", "wide": 3}, "cannot be made with masks='none', wide=3"),
        (f"{ODD}:no_env", {}, "makes a int; Maple plays gymnasium.Env"),
        (f"{ODD}:Continuous", {}, "has Box actions; Maple plays Discrete"),
        (f"{ODD}:Wide", {}, "has 8,000 combinations in its MultiDiscrete actions"),
        (f"{ODD}:Words", {}, "has observations of Text"),
        ("CartPol-v1", {}, "Gymnasium has no env 'CartPol-v1' registered; did you mean 'CartPole-v1'"),
    ],
)
def test_what_cannot_be_played_gets_a_sentence(name: str, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(GameError, match=re.escape(sentence)):
        make_game(name, arguments)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("shape", "gave an observation of shape (3,) instead of the declared (7,)"),
        ("nan", "gave the reward nan"),
        ("nan observation", "gave an observation that is not finite"),
        ("nan at the end", "gave an observation that is not finite"),
        ("no action", "left no action open"),
    ],
)
def test_a_broken_contract_names_the_step_and_the_seed(fault: str, sentence: str) -> None:
    game = external("Faulty", fault=fault, every=2)
    with SerialArena(game, 4, seed=1) as arena, pytest.raises(GameError) as caught:
        play(arena, game, 200)
    told = str(caught.value)
    assert f"Faulty {sentence} at step 2 after reset(seed=" in told
    seed = int(re.findall(r"seed=(\d+)", told)[0])
    assert seed % 2 == 0  # the seed of a game that fails


def test_a_first_observation_that_is_not_finite_is_told_at_once() -> None:
    game = make_game("tests.games.external.failing_envs:Stumble", {"fault": "nan", "every": 1})
    assert isinstance(game, ExternalGame)
    with (
        SerialArena(game, 4, seed=1) as arena,
        pytest.raises(GameError, match=r"not finite at step 0 after reset\(seed=\d+\)"),
    ):
        arena.recv()


def test_an_exception_loses_its_own_table_alone() -> None:
    game, told = external("Faulty", fault="raise"), []
    with SerialArena(game, 6, seed=1, log=told.append) as arena:
        trace = play(arena, game, 80)
    lost = [row for rows in trace.values() for row in rows if row[0] == "ended" and row[2] == Outcome.LOST]
    assert lost
    assert len(told) >= len(lost)
    assert "the walk fell into a hole" in told[0]
    for rows in trace.values():
        numbers = [row[1] for row in rows if row[0] == "ended"]
        assert numbers == list(range(len(numbers)))  # each game is told of once, and the next one follows


def test_an_env_that_always_fails_ends_the_run() -> None:
    game = external("Faulty", fault="raise", every=1)
    with (
        SerialArena(game, 2, seed=1, max_deaths=4) as arena,
        pytest.raises(GameError, match=r"failed 4 times at table \d without finishing a game, last with reset\(seed="),
    ):
        play(arena, game, 1000)


def test_lost_games_do_not_count_in_figures() -> None:
    game = external("Walk")
    figures = np.zeros(3, game.spec.figures)
    figures["how"] = [Outcome.TERMINATED, Outcome.LOST, Outcome.TRUNCATED]
    figures["score"][:, 0] = [4.0, 0.0, 8.0]
    figures["length"] = [2, 0, 6]
    assert game.summarize(figures, np.zeros(3, np.int64)) == {"return": 6.0, "length": 4.0, "truncated": 0.5}


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (["animals"], "has `entities` that Maple cannot read"),
        ([EntityGroup("a", 0, 7, 3)], "the entities 'a' of .* are not within its 20 numbers"),
        ([EntityGroup("a", 0, 2, 3, present=3)], "the entities 'a' of .* are not within"),
        ([EntityGroup("a", 0, 2, 3), EntityGroup("b", 5, 2, 3)], "the entities 'b' of .* share numbers"),
        ([EntityGroup("a", 0, 2, 3), EntityGroup("a", 6, 2, 3)], "two groups of `entities` of the same name"),
        ([EntityGroup("a", 0, 2, 3, actions=(6,))], "the entities 'a' of .* have actions beyond its 7"),
    ],
)
def test_entities_that_do_not_fit_get_a_sentence(groups: list[Any], sentence: str) -> None:
    env = envs.Herd()
    env.entities = groups
    with pytest.raises(GameError, match=sentence):
        examine(env, "herd")


def test_declared_entities_reach_the_spec() -> None:
    spec = make_game("tests.games.external.envs:Herd", {"most": 4}).spec
    assert [(group.name, group.end, group.pointing) for group in spec.entities] == [("animals", 14, [0, 1, 2, 3])]
    assert make_game("tests.games.external.envs:Walk").spec.entities == ()
