"""Learners: a policy, its optimizer, and how its settings move over the budget."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maple.core.config import Config
from maple.learn.afterstate import AfterstateRecipe, afterstate_update
from maple.learn.descent import Descent
from maple.learn.ppo import PpoRecipe, ppo_update
from maple.learn.rollout import Batch
from maple.nets.policy import IndexPolicy, OptionPolicy, OptionValue
from maple.nets.seen import Seen

__all__ = [
    "AfterstateLearner",
    "Net",
    "PpoLearner",
    "frozen_copy",
    "load_weights",
    "make_policy",
    "weights_of",
]

Net = IndexPolicy | OptionPolicy | OptionValue


def make_policy(config: Config, seen: Seen, device: torch.device) -> Net:
    """The network that the config asks for, freshly initialised from the run's seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net: Net
        if config.algo == "afterstate":
            net = OptionValue(seen, config.net.hidden, config.afterstate.caution)
        elif config.ppo.policy == "options":
            net = OptionPolicy(seen, config.net.hidden)
        else:
            net = IndexPolicy(seen, config.net.hidden, config.net.activation)
    return net.to(device)


def _between(first: float, last: float, progress: float) -> float:
    return first + (last - first) * progress


class Schedule:
    """A learning rate that falls over the budget."""

    def __init__(self, net: Net, config: Config) -> None:
        self._config = config.optimizer
        self.descent = Descent(net, net.seen.team, config.optimizer.learning_rate, config.optimizer.eps)

    def at(self, progress: float) -> Descent:
        """The descent at the rate that is due."""
        first = self._config.learning_rate
        last = first * self._config.final_fraction if self._config.schedule == "linear" else first
        self.descent.learning_rate = _between(first, last, progress)
        return self.descent


class AfterstateLearner:
    """Values of what options lead to."""

    def __init__(self, net: OptionValue, config: Config) -> None:
        self.policy = net
        self.schedule = Schedule(net, config)
        self._seed = config.seed
        self._config = config.afterstate
        net.epsilon, net.temperature = config.afterstate.epsilon, config.afterstate.temperature

    def update(self, batch: Batch, number: int, progress: float) -> dict[str, float]:
        """One pass of regression on the targets."""
        c = self._config
        recipe = AfterstateRecipe(c.gamma, c.lam, c.epochs, c.minibatch)
        return afterstate_update(self.policy, self.schedule.at(progress), batch, recipe, self._seed, number)


class PpoLearner:
    """Masked PPO."""

    def __init__(self, net: IndexPolicy | OptionPolicy, config: Config) -> None:
        self.policy = net
        self.schedule = Schedule(net, config)
        self._seed = config.seed
        self._config = config.ppo

    def update(self, batch: Batch, number: int, progress: float) -> dict[str, float]:
        """Epochs of clipped updates."""
        c = self._config
        recipe = PpoRecipe(
            gamma=c.gamma,
            lam=c.lam,
            epochs=c.epochs,
            minibatch=c.minibatch,
            clip=c.clip,
            entropy=_between(c.entropy, c.entropy_final, progress),
            value_weight=c.value_weight,
            max_grad_norm=c.max_grad_norm,
            normalize=c.normalize_advantage,
            clip_value=c.clip_value,
            target_kl=c.target_kl,
            augment=c.augment,
        )
        return ppo_update(self.policy, self.schedule.at(progress), batch, recipe, self._seed, number)


def frozen_copy(net: Net) -> Net:
    """A copy that shares the encoder and its team but no weights."""
    seen, team = net.seen, net.seen.team
    copy = deepcopy(net, {id(seen): seen, id(team): team})
    return copy.requires_grad_(False)


def weights_of(net: nn.Module) -> dict[str, NDArray[Any]]:
    """A network's weights by name."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in net.state_dict().items()}


def load_weights(net: nn.Module, weights: dict[str, NDArray[Any]]) -> None:
    """Put weights into a network of the same shape."""
    net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
