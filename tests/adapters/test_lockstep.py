"""Every kind of arena under Stable-Baselines3's VecEnv: the same games as elsewhere, lost ones told, resets real."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import is_masking_supported

import maple.sb3
from maple.adapters import gym_env
from maple.arena.seeds import env_seed
from maple.core.errors import ActionError, GameError, MapleError
from tests.games.external.envs import Walk

HERE = "tests.games.external.envs"


def _play(envs: maple.sb3.VecEnv, steps: int) -> list[Any]:
    """Play the first open actions; what was seen, earned and told."""
    seen = [envs.reset()]
    for _ in range(steps):
        masks = envs.action_masks()
        assert masks.any(axis=1).all()
        observation, reward, done, infos = envs.step(masks.argmax(axis=1))
        ended = [(i, info["episode"]["r"], info["episode"]["l"]) for i, info in enumerate(infos) if info]
        assert [i for i, _, _ in ended] == np.flatnonzero(done).tolist()
        seen.append((observation, masks, reward, ended))
    return seen


@pytest.mark.parametrize(
    ("game", "options", "opponents"),
    [
        ("ofc", {"seats": 3}, ["safe", "random"]),
        ("ofc", {"seats": 2, "fantasyland": "off"}, "safe"),
        ("wargame", {}, "greedy"),
    ],
)
def test_a_native_table_plays_as_gym_env_does(game: str, options: dict[str, Any], opponents: Any) -> None:
    envs = maple.sb3.VecEnv(game, envs=3, seed=6, opponents=opponents, **options)
    alone = gym_env(game, opponents, seed=6, **options)  # whose one table is the first of the three
    observation, (seen, _) = envs.reset(), alone.reset()
    games, earned, decisions = 0, 0.0, 0
    for _ in range(150):
        masks = envs.action_masks()
        np.testing.assert_array_equal(observation[0], seen)
        np.testing.assert_array_equal(masks[0], alone.action_masks())
        action = masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)
        observation, reward, done, infos = envs.step(action)
        seen, expected, terminated, truncated, _ = alone.step(action[0])
        assert reward[0] == np.float32(expected)
        assert done[0] == (terminated or truncated)
        earned, decisions = earned + expected, decisions + 1
        if done[0]:
            assert infos[0]["TimeLimit.truncated"] == truncated
            assert infos[0]["episode"]["l"] == decisions
            assert infos[0]["episode"]["r"] == pytest.approx(earned)
            if truncated:
                np.testing.assert_array_equal(infos[0]["terminal_observation"], seen)
            games, earned, decisions = games + 1, 0.0, 0
            seen, _ = alone.reset()
    assert games > (0 if game == "wargame" else 5)
    envs.close()


@pytest.mark.parametrize(("name", "workers"), [("Nim", 2), ("Match", 1)])
def test_tables_that_wait_for_others_are_held_in_workers_too(name: str, workers: int) -> None:
    played = []
    for count in (0, workers):
        envs = maple.sb3.VecEnv(f"{HERE}:{name}", envs=5, seed=2, workers=count)
        played.append(_play(envs, 30))
        envs.close()
    for here, there in zip(*played, strict=True):
        for one, other in zip(here, there, strict=True):
            np.testing.assert_array_equal(one, other)
    assert sum(len(ended) for _, _, _, ended in played[0][1:]) > 10


def test_battles_are_played_in_node() -> None:
    try:
        envs = maple.sb3.VecEnv("showdown", envs=3, seed=4, opponents="power")
        first = envs.reset()
    except MapleError as error:
        pytest.skip(str(error))
    ended = [told for _, _, _, told in _play(envs, 80)[1:] if told]
    assert ended
    again = envs.reset()
    assert again.shape == first.shape
    envs.close()


def test_maskable_ppo_trains_on_a_native_game() -> None:
    envs = maple.sb3.VecEnv("ofc", envs=8, opponents="safe", seats=2)
    assert is_masking_supported(envs)
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, seed=1, device="cpu")
    model.learn(512)
    assert model.num_timesteps >= 512
    assert len(model.ep_info_buffer) > 5
    rewards, lengths = evaluate_policy(model, envs, n_eval_episodes=12, return_episode_rewards=True, warn=False)
    assert len(rewards) == len(lengths) == 12
    assert min(lengths) >= 5  # whole games, from their first decision on
    envs.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_reset_begins_the_next_games(workers: int) -> None:
    envs, alone = maple.sb3.VecEnv(f"{HERE}:Walk", envs=2, seed=4, workers=workers), Walk()
    first = envs.reset()
    np.testing.assert_array_equal(envs.reset(), first)  # nothing was played
    envs.step(np.ones(2, np.int64))  # which ends no game
    seen = envs.reset()
    for table in range(2):
        expected, _ = alone.reset(seed=env_seed(4, table, 1))
        np.testing.assert_array_equal(seen[table], expected)
        np.testing.assert_array_equal(envs.action_masks()[table], alone.action_masks())
    envs.close()


@pytest.mark.parametrize("game", ["ofc", "wargame"])
def test_a_reset_of_a_native_game_leaves_no_game_half_played(game: str) -> None:
    envs = maple.sb3.VecEnv(game, envs=4, seed=1)
    first = envs.reset()
    for _ in range(2):
        envs.step(envs.action_masks().argmax(axis=1))
    again = envs.reset()
    assert (again != first).any(axis=1).all()
    played = [info["episode"]["l"] for step in range(400) for info in _stepped(envs) if info]
    assert min(played) >= 5
    envs.close()


def _stepped(envs: maple.sb3.VecEnv) -> list[dict[str, Any]]:
    return envs.step(envs.action_masks().argmax(axis=1))[3]  # type: ignore[no-any-return]


def test_lost_games_are_told() -> None:
    envs = maple.sb3.VecEnv(f"{HERE}:Faulty", envs=2, workers=1, fault="exit", every=5)
    envs.reset()
    told = [info for _ in range(40) for info in _stepped(envs) if info]
    assert {info["lost"] for info in told} == {True, False}
    assert not any(info["TimeLimit.truncated"] for info in told if info["lost"])
    envs.close()


@pytest.mark.parametrize(
    ("game", "arguments", "sentence"),
    [
        ("ofc", {"opponents": "sfae"}, "ofc has no opponent 'sfae'; did you mean 'safe'"),
        ("ofc", {"opponents": ["safe"]}, "1 opponents were given; ofc has 2 seats beside the learner's"),
        ("ofc", {"workers": 2}, "workers play envs of your own; ofc is played by threads or Node"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(game: str, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(GameError, match=sentence):
        maple.sb3.VecEnv(game, **arguments)


def test_an_illegal_action_gets_a_sentence() -> None:
    envs = maple.sb3.VecEnv("ofc", envs=2)
    envs.reset()
    with pytest.raises(ActionError, match="is not legal"):
        envs.step((~envs.action_masks()).argmax(axis=1))
    envs.close()
