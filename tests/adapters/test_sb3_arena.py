"""Maple's arenas under Stable-Baselines3, and its policies under Maple."""

from __future__ import annotations

import pickle
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN

import maple.sb3
from maple.adapters import gym_env
from maple.arena.seeds import env_seed
from maple.core.errors import CheckpointError, ConfigError
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


class _Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.mark, "run")


def _saved(path: Path, policy: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.pth", policy)
    return path


def _pickled(content: Any) -> bytes:
    file = BytesIO()
    torch.save(content, file)
    return file.getvalue()


def test_code_in_a_model_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for number, policy in enumerate((_pickled({"w": _Hostile(mark)}), pickle.dumps(_Hostile(mark), 2))):
        hostile = _saved(tmp_path / f"{number}.zip", policy)
        with pytest.raises(CheckpointError, match="holds more than weights, such as code, and was not loaded") as told:
            maple.sb3.load(hostile)
        assert "weights_only" not in str(told.value)
    assert not mark.exists()
    torch.load(BytesIO(_pickled({"w": _Hostile(mark)})), weights_only=False)
    assert mark.exists()  # it is hostile indeed


def _actor(**shapes: tuple[int, ...]) -> dict[str, torch.Tensor]:
    usual = {"0.weight": (8, 4), "0.bias": (8,), "out.weight": (3, 8), "out.bias": (3,)} | shapes
    names = {"0": "mlp_extractor.policy_net.0", "out": "action_net"}
    return {f"{names[k.split('.')[0]]}.{k.split('.')[1]}": torch.zeros(shape) for k, shape in usual.items()}


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (b"no model at all", "is damaged or holds more than weights"),
        (_pickled(_actor())[:-40], "cannot be read as a model of Stable-Baselines3"),
        (b"", "cannot be read as a model of Stable-Baselines3"),
        (_pickled([1, 2]), "is no list of weights"),
        (_pickled({"action_net.weight": 3}), "is no list of weights"),
        (_pickled({}), "holds no MlpPolicy with an actor"),
        (_pickled(_actor(**{"out.weight": (3, 9)})), "do not fit together at action_net"),
        (_pickled(_actor(**{"0.weight": (8,)})), "do not fit together at mlp_extractor.policy_net.0"),
        (_pickled(_actor(**{"out.bias": (4,)})), "do not fit together at action_net"),
    ],
)
def test_an_odd_model_gets_a_sentence(tmp_path: Path, policy: bytes, sentence: str) -> None:
    with pytest.raises(CheckpointError, match=sentence):
        maple.sb3.load(_saved(tmp_path / "odd.zip", policy))


def test_an_unknown_activation_gets_a_sentence(tmp_path: Path) -> None:
    path = _saved(tmp_path / "fine.zip", _pickled(_actor()))
    assert maple.sb3.load(path).observation == 4
    with pytest.raises(ConfigError, match="there is no activation 'gelu'; give tanh or relu"):
        maple.sb3.load(path, "gelu")  # type: ignore[arg-type]


def test_a_loaded_policy_sits_opposite(tmp_path: Path) -> None:
    MaskablePPO("MlpPolicy", gym_env("ofc"), n_steps=8, batch_size=8, device="cpu").save(tmp_path / "old")
    old = maple.sb3.load(tmp_path / "old")
    env = gym_env("ofc", opponents=old)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(info["action_mask"].argmax())
            over = terminated or truncated
        assert "figures" in info


def test_games_of_several_seats_may_go_through_gym_env() -> None:
    envs = maple.sb3.VecEnv("maple.adapters:gym_env", envs=2, workers=0, game_name="ofc", seats=2)
    assert envs.reset().dtype == np.uint8
    masks = envs.action_masks()
    assert masks.shape == (2, make_game("ofc").spec.actions)
    envs.step(masks.argmax(axis=1))
    envs.close()
