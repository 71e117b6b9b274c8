"""Stable-Baselines3's DQN on the same game, with the same network, batch, replay and updates for each decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch

from maple.adapters import gym_env
from maple.bench.peers.sb3_side import NEEDED, Sb3LearningSide
from maple.core.config import Config
from maple.core.errors import ConfigError, MissingExtraError
from maple.games import is_external, make_game
from maple.games.bridged import Bridged
from maple.games.external.locate import make_env
from maple.training.build import AUTO_TABLES

__all__ = ["Sb3DqnSide", "refuse_bridged", "unmasked_envs"]

ENVS = 4
SLICE = 256  # steps between two looks at the clock


class _AnyAction(gymnasium.Wrapper):
    """Neither SB3's DQN nor RecurrentPPO knows masks: an action that is not legal becomes one that is."""

    def step(self, action: Any) -> Any:
        """Play the action, or the legal one that takes its place."""
        legal = np.flatnonzero(self.unwrapped.action_masks())  # type: ignore[attr-defined]
        return self.env.step(int(action) if action in legal else int(legal[int(action) % len(legal)]))


def _masked_env(config: Config, number: int) -> gymnasium.Env[Any, Any]:
    return _AnyAction(gym_env(config.name, opponents="random", seed=config.seed + number, **config.game))


def unmasked_envs(config: Config, count: int) -> list[Callable[[], Any]]:
    """What makes the game's envs for an algorithm that knows no masks."""
    if is_external(config.name):
        return [partial(make_env, config.name, config.game)] * count
    return [partial(_masked_env, config, number) for number in range(count)]


def refuse_bridged(config: Config) -> None:
    """Say so where a game is played in another program: only MaskablePPO can be measured on its masks."""
    if not is_external(config.name) and isinstance(make_game(config.name, config.game), Bridged):
        raise ConfigError(
            f"Stable-Baselines3's DQN and RecurrentPPO cannot be measured on {config.name}, which is played in another "
            "program and has masks; its MaskablePPO can: --algo ppo --peer sb3"
        )


class Sb3DqnSide(Sb3LearningSide):
    """A DQN run that is measured in slices: envs in this process, which for quick games is SB3's fastest way."""

    def __init__(self, config: Config) -> None:
        try:
            from stable_baselines3 import DQN
            from stable_baselines3.common.vec_env import DummyVecEnv
        except ImportError:
            raise MissingExtraError(NEEDED) from None
        c = config.dqn
        ratio = c.updates_per_step / (c.train_every or config.tables or AUTO_TABLES) * ENVS
        every, updates = max(1, round(1 / ratio)), max(1, round(ratio))
        self.name = f"stable-baselines3 DQN, DummyVecEnv({ENVS}), {updates} updates every {every} steps of them"
        env = DummyVecEnv(unmasked_envs(config, ENVS))
        activation = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[config.net.activation]
        model = DQN(
            "MlpPolicy",
            env,
            learning_rate=config.optimizer.learning_rate,
            buffer_size=c.capacity,
            learning_starts=c.warmup,
            batch_size=c.minibatch,
            tau=c.tau,
            gamma=c.gamma,
            train_freq=(every, "step"),
            gradient_steps=updates,
            target_update_interval=max(ENVS, round(c.target_every * ENVS / ratio)),  # in steps, not in updates
            max_grad_norm=c.max_grad_norm,
            policy_kwargs={"net_arch": config.net.hidden, "activation_fn": activation},
            device="cpu",
            seed=config.seed,
        )
        torch.set_num_threads(1)  # at this size its own threads only cost
        super().__init__(env, model, SLICE * ENVS)
        model.learn(c.warmup + SLICE, reset_num_timesteps=False)
