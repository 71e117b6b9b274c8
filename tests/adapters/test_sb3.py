from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from maple.adapters import gym_env

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv


def _learn_and_predict(envs: VecEnv, steps: int) -> None:
    """Train, then play: every action that the model predicts must be legal, or the envs refuse it."""
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu")
    model.learn(steps)
    assert model.num_timesteps >= steps
    envs.seed(5)
    observation = envs.reset()
    finished = 0
    for _ in range(24):
        masks = get_action_masks(envs)
        action, _ = model.predict(observation, action_masks=masks)
        assert masks[np.arange(envs.num_envs), action].all()
        observation, _, done, infos = envs.step(action)
        finished += int(done.sum())
        for ended, info in zip(done, infos, strict=True):
            assert ("figures" in info) == ended
    assert finished >= 2 * envs.num_envs


@pytest.mark.parametrize("seats", [2, 3])
def test_maskable_ppo_trains_in_this_process(seats: int) -> None:
    with_seeds = [partial(gym_env, "ofc", seed=seed, seats=seats) for seed in range(4)]
    envs = DummyVecEnv(with_seeds)
    _learn_and_predict(envs, 256)
    envs.close()


def test_maskable_ppo_trains_over_worker_processes() -> None:
    envs = SubprocVecEnv([partial(gym_env, "ofc", "safe", seed) for seed in range(2)])
    _learn_and_predict(envs, 64)
    envs.close()


def test_maskable_ppo_plays_a_bare_env() -> None:
    env = gym_env("ofc")
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=32, device="cpu")
    observation, _ = env.reset()
    over = False
    while not over:
        mask = env.action_masks()
        action, _ = model.predict(observation, action_masks=mask)
        assert mask[action]
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
