from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from maple.adapters import gym_env
from maple.adapters.gymnasium import NativeGymEnv
from maple.arena.native import NativeArena
from maple.core.errors import ActionError, GameError
from maple.core.step import Ended, Outcome, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game

Rule = Callable[..., int]


class Forgiving(NativeGymEnv):
    """Takes any index, as the checker knows no masks: the legal action that it comes to, counted round."""

    def __init__(self, **options: Any) -> None:
        super().__init__(make_game("ofc", options), "random", 0, None)

    def step(self, action: Any) -> Any:
        legal = np.flatnonzero(self.action_masks())
        return super().step(legal[action % len(legal)])


@pytest.fixture
def registered() -> Iterator[str]:
    """A name that gymnasium.make knows, since the checker checks more of an env that has a spec."""
    gymnasium.register("maple/Forgiving-v0", entry_point=Forgiving)
    yield "maple/Forgiving-v0"
    del gymnasium.registry["maple/Forgiving-v0"]


def test_passes_the_checker(registered: str, options: dict[str, Any]) -> None:
    check_env(gymnasium.make(registered, **options).unwrapped)


def _same_end(env: NativeGymEnv, arena: NativeArena, ended: Ended, stepped: tuple[Any, ...]) -> None:
    observation, reward, terminated, truncated, info = stepped
    cut = bool(ended.outcome[0] == Outcome.TRUNCATED)
    left_with = ended.last_view[:, env.seat]  # a row if the game was cut off
    assert reward == ended.reward[0, env.seat, 0]
    assert (terminated, truncated) == (not cut, cut)
    assert info["figures"]["score"] == ended.figures["score"][0, : arena.spec.seats].tolist()
    assert np.array_equal(info["action_mask"], env.action_masks())
    if cut and left_with.any():
        expected, mask = np.zeros((1, arena.spec.observation), np.uint8), np.zeros((1, arena.spec.actions), np.bool_)
        arena.game.observe(left_with, expected, mask, 0, 1)
        assert np.array_equal(observation, expected[0])
        assert np.array_equal(info["action_mask"], mask[0])
    else:
        assert not info["action_mask"].any()
        assert observation.any() != cut


def _same_decision(env: NativeGymEnv, step: Step, stepped: tuple[Any, ...]) -> None:
    observation, reward, terminated, truncated, info = stepped
    assert not terminated
    assert not truncated
    assert reward == step.reward[0, 0]
    assert np.array_equal(observation, step.observation[0])
    assert np.array_equal(info["action_mask"], step.mask[0])
    assert np.array_equal(env.action_masks(), step.mask[0])


def _play_beside_the_arena(
    env: NativeGymEnv, game: Game, seed: int, games: int, choose: Callable[[int, Step], int]
) -> list[tuple[int, int]]:
    """Play a gym env and a NativeArena by `choose(player, step)`, where player 0 is the learner and the others count
    from it; returns (outcome, hands) of each game."""
    observation, info = env.reset()
    stepped: tuple[Any, ...] = (observation, 0.0, False, False, info)
    ends: list[tuple[int, int]] = []
    with Team(1) as team:
        arena = NativeArena(game, 1, seed, team)
        while len(ends) < games:
            step = arena.recv()
            if len(step.ended.table):
                _same_end(env, arena, step.ended, stepped)
                ends.append((int(step.ended.outcome[0]), int(step.ended.figures["hands"][0])))
                observation, info = env.reset()
                assert info["seat"] == env.seat
                stepped = (observation, 0.0, False, False, info)
            player = (int(step.keys.seat[0]) - env.seat) % game.spec.seats
            action = choose(player, step)
            if player == 0:
                _same_decision(env, step, stepped)
                stepped = env.step(action)
            arena.send(np.array([action]))
    return ends


@pytest.mark.parametrize("seat", [None, 0, 2])
@pytest.mark.parametrize("bots", [["random", "random"], ["safe", "random"]], ids=str)
def test_plays_the_games_of_the_native_arena(seat: int | None, bots: list[str], by_hash: Rule, by_bot: Rule) -> None:
    game = make_game("ofc")

    def choose(player: int, step: Step) -> int:
        if player == 0:
            return by_hash(step.view[0], step.mask[0])
        return by_bot(game, bots[player - 1], step.view[0], 11, step.keys)

    _play_beside_the_arena(gym_env("ofc", bots, 11, seat=seat), game, 11, 30, choose)


def test_plays_the_games_of_the_native_arena_with_options(options: dict[str, Any], by_hash: Rule, by_bot: Rule) -> None:
    game = make_game("ofc", options)

    def choose(player: int, step: Step) -> int:
        if player == 0:
            return by_hash(step.view[0], step.mask[0])
        return by_bot(game, "random", step.view[0], 0, step.keys)

    _play_beside_the_arena(gym_env("ofc", **options), game, 0, 12, choose)


@pytest.mark.parametrize(("hand_cap", "outcome", "hands"), [(20, Outcome.TERMINATED, 2), (1, Outcome.TRUNCATED, 1)])
def test_fantasyland_sessions_are_those_of_the_native_arena(
    hand_cap: int, outcome: Outcome, hands: int, by_bot: Rule
) -> None:
    game = make_game("ofc", {"hand_cap": hand_cap})
    env = gym_env("ofc", "safe", 3, hand_cap=hand_cap)
    ends = _play_beside_the_arena(
        env, game, 3, 800, lambda player, step: by_bot(game, "safe", step.view[0], 3, step.keys)
    )
    assert (outcome, hands) in ends


def test_opponents_may_be_objects_and_functions(by_hash: Rule) -> None:
    """A table where everyone plays the same rule, given in three ways."""

    class Player:
        def act(self, observed: dict[str, Any]) -> int:
            return by_hash(observed["view"], observed["action_mask"])

    game = make_game("ofc")
    env = gym_env("ofc", [Player(), lambda seen: np.int64(by_hash(seen["view"], seen["action_mask"]))], 2)
    _play_beside_the_arena(env, game, 2, 12, lambda player, step: by_hash(step.view[0], step.mask[0]))


@pytest.mark.parametrize("seats", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_learner_comes_to_every_seat_and_every_place_behind_the_button(seats: int, seed: int) -> None:
    env = gym_env("ofc", seed=seed, seats=seats)
    places = Counter()
    for number in range(seats * seats):
        env.reset()
        assert env._table.game_number == number
        button = number % seats
        places[env.seat, (env.seat - button) % seats] += 1
    assert places == {(seat, place): 1 for seat in range(seats) for place in range(seats)}


def test_the_same_seed_deals_the_same_game_and_a_bare_reset_the_next() -> None:
    env = gym_env("ofc")
    first, _ = env.reset(seed=8)
    second, _ = env.reset()
    again, _ = gym_env("ofc", seed=8).reset()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert np.array_equal(env.reset(seed=8)[0], first)
    assert np.array_equal(env.reset()[0], second)


def test_keeps_what_it_handed_out() -> None:
    env = gym_env("ofc")
    observation, info = env.reset()
    kept, mask = observation.copy(), info["action_mask"].copy()
    env.step(int(info["action_mask"].argmax()))
    assert np.array_equal(observation, kept)
    assert np.array_equal(info["action_mask"], mask)


def test_refuses_what_cannot_be_played() -> None:
    env = gym_env("ofc", seat=0)
    with pytest.raises(ActionError, match="call reset"):
        env.step(0)
    env.reset()
    for wrong in (-1, 250, 270):
        with pytest.raises(ActionError, match="not legal for seat 0 of ofc; choose one of the 232"):
            env.step(wrong)
    with pytest.raises(ActionError, match="is not an action"):
        env.step(0.5)
    env.step(int(env.action_masks().argmax()))


def test_refuses_an_opponent_that_breaks_the_rules() -> None:
    env = gym_env("ofc", lambda observed: 0, seat=0)
    with pytest.raises(ActionError, match="not legal for seat 1"):
        env.reset()


def test_refuses_wrong_opponents_and_seats() -> None:
    with pytest.raises(GameError, match="did you mean 'random'"):
        gym_env("ofc", "randon")
    with pytest.raises(GameError, match="1 opponents were given; ofc has 2 seats"):
        gym_env("ofc", ["random"])
    with pytest.raises(GameError, match="seats 0 to 1"):
        gym_env("ofc", seat=2, seats=2)
    with pytest.raises(GameError, match="is no opponent"):
        gym_env("ofc", 7)


def test_an_env_brings_no_torch_into_its_process() -> None:
    code = "import sys, maple.adapters; maple.adapters.gym_env('ofc').reset(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
