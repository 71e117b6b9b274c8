"""Masked PPO, over plain indices or over described options. The same distribution acts and learns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.core.rng import Purpose, permutation, words
from maple.core.step import Options
from maple.learn.ahead import Ahead
from maple.learn.descent import Descent
from maple.learn.index_gradient import FIGURES, index_epoch
from maple.learn.option_gradient import FAINT, add_option_gradient
from maple.learn.returns import gae
from maple.learn.rollout import Batch
from maple.nets.policy import IndexPolicy, OptionPolicy
from maple.nets.seen import Described, Look, part_of
from maple.perf.spans import span, split

__all__ = [
    "KEPT_BYTES",
    "PpoRecipe",
    "judge_indices",
    "judge_logits",
    "judge_option_logits",
    "judge_options",
    "normalized",
    "ppo_loss",
    "ppo_update",
]

KEPT_BYTES = 256 * 2**20  # of described options that are kept from one epoch to the next

Learn = Callable[[NDArray[np.int64]], NDArray[np.float64]]  # from rows in this order; sums of FIGURES (, minibatches)


@dataclass(frozen=True, slots=True)
class PpoRecipe:
    """Values of one update."""

    gamma: float
    lam: float
    epochs: int
    minibatch: int
    clip: float
    entropy: float
    value_weight: float
    max_grad_norm: float
    normalize: bool
    clip_value: float  # 0 for none
    target_kl: float  # 0 for none
    augment: bool


def judge_logits(logits: Tensor, mask: NDArray[np.bool_], action: NDArray[np.int16]) -> tuple[Tensor, Tensor]:
    """Log-probability and entropy (n,) of actions already taken, by a softmax over the legal logits (n, A)."""
    legal = torch.from_numpy(mask).to(logits.device)
    log_p = torch.log_softmax(logits.masked_fill(~legal, -1e9), dim=1)
    taken = torch.from_numpy(action.astype(np.int64)).to(logits.device)
    entropy = -(log_p.exp() * log_p).sum(1)
    return log_p.gather(1, taken[:, None])[:, 0], entropy


def judge_indices(
    net: IndexPolicy, view: NDArray[np.uint64], action: NDArray[np.int16], look: Look | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probability, entropy and value (n,) of decisions already taken, under the mask."""
    observation, mask = look if isinstance(look, tuple) else net.seen.observation(view)
    logits, value = net(observation)
    return *judge_logits(logits, mask, action), value


def judge_options(
    net: OptionPolicy, view: NDArray[np.uint64], action: NDArray[np.int16], look: Look | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The same over described options: a softmax over each decision's own."""
    seen = look if isinstance(look, Described) else net.seen.described(view, with_state=True, keep=True)
    return *judge_option_logits(net.logits(seen.options), seen.options, action), net.value(seen.state)


def judge_option_logits(logits: Tensor, options: Options, action: NDArray[np.int16]) -> tuple[Tensor, Tensor]:
    """Log-probability and entropy (n,) of actions already taken, by a softmax over each decision's logits (N,)."""
    per_decision = np.diff(options.offset)
    decision = torch.from_numpy(np.repeat(np.arange(len(action)), per_decision)).to(logits.device)
    zero = torch.zeros(len(action), device=logits.device)
    top = zero.scatter_reduce(0, decision, logits.detach(), "amax", include_self=False)
    total = zero.index_add(0, decision, (logits - top[decision]).exp())
    log_p = logits - (top + total.log())[decision]
    entropy = zero.index_add(0, decision, -log_p.exp() * log_p)
    taken = np.flatnonzero(options.action == np.repeat(action, per_decision))
    return log_p[torch.from_numpy(taken).to(logits.device)], entropy


def ppo_loss(
    log_prob: Tensor,
    entropy: Tensor,
    value: Tensor,
    old_log_prob: Tensor,
    old_value: Tensor,
    advantage: Tensor,
    returns: Tensor,
    recipe: PpoRecipe,
    shown: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The clipped surrogate, the value error and the entropy bonus; figures beside it.

    Rows that were `shown` (n,) by somebody else are copied instead: their log-probability is what grows.
    """
    log_ratio = log_prob - old_log_prob
    if shown is not None:
        log_ratio, entropy = log_ratio.masked_fill(shown, 0.0), entropy.masked_fill(shown, 0.0)
    ratio = log_ratio.exp()
    gain = torch.min(advantage * ratio, advantage * ratio.clamp(1 - recipe.clip, 1 + recipe.clip))
    policy_loss = -(gain if shown is None else torch.where(shown, log_prob, gain)).mean()
    error = (value - returns).square()
    if recipe.clip_value:
        near = old_value + (value - old_value).clamp(-recipe.clip_value, recipe.clip_value)
        error = torch.max(error, (near - returns).square())
    value_loss = error.mean()
    loss = policy_loss + recipe.value_weight * value_loss - recipe.entropy * entropy.mean()
    with torch.no_grad():
        kl = ((ratio - 1) - log_ratio).mean()
        clipped = ((ratio - 1).abs() > recipe.clip).float().mean()
    figures = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy.mean(),
        "kl": kl,
        "clipped": clipped,
    }
    return loss, {name: figure.detach() for name, figure in figures.items()}


def moments(advantage: NDArray[np.float32], shown: NDArray[np.bool_]) -> tuple[np.float32, np.float32]:
    """Mean of the advantages, and one over their deviation; rows that are copied have no say."""
    own = advantage[~shown]
    return (own.mean(), 1 / (own.std() + np.float32(1e-8))) if len(own) else (np.float32(0), np.float32(1))


def normalized(advantage: NDArray[np.float32], shown: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Advantages with mean 0 and deviation 1."""
    mean, scale = moments(advantage, shown)
    normal: NDArray[np.float32] = (advantage - mean) * scale
    return normal


@dataclass(slots=True)
class _Lesson:
    """What an update learns from."""

    net: IndexPolicy | OptionPolicy
    descent: Descent
    recipe: PpoRecipe
    view: NDArray[np.uint64]
    action: NDArray[np.int16]
    log_prob: NDArray[np.float32]
    value: NDArray[np.float32]
    advantage: NDArray[np.float32]
    returns: NDArray[np.float32]
    shown: NDArray[np.bool_]
    ahead: Ahead[Look] | None

    @staticmethod
    def of(
        net: IndexPolicy | OptionPolicy, descent: Descent, batch: Batch, recipe: PpoRecipe, ahead: Ahead[Look] | None
    ) -> _Lesson:
        advantage = np.empty(len(batch.action), np.float32)
        with span("advantage_calculation"):
            gae(batch.reward, batch.value, batch.following, batch.bootstrap, recipe.gamma, recipe.lam, advantage)
        value = np.ascontiguousarray(batch.value[:, 0])
        known = (batch.view, batch.action, batch.log_prob, value, advantage, advantage + value, batch.explored)
        return _Lesson(net, descent, recipe, *known, ahead)

    def permuted(self, random: NDArray[np.uint64]) -> _Lesson:
        """The same with every row replaced by an equivalent one."""
        view, action = self.view.copy(), self.action.copy()
        self.net.seen.permute(view, action, random)
        return replace(self, view=view, action=action)

    def learner(self) -> Learn:
        """How this is learned from, on this device."""
        net = self.net
        if not self.descent.in_kernels:
            return self._in_torch
        return self._by_kernel(net) if isinstance(net, IndexPolicy) else self._in_steps(self._option_step(net))

    @property
    def _known(self) -> tuple[NDArray[Any], ...]:
        """What kernels need to know of rows besides what was seen."""
        return self.action, self.log_prob, self.value, self.advantage, self.returns, self.shown

    def _kernel_recipe(self) -> NDArray[np.float32]:
        """What kernels need to know: of the recipe, of a row (its share, its advantage's shift and scale), FAINT."""
        r = self.recipe
        return np.array([r.clip, r.entropy, r.value_weight, r.clip_value, 0, 0, 1, FAINT], np.float32)

    def _by_kernel(self, net: IndexPolicy) -> Learn:
        """Whole epochs without Python, over observations that are written once."""
        r, flat, threads = self.recipe, self.descent.flat, self.descent.team.threads
        plan = (flat.first(net.first), flat.tower(net.actor), flat.tower(net.critic), net.kind)
        with span("learn_encode"):
            seen = net.seen.all_observations(self.view)
        limits = (r.normalize, np.float32(r.max_grad_norm), r.target_kl)

        def learn(order: NDArray[np.int64]) -> NDArray[np.float64]:
            figures, distances = np.zeros((threads, len(FIGURES) + 1)), np.zeros((2, threads))
            args = (plan, seen, self._known, self._kernel_recipe(), limits, order, r.minibatch, figures, distances)
            self.descent.by_kernel(index_epoch, r.minibatch, *args)
            sums: NDArray[np.float64] = figures.sum(0)
            sums[-1] = figures[0, -1]
            return sums

        return learn

    def _minibatches(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        size = self.recipe.minibatch
        return [order[lo : lo + size] for lo in range(0, len(order) - size // 2, size)]

    def _in_steps(self, step: Learn) -> Learn:
        """A step for each minibatch."""
        return lambda order: self._until_far(partial(step, rows) for rows in self._minibatches(order))

    def _until_far(self, steps: Iterable[Callable[[], NDArray[np.float64]]]) -> NDArray[np.float64]:
        """Take steps until the policy has moved too far."""
        sums = np.zeros(len(FIGURES) + 1)
        for step in steps:
            figures = step()
            sums += [*figures, 1.0]
            if self.recipe.target_kl and figures[FIGURES.index("kl")] > 1.5 * self.recipe.target_kl:
                break
        return sums

    def _option_step(self, net: OptionPolicy) -> Learn:
        """A minibatch in kernels, a share a thread; options are described once where there is room for all of them."""
        flat, weights = self.descent.flat, self.descent.flat.vector.detach().numpy()
        towers = (flat.first(net.first), flat.tower(net.actor), flat.first(net.critic_first), flat.tower(net.critic))
        plan, seen = (*towers, net.max_parts), net.seen
        again = self.recipe.epochs > 1 and not self.recipe.augment
        with span("learn_encode"):
            kept = seen.all_options(self.view, KEPT_BYTES) if again else None

        def step(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            recipe = self._kernel_recipe()
            recipe[4] = 1 / len(rows)
            if self.recipe.normalize:
                recipe[5:7] = moments(self.advantage[rows], self.shown[rows])

            def add(mine: NDArray[np.int64], gradient: NDArray[np.float32]) -> NDArray[np.float64]:
                with span("learn_encode"):
                    view = self.view[mine]
                    options = seen.options(view) if kept is None else seen.of_kept(kept, mine)
                    state = seen.state_with(options, view)
                read = (options.lists(), options.action, state.feature, state.length)
                known = tuple(column[mine] for column in self._known)
                began = time.perf_counter()
                found, ahead, back = add_option_gradient(weights, plan, *read, known, recipe, gradient)
                share = (time.perf_counter() - began) / (ahead + back)
                split({"loss_calculation": ahead * share, "gradient_calculation": back * share})
                return found  # type: ignore[no-any-return]

            return self.descent.by_share(rows, add, self.recipe.max_grad_norm) / len(rows)

        return step

    def _in_torch(self, order: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same in torch; a thread that works ahead encodes the next minibatch while this one is learned from."""
        parts = self._minibatches(order)
        looks: Iterable[Look | None] = repeat(None)
        if self.ahead is not None and self.ahead.in_thread:
            looks = self.ahead.through(partial(self._look, rows) for rows in parts)
        return self._until_far(partial(self._autograd_step, rows, look) for rows, look in zip(parts, looks))

    def _look(self, rows: NDArray[np.int64]) -> Look:
        """A minibatch as the network reads it."""
        with span("learn_encode"):
            seen, view = self.net.seen, self.view[rows]
            return seen.observation(view) if isinstance(self.net, IndexPolicy) else seen.described(view, True, True)

    def _autograd_step(self, rows: NDArray[np.int64], look: Look | None) -> NDArray[np.float64]:
        weight = self.advantage.copy()
        if self.recipe.normalize:
            weight[rows] = normalized(self.advantage[rows], self.shown[rows])
        loss_of = partial(self._loss, weight, rows, look)
        figures = self.descent.by_autograd(np.arange(len(rows)), loss_of, self.recipe.max_grad_norm)
        return np.array([figures[name] for name in FIGURES])

    def _loss(
        self, weight: NDArray[np.float32], minibatch: NDArray[np.int64], look: Look | None, mine: NDArray[np.int64]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss of neighbouring rows of a minibatch, and figures."""
        rows, look = minibatch[mine], part_of(look, mine[0], mine[-1] + 1)
        args = (self.view[rows], self.action[rows], look)
        net = self.net
        judged = judge_indices(net, *args) if isinstance(net, IndexPolicy) else judge_options(net, *args)
        columns = (self.log_prob, self.value, weight, self.returns)
        known = [torch.from_numpy(column[rows]).to(judged[0].device) for column in columns]
        shown = torch.from_numpy(self.shown[rows]).to(judged[0].device) if self.shown.any() else None
        return ppo_loss(*judged, known[0], known[1], known[2], known[3], self.recipe, shown)


def ppo_update(
    net: IndexPolicy | OptionPolicy,
    descent: Descent,
    batch: Batch,
    recipe: PpoRecipe,
    seed: int,
    update: int,
    ahead: Ahead[Look] | None = None,
) -> dict[str, float]:
    """Epochs of minibatches over the closed rows; returns the figures of this update."""
    lesson, rows = _Lesson.of(net, descent, batch, recipe, ahead), len(batch.closed)
    learn = lesson.learner()
    sums = np.zeros(len(FIGURES) + 1)
    for epoch in range(recipe.epochs):
        if recipe.augment:
            random = words(len(lesson.action), seed, Purpose.AUGMENT, update * 64 + epoch)
            learn = lesson.permuted(random).learner()
        with span("replay_sample"):
            order = batch.closed[permutation(rows, seed, Purpose.SHUFFLE, update * 64 + epoch)]
        found = learn(order)
        sums += found
        if found[-1] < len(range(0, rows - recipe.minibatch // 2, recipe.minibatch)):
            break  # the policy has moved too far
    means = dict(zip(FIGURES, (sums[:-1] / max(1.0, sums[-1])).tolist(), strict=True))
    return {**means, "rows": float(rows), "minibatches": float(sums[-1])}
