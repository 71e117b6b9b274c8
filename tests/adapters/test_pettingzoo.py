from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pettingzoo.test import api_test, seed_test

from maple.adapters import aec_env
from maple.adapters.pettingzoo import NativeAECEnv
from maple.arena.native import NativeArena
from maple.core.errors import ActionError, GameError
from maple.core.step import Outcome, Step
from maple.core.threads import Team
from maple.games import make_game

Rule = Callable[..., int]


# The first two are about dicts with a mask, which PettingZoo's own classic games also hand out under names it knows;
# the third is about seats whose game is over, which have nothing legal indeed.
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be")
@pytest.mark.filterwarnings("ignore:Action mask numpy array is all zeros")
def test_passes_the_api_test(options: dict[str, Any]) -> None:
    api_test(aec_env("ofc", **options), num_cycles=200)


def test_passes_the_seed_test(options: dict[str, Any]) -> None:
    seed_test(partial(aec_env, "ofc", **options), num_cycles=200)


def _same_decision(env: NativeAECEnv, step: Step) -> None:
    seat = int(step.keys.seat[0])
    assert env.agent_selection == f"seat_{seat}"
    seen, reward, terminated, truncated, _ = env.last()
    assert np.array_equal(seen["observation"], step.observation[0])
    assert np.array_equal(seen["action_mask"], step.mask[0])
    assert np.array_equal(seen["view"], step.view[0])
    assert reward == step.reward[0, 0]
    assert not terminated
    assert not truncated


def _same_end(env: NativeAECEnv, step: Step) -> None:
    cut = bool(step.ended.outcome[0] == Outcome.TRUNCATED)
    for seat, agent in enumerate(env.possible_agents):
        assert env.agent_selection == agent
        seen, reward, terminated, truncated, info = env.last()
        assert reward == step.ended.reward[0, seat, 0]
        assert (terminated, truncated) == (not cut, cut)
        assert info["figures"]["score"][seat] == step.ended.figures["score"][0, seat]
        assert info["figures"]["hands"] == step.ended.figures["hands"][0]
        if cut:
            assert np.array_equal(seen["view"], step.ended.last_view[0, seat])
            assert seen["action_mask"].any() == step.ended.last_view[0, seat].any()
        else:
            assert not seen["action_mask"].any()
        env.step(None)
    assert not env.agents


def _play_beside_the_arena(
    options: dict[str, Any], games: int, seed: int, choose: Callable[[NDArray[np.uint64], Step], int]
) -> list[tuple[int, int]]:
    """Play an AEC env and a NativeArena by the same rule; returns (outcome, hands) of each game."""
    env = aec_env("ofc", seed=seed, **options)
    env.reset()
    ends: list[tuple[int, int]] = []
    with Team(1) as team:
        arena = NativeArena(make_game("ofc", options), 1, seed, team)
        while len(ends) < games:
            step = arena.recv()
            if len(step.ended.table):
                _same_end(env, step)
                ends.append((int(step.ended.outcome[0]), int(step.ended.figures["hands"][0])))
                env.reset()
            _same_decision(env, step)
            action = choose(env.observe(env.agent_selection)["view"], step)
            arena.send(np.array([action]))
            env.step(action)
    return ends


def test_plays_the_games_of_the_native_arena(options: dict[str, Any], by_hash: Rule) -> None:
    _play_beside_the_arena(options, 12, 5, lambda view, step: by_hash(view, step.mask[0]))


@pytest.mark.parametrize(("hand_cap", "outcome"), [(20, Outcome.TERMINATED), (1, Outcome.TRUNCATED)])
def test_fantasyland_sessions_are_those_of_the_native_arena(hand_cap: int, outcome: Outcome, by_bot: Rule) -> None:
    game = make_game("ofc")
    ends = _play_beside_the_arena(
        {"hand_cap": hand_cap}, 800, 3, lambda view, step: by_bot(game, "safe", view, 3, step.keys)
    )
    if outcome == Outcome.TRUNCATED:
        assert (Outcome.TRUNCATED, 1) in ends
    else:
        assert {ended for ended, _ in ends} == {Outcome.TERMINATED}
        assert max(hands for _, hands in ends) > 1


@pytest.mark.parametrize(("seats", "games", "longest"), [(2, 100, 1), (3, 800, 2)])
def test_what_the_seats_earn_sums_to_zero_and_is_their_score(
    seats: int, games: int, longest: int, by_bot: Rule
) -> None:
    game = make_game("ofc", {"seats": seats})
    env = aec_env("ofc", seed=3, seats=seats, reward_scale=10)
    hands = []
    for _ in range(games):
        env.reset()
        earned = dict.fromkeys(env.possible_agents, 0.0)
        figures: dict[str, Any] = {}
        for agent in env.agent_iter():
            seen, reward, terminated, truncated, info = env.last()
            earned[agent] += reward
            figures = info.get("figures", {})
            over = terminated or truncated
            env.step(None if over else by_bot(game, "safe", seen["view"], 3, env._table.keys))
        assert sum(earned.values()) == pytest.approx(0, abs=1e-4)
        assert list(earned.values()) == pytest.approx([score / 10 for score in figures["score"]], abs=1e-4)
        hands.append(figures["hands"])
    assert max(hands) >= longest  # some went on in fantasyland


def test_a_bare_reset_deals_the_next_game_also_from_the_middle_of_one(by_hash: Rule) -> None:
    whole, broken = aec_env("ofc", seed=4), aec_env("ofc", seed=4)
    whole.reset()
    first = whole.observe(whole.agent_selection)["view"]
    for agent in whole.agent_iter():
        seen, _, terminated, truncated, _ = whole.last()
        whole.step(None if terminated or truncated else by_hash(seen["view"], seen["action_mask"]))
        del agent
    whole.reset()
    broken.reset()
    assert np.array_equal(broken.observe(broken.agent_selection)["view"], first)
    seen = broken.observe(broken.agent_selection)
    broken.step(by_hash(seen["view"], seen["action_mask"]))
    broken.reset()
    second = broken.observe(broken.agent_selection)["view"]
    assert broken.agent_selection == whole.agent_selection
    assert np.array_equal(second, whole.observe(whole.agent_selection)["view"])
    assert not np.array_equal(first, second)


def test_only_the_seat_in_turn_has_legal_actions(by_hash: Rule) -> None:
    env = aec_env("ofc", variant="regular")
    env.reset(seed=1)
    for _ in range(12):
        for agent in env.possible_agents:
            assert env.observe(agent)["action_mask"].any() == (agent == env.agent_selection)
        seen = env.observe(env.agent_selection)
        env.step(by_hash(seen["view"], seen["action_mask"]))


def test_the_first_game_is_dealt_before_any_reset() -> None:
    env = aec_env("ofc", seed=9)
    early = env.observe(env.agent_selection)["view"]
    env.reset()
    assert np.array_equal(env.observe(env.agent_selection)["view"], early)


def test_refuses_what_cannot_be_played() -> None:
    env = aec_env("ofc")
    env.reset()
    for wrong in (-1, 250, 270, 10**6):
        with pytest.raises(ActionError, match="not legal for seat 1 of ofc; choose one of the 232"):
            env.step(wrong)
    for wrong in (None, 1.5, "fold"):
        with pytest.raises(ActionError, match="is not an action"):
            env.step(wrong)
    env.step(np.int32(5))
    assert env.agent_selection == "seat_2"


def test_refuses_to_play_on_after_the_end(by_hash: Rule) -> None:
    env = aec_env("ofc", fantasyland="off")
    env.reset()
    while env.agents:
        seen, _, terminated, _, _ = env.last()
        env.step(None if terminated else by_hash(seen["view"], seen["action_mask"]))
    with pytest.raises(ActionError, match="the game is over"):
        env.step(0)


def test_refuses_unknown_options_seeds_and_modes() -> None:
    with pytest.raises(GameError, match="did you mean 'jokers'"):
        aec_env("ofc", joker=2)
    with pytest.raises(GameError, match="seed -1"):
        aec_env("ofc", seed=-1)
    with pytest.raises(GameError, match="render_mode 'human'"):
        aec_env("ofc", render_mode="human")


def test_shows_the_boards(by_hash: Rule) -> None:
    env = aec_env("ofc", seed=3, seats=2, fantasyland="off", render_mode="ansi")
    env.reset()
    text = env.render()
    assert text is not None
    assert text.splitlines()[:4] == [
        "seat_1:",
        "street   1",
        "me       .  .  .  | .  .  .  .  .  | .  .  .  .  .",
        "next     .  .  .  | .  .  .  .  .  | .  .  .  .  .",
    ]
    hand = text.splitlines()[4].removeprefix("hand     ").split()
    env.step(2 * (1 + 3 + 9 + 27 + 81))  # every card goes to the bottom
    assert f"next     .  .  .  | .  .  .  .  .  | {' '.join(hand)}" in env.render().splitlines()
    while not env.terminations["seat_0"]:
        seen = env.observe(env.agent_selection)
        env.step(by_hash(seen["view"], seen["action_mask"]))
    assert f"score: {env.infos['seat_0']['figures']['score']}" in env.render().splitlines()
    assert aec_env("ofc").render() is None
