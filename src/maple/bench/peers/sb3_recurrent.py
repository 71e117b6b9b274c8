"""sb3-contrib's RecurrentPPO on the same game, with the same network and recipe, as far as it has them."""

from __future__ import annotations

from typing import Any

import torch

from maple.bench.peers.sb3_dqn import unmasked_envs
from maple.bench.peers.sb3_ppo import ENVS, ppo_recipe
from maple.bench.peers.sb3_side import NEEDED, Sb3LearningSide
from maple.core.config import Config
from maple.core.errors import ConfigError, MissingExtraError

__all__ = ["Sb3RecurrentSide"]


class Sb3RecurrentSide(Sb3LearningSide):
    """A RecurrentPPO run that is measured in slices of whole updates: envs in this process, quick games' fastest way.

    One LSTM after a first layer, shared by policy and value, as Maple has it; horizon, epochs, minibatch and the
    optimizer's settings are Maple's. It knows no masks.
    """

    def __init__(self, config: Config) -> None:
        if config.net.core != "lstm" or config.net.attention or config.algo != "ppo":
            raise ConfigError("RecurrentPPO has an LSTM and no attention; measure it with --set net.core=lstm")
        try:
            from sb3_contrib import RecurrentPPO
            from stable_baselines3.common.vec_env import DummyVecEnv
        except ImportError:
            raise MissingExtraError(NEEDED) from None
        net, recipe = config.net, ppo_recipe(config, ENVS)
        steps = ENVS * recipe["n_steps"]
        batch = f"n_steps {recipe['n_steps']}, batch {config.ppo.minibatch}"
        self.name = f"sb3-contrib RecurrentPPO, DummyVecEnv({ENVS}), {batch}"
        env = DummyVecEnv(unmasked_envs(config, ENVS))
        network = _same_network(net.hidden, net.activation, net.core_width)
        model = RecurrentPPO("MlpLstmPolicy", env, policy_kwargs=network, **recipe)
        torch.set_num_threads(1)  # at this size its own threads only cost
        super().__init__(env, model, steps, config.ppo.epochs / config.ppo.minibatch)
        model.learn(steps, reset_num_timesteps=False)


def _same_network(hidden: list[int], activation: str, core_width: int) -> dict[str, Any]:
    """A first layer, one LSTM, and a tower each for policy and value."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    kind = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[activation]

    class FirstLayer(BaseFeaturesExtractor):  # type: ignore[misc]
        def __init__(self, space: Any) -> None:
            super().__init__(space, hidden[0])
            self.layer = torch.nn.Sequential(torch.nn.Linear(space.shape[0], hidden[0]), kind())

        def forward(self, observation: torch.Tensor) -> Any:
            return self.layer(observation.float())

    return {
        "features_extractor_class": FirstLayer,
        "lstm_hidden_size": core_width,
        "shared_lstm": True,
        "enable_critic_lstm": False,
        "net_arch": {"pi": hidden[1:], "vf": hidden[1:]},
        "activation_fn": kind,
    }
