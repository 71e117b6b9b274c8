"""Stable-Baselines3's PPO on an env of the user's own, masked where the env is, with Maple's network and recipe."""

from __future__ import annotations

from typing import Any

import torch

from maple.bench.peers.sb3_dqn import unmasked_envs
from maple.bench.peers.sb3_side import NEEDED, Sb3LearningSide
from maple.core.config import Config
from maple.core.errors import ConfigError, MissingExtraError
from maple.games import make_game
from maple.games.external.game import ExternalGame

__all__ = ["Sb3PpoSide", "ppo_recipe"]

ENVS = 8


def ppo_recipe(config: Config, envs: int) -> dict[str, Any]:
    """Horizon, epochs, minibatch, loss and optimizer of a run, in Stable-Baselines3's words."""
    c = config.ppo
    return {
        "learning_rate": config.optimizer.learning_rate,
        "n_steps": max(1, c.horizon // envs),
        "batch_size": c.minibatch,
        "n_epochs": c.epochs,
        "gamma": c.gamma,
        "gae_lambda": c.lam,
        "clip_range": c.clip,
        "ent_coef": c.entropy,
        "vf_coef": c.value_weight,
        "max_grad_norm": c.max_grad_norm,
        "normalize_advantage": c.normalize_advantage,
        "device": "cpu",
        "seed": config.seed,
    }


class Sb3PpoSide(Sb3LearningSide):
    """A PPO run that is measured in slices of whole updates: envs in this process, quick games' fastest way."""

    def __init__(self, config: Config) -> None:
        if config.net.core != "none" or config.net.attention:
            raise ConfigError("Stable-Baselines3's PPO has neither memory nor attention; for an LSTM: sb3-recurrent")
        try:
            from sb3_contrib import MaskablePPO
            from stable_baselines3 import PPO
            from stable_baselines3.common.vec_env import DummyVecEnv
        except ImportError:
            raise MissingExtraError(NEEDED) from None
        game = make_game(config.name, config.game)
        assert isinstance(game, ExternalGame)
        if game.plan.seats > 1 or game.plan.mask_from not in ("nowhere", "method"):
            raise ConfigError(
                f"Stable-Baselines3 plays envs with one seat and masks by action_masks(); {config.name} has others"
            )
        masked = game.plan.mask_from == "method"
        kind = MaskablePPO if masked else PPO
        recipe = ppo_recipe(config, ENVS)
        self.name = f"{kind.__name__}, DummyVecEnv({ENVS}), n_steps {recipe['n_steps']}, batch {config.ppo.minibatch}"
        activation = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[config.net.activation]
        network = {"net_arch": config.net.hidden, "activation_fn": activation}
        env = DummyVecEnv(unmasked_envs(config, ENVS))
        model = kind("MlpPolicy", env, policy_kwargs=network, **recipe)
        torch.set_num_threads(1)  # at this size its own threads only cost
        super().__init__(env, model, ENVS * recipe["n_steps"], config.ppo.epochs / config.ppo.minibatch)
        model.learn(ENVS * recipe["n_steps"], reset_num_timesteps=False)
