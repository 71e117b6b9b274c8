"""Learners: a policy, its optimizer, and how its settings move over the budget."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maple.core.config import Config
from maple.learn.afterstate import AfterstateRecipe, afterstate_update
from maple.learn.ahead import Ahead
from maple.learn.descent import Descent
from maple.learn.dqn import DqnRecipe, Pupil, dqn_round, has_kernel
from maple.learn.ppo import PpoRecipe, ppo_update
from maple.learn.replay import Replay
from maple.learn.rollout import Rollout
from maple.learn.sequence_dqn import sequence_round
from maple.learn.sequence_ppo import sequence_update
from maple.nets.accelerate import compile_like
from maple.nets.body import Shape
from maple.nets.entities import Attention
from maple.nets.flat import FlatWeights
from maple.nets.noisy import renew_noise, silence
from maple.nets.policy import IndexPolicy, OptionPolicy, OptionValue
from maple.nets.q import IndexQ, OptionQ
from maple.nets.seen import Seen
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.nets.sequence_q import OptionSequenceQ, RecurrentQ, SequenceQ

__all__ = [
    "AfterstateLearner",
    "DqnLearner",
    "Learner",
    "Net",
    "PpoLearner",
    "frozen_copy",
    "learns_in_kernels",
    "load_weights",
    "make_policy",
    "weights_of",
]

Net = IndexPolicy | OptionPolicy | OptionValue | IndexQ | OptionQ | SequencePolicy | OptionSequencePolicy | RecurrentQ
N = TypeVar("N", bound=Net)


def make_policy(config: Config, seen: Seen, device: torch.device) -> Net:
    """The network that the config asks for, freshly initialised from the run's seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net: Net
        if config.algo == "afterstate":
            net = OptionValue(seen, config.net.hidden, config.afterstate.caution)
        elif config.algo == "dqn":
            net = _make_q(config, seen)
        elif not config.net.plain:
            kind = SequencePolicy if config.by_index else OptionSequencePolicy
            net = kind(seen, config.net.hidden, _shape(config))
        elif config.by_index:
            net = IndexPolicy(seen, config.net.hidden, config.net.activation)
        else:
            net = OptionPolicy(seen, config.net.hidden)
    return net.to(device)


def _shape(config: Config) -> Shape:
    """What a network that attends or remembers is made of; networks over options have rectifiers throughout."""
    c = config.net
    attention = Attention(c.attention_width, c.attention_heads, c.attention_blocks) if c.attention else None
    return Shape(c.hidden[0], c.activation if config.by_index else "relu", c.core, c.core_width, attention)


def _make_q(config: Config, seen: Seen) -> IndexQ | OptionQ | RecurrentQ:
    c = config.dqn
    hidden, noisy = config.net.hidden, c.exploration == "noisy"
    if not config.net.plain:
        kind = SequenceQ if config.by_index else OptionSequenceQ
        return kind(seen, hidden, _shape(config), dueling=c.dueling, quantiles=c.quantiles, noisy=noisy)
    if c.policy == "options":
        return OptionQ(seen, hidden, dueling=c.dueling, quantiles=c.quantiles, noisy=noisy)
    return IndexQ(seen, hidden, config.net.activation, dueling=c.dueling, quantiles=c.quantiles, noisy=noisy)


def _between(first: float, last: float, progress: float) -> float:
    return first + (last - first) * progress


class Schedule:
    """A learning rate that falls over the budget."""

    def __init__(self, net: Net, config: Config, precision: torch.dtype | None) -> None:
        self._config = c = config.optimizer
        self.descent = Descent(net, net.seen.team, c.learning_rate, c.eps, precision)

    def at(self, progress: float) -> Descent:
        """The descent at the rate that is due."""
        first = self._config.learning_rate
        last = first * self._config.final_fraction if self._config.schedule == "linear" else first
        self.descent.learning_rate = _between(first, last, progress)
        return self.descent


class Learner(Protocol):
    """What the loop needs of a way to learn."""

    @property
    def policy(self) -> Net:
        """The network that plays and learns."""

    @property
    def memory(self) -> Rollout | Replay:
        """What play is stored in."""

    @property
    def schedule(self) -> Schedule:
        """The optimizer."""

    def begin(self, number: int, progress: float) -> None:
        """Get ready to play the `number`-th round."""

    def update(self, number: int, progress: float) -> dict[str, float]:
        """Learn from the memory for the `number`-th time; returns figures."""

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint needs besides weights, optimizer and memory."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""

    def close(self) -> None:
        """End what it started."""


class _OnPolicy:
    """What learners from rollouts share: between updates there is nothing to do and nothing to keep."""

    def begin(self, number: int, progress: float) -> None:
        """Nothing to get ready."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing to keep."""
        return {}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Nothing was kept."""

    def close(self) -> None:
        """Nothing was started."""


class AfterstateLearner(_OnPolicy):
    """Values of what options lead to."""

    def __init__(self, net: OptionValue, config: Config, memory: Rollout, precision: torch.dtype | None = None) -> None:
        self.policy, self.memory = net, memory
        self.schedule = Schedule(net, config, precision)
        self._seed = config.seed
        self._config = config.afterstate
        net.epsilon, net.temperature = config.afterstate.epsilon, config.afterstate.temperature

    def update(self, number: int, progress: float) -> dict[str, float]:
        """One pass of regression on the targets."""
        c = self._config
        recipe = AfterstateRecipe(c.gamma, c.lam, c.epochs, c.minibatch)
        batch = self.memory.batch()
        return afterstate_update(self.policy, self.schedule.at(progress), batch, recipe, self._seed, number)


class PpoLearner(_OnPolicy):
    """Masked PPO."""

    def __init__(
        self,
        net: IndexPolicy | OptionPolicy | SequencePolicy | OptionSequencePolicy,
        config: Config,
        memory: Rollout,
        precision: torch.dtype | None = None,
        prefetch: bool = False,
    ) -> None:
        self.policy, self.memory = net, memory
        self.schedule = Schedule(net, config, precision)
        self._seed = config.seed
        self._config = config.ppo
        self._ahead: Ahead[Any] = Ahead(prefetch)

    def update(self, number: int, progress: float) -> dict[str, float]:
        """Epochs of clipped updates."""
        c, batch = self._config, self.memory.batch()
        small = min(c.minibatch, c.study_minibatch or c.minibatch)
        recipe = PpoRecipe(
            gamma=c.gamma,
            lam=c.lam,
            epochs=c.epochs,
            minibatch=small if batch.explored[batch.closed].all() else c.minibatch,
            clip=c.clip,
            entropy=_between(c.entropy, c.entropy_final, progress),
            value_weight=c.value_weight,
            max_grad_norm=c.max_grad_norm,
            normalize=c.normalize_advantage,
            clip_value=c.clip_value,
            target_kl=c.target_kl,
            augment=c.augment,
        )
        descent, key = self.schedule.at(progress), (self._seed, number)
        if isinstance(self.policy, SequencePolicy | OptionSequencePolicy):
            length, burn_in = (c.segment, c.burn_in) if self.policy.state_width else (1, 0)
            return sequence_update(self.policy, descent, batch, recipe, *key, length=length, burn_in=burn_in)
        return ppo_update(self.policy, descent, batch, recipe, *key, self._ahead)

    def close(self) -> None:
        """End the thread that encodes ahead."""
        self._ahead.close()


class DqnLearner:
    """Q-learning from replay."""

    def __init__(
        self,
        net: IndexQ | OptionQ | RecurrentQ,
        config: Config,
        memory: Replay,
        prefetch: bool,
        precision: torch.dtype | None = None,
    ) -> None:
        self.policy, self.memory = net, memory
        self.schedule = Schedule(net, config, precision)
        self._seed, self._config = config.seed, config.dqn
        target = _copied(net)
        weights = FlatWeights(target)
        self._pupil: Pupil[Any] = Pupil(net, self.schedule.descent, target.requires_grad_(False), weights)
        self._ahead: Ahead[Any] = Ahead(prefetch)

    def begin(self, number: int, progress: float) -> None:
        """Explore as much as is due by now."""
        c = self._config
        if c.exploration == "noisy":
            renew_noise(self.policy, self._seed, 3 * number + 2)
        else:
            self.policy.epsilon = _between(c.epsilon, c.epsilon_final, min(1.0, progress / c.explore_fraction))

    def update(self, number: int, progress: float) -> dict[str, float]:
        """A round of updates, once there is enough to learn from."""
        c, replay = self._config, self.memory
        shown = {"epsilon": self.policy.epsilon, "remembered": float(replay.size)}
        if replay.count < c.warmup or not replay.drawable:
            silence(self.policy)
            return {**shown, "rows": float(replay.fresh), "minibatches": 0.0, "update_ratio": 0.0}
        recipe = DqnRecipe(
            updates=c.updates_per_step,
            minibatch=c.minibatch,
            draw_ahead=c.draw_ahead,
            beta=_between(c.beta, 1.0, progress),
            double=c.double,
            tau=c.tau,
            target_every=c.target_every,
            huber=c.huber,
            max_grad_norm=c.max_grad_norm,
            margin=c.study_margin,
        )
        self.schedule.at(progress)
        first = number * recipe.updates
        learn = sequence_round if isinstance(self.policy, RecurrentQ) else dqn_round
        figures = learn(self._pupil, replay, self._ahead, recipe, self._seed, first)
        silence(self.policy)
        ratio = recipe.updates / max(1, replay.fresh)
        done = {"rows": float(replay.fresh), "minibatches": float(recipe.updates), "update_ratio": ratio}
        return {**figures, **shown, **done}

    @property
    def target(self) -> Net:
        """The copy that follows the policy and judges what lies beyond."""
        return self._pupil.target  # type: ignore[no-any-return]

    def state(self) -> dict[str, NDArray[Any]]:
        """The target's weights."""
        return weights_of(self.target)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""
        load_weights(self.target, state)

    def close(self) -> None:
        """End the thread that draws ahead."""
        self._ahead.close()


def learns_in_kernels(net: Net) -> bool:
    """Whether kernels learn for this network in plain floats on a CPU."""
    return isinstance(net, IndexPolicy | OptionPolicy | OptionValue) or has_kernel(net)


def frozen_copy(net: Net) -> Net:
    """A copy that shares the encoder and its team but no weights; a Q network's plays its best."""
    copy = _copied(net)
    if isinstance(copy, IndexQ | OptionQ | RecurrentQ):
        copy.epsilon = 0.0
    return copy.requires_grad_(False)


def _copied(net: N) -> N:
    seen, team = net.seen, net.seen.team
    copy = deepcopy(net, {id(seen): seen, id(team): team})
    compile_like(net, copy)
    return copy


def weights_of(net: nn.Module) -> dict[str, NDArray[Any]]:
    """A network's weights by name."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in net.state_dict().items()}


def load_weights(net: nn.Module, weights: dict[str, NDArray[Any]]) -> None:
    """Put weights into a network of the same shape."""
    net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
