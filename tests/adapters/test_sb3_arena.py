"""Maple's arenas under Stable-Baselines3, and its policies under Maple."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN

import maple.sb3
from maple.arena.host import env_seed
from maple.core.errors import CheckpointError, GameError
from maple.games import make_game
from tests.games.external.envs import Walk

WALK = "tests.games.external.envs:Walk"


def test_a_vec_env_gives_what_the_env_gives() -> None:
    envs = maple.sb3.VecEnv(WALK, envs=3, seed=4, workers=0)
    alone = Walk()
    seen, _ = alone.reset(seed=env_seed(4, 1, 0))
    observation, game, cuts = envs.reset(), 0, 0
    for _ in range(60):
        np.testing.assert_array_equal(observation[1], seen)
        masks = get_action_masks(envs)
        np.testing.assert_array_equal(masks[1], alone.action_masks())
        action = masks[:, ::-1].argmax(axis=1)
        action = np.where(np.arange(3) == 1, 2 * (alone.steps % 2), 2 - action)
        observation, reward, done, infos = envs.step(action)
        seen, expected, terminated, truncated, _ = alone.step(int(action[1]))
        assert reward[1] == expected
        assert done[1] == (terminated or truncated)
        if done[1]:
            assert infos[1]["TimeLimit.truncated"] == truncated
            assert infos[1]["episode"]["l"] == alone.steps
            if truncated:
                cuts += 1
                np.testing.assert_array_equal(infos[1]["terminal_observation"], seen)
            game += 1
            seen, _ = alone.reset(seed=env_seed(4, 1, game))
    assert game > 2
    assert cuts
    envs.close()


def test_maskable_ppo_trains_through_workers(tmp_path: Path) -> None:
    envs = maple.sb3.VecEnv(WALK, envs=4, workers=2)
    assert is_masking_supported(envs)
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=2, seed=1, device="cpu")
    model.learn(256)
    assert model.num_timesteps >= 256
    model.save(tmp_path / "walker")
    masks = get_action_masks(envs)
    observation = envs.reset()
    expected, _ = model.predict(observation, action_masks=masks, deterministic=True)
    agent = maple.sb3.load(tmp_path / "walker")
    np.testing.assert_array_equal(agent.choose(observation, masks), expected)
    assert agent.act({"observation": observation[0], "action_mask": masks[0]}) == expected[0]
    envs.close()


def test_what_is_no_policy_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read as a model of Stable-Baselines3"):
        maple.sb3.load(tmp_path / "nothing")
    DQN("MlpPolicy", "CartPole-v1", device="cpu", buffer_size=10).save(tmp_path / "dqn")
    with pytest.raises(CheckpointError, match="holds no MlpPolicy with an actor"):
        maple.sb3.load(tmp_path / "dqn")


def test_games_of_several_seats_go_through_gym_env() -> None:
    with pytest.raises(GameError, match="is no env with one seat"):
        maple.sb3.VecEnv("tests.games.external.envs:Nim")
    envs = maple.sb3.VecEnv("maple.adapters:gym_env", envs=2, workers=0, game_name="ofc", seats=2)
    assert envs.reset().dtype == np.uint8
    masks = envs.action_masks()
    assert masks.shape == (2, make_game("ofc").spec.actions)
    envs.step(masks.argmax(axis=1))
    envs.close()
