"""Masked PPO, over plain indices or over described options. The same distribution acts and learns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.core.rng import Purpose, permutation, words
from maple.learn.returns import gae
from maple.learn.rollout import Batch
from maple.learn.shares import shared_gradient
from maple.nets.policy import IndexPolicy, OptionPolicy

__all__ = ["PpoRecipe", "judge_indices", "judge_options", "ppo_loss", "ppo_update"]


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


def judge_indices(
    net: IndexPolicy, view: NDArray[np.uint64], action: NDArray[np.int16]
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probability, entropy and value (n,) of decisions already taken, under the mask."""
    observation, mask = net.seen.observation(view)
    logits, value = net(observation)
    legal = torch.from_numpy(mask).to(logits.device)
    log_p = torch.log_softmax(logits.masked_fill(~legal, -1e9), dim=1)
    taken = torch.from_numpy(action.astype(np.int64)).to(logits.device)
    entropy = -(log_p.exp() * log_p).sum(1)
    return log_p.gather(1, taken[:, None])[:, 0], entropy, value


def judge_options(
    net: OptionPolicy, view: NDArray[np.uint64], action: NDArray[np.int16]
) -> tuple[Tensor, Tensor, Tensor]:
    """The same over described options: a softmax over each decision's own."""
    options = net.seen.options(view, keep=True)
    logits = net.logits(options)
    per_decision = np.diff(options.offset)
    decision = torch.from_numpy(np.repeat(np.arange(len(view)), per_decision)).to(logits.device)
    zero = torch.zeros(len(view), device=logits.device)
    top = zero.scatter_reduce(0, decision, logits.detach(), "amax", include_self=False)
    total = zero.index_add(0, decision, (logits - top[decision]).exp())
    log_p = logits - (top + total.log())[decision]
    entropy = zero.index_add(0, decision, -log_p.exp() * log_p)
    taken = np.flatnonzero(options.action == np.repeat(action, per_decision))
    return log_p[torch.from_numpy(taken).to(logits.device)], entropy, net.value(view)


def ppo_loss(
    log_prob: Tensor,
    entropy: Tensor,
    value: Tensor,
    old_log_prob: Tensor,
    old_value: Tensor,
    advantage: Tensor,
    returns: Tensor,
    recipe: PpoRecipe,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The clipped surrogate, the value error and the entropy bonus; figures beside it."""
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - recipe.clip, 1 + recipe.clip)).mean()
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


def _normalized(advantage: NDArray[np.float32]) -> NDArray[np.float32]:
    normal: NDArray[np.float32] = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-8))
    return normal


def ppo_update(
    net: IndexPolicy | OptionPolicy,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    recipe: PpoRecipe,
    seed: int,
    update: int,
) -> dict[str, float]:
    """Epochs of minibatches over the closed rows; returns the figures of this update."""
    advantage = np.empty(len(batch.action), np.float32)
    gae(batch.reward, batch.value, batch.following, batch.bootstrap, recipe.gamma, recipe.lam, advantage)
    returns = advantage + batch.value[:, 0]
    random = np.zeros(len(advantage), np.uint64)
    weight = advantage.copy()  # normalised a minibatch at a time, as it is learned from

    def loss_of(rows: NDArray[np.int64]) -> tuple[Tensor, dict[str, Tensor]]:
        view, action = batch.view[rows], batch.action[rows]
        if recipe.augment:
            net.seen.permute(view, action, random[rows])
        judged = judge_indices(net, view, action) if isinstance(net, IndexPolicy) else judge_options(net, view, action)
        columns = (batch.log_prob, batch.value[:, 0], weight, returns)
        known = [torch.from_numpy(column[rows]).to(judged[0].device) for column in columns]
        return ppo_loss(*judged, known[0], known[1], known[2], known[3], recipe)

    sums: dict[str, Tensor] = {}
    steps, kl = 0, 0.0
    for epoch in range(recipe.epochs):
        order = batch.closed[permutation(len(batch.closed), seed, Purpose.SHUFFLE, update * 64 + epoch)]
        if recipe.augment:
            random = words(len(advantage), seed, Purpose.AUGMENT, update * 64 + epoch)
        for lo in range(0, len(order) - recipe.minibatch // 2, recipe.minibatch):
            rows = order[lo : lo + recipe.minibatch]
            if recipe.normalize:
                weight[rows] = _normalized(advantage[rows])
            figures = shared_gradient(net, net.seen.team, rows, loss_of)
            torch.nn.utils.clip_grad_norm_(net.parameters(), recipe.max_grad_norm)
            optimizer.step()
            sums = {name: sums.get(name, torch.zeros(())) + figure.cpu() for name, figure in figures.items()}
            steps, kl = steps + 1, float(figures["kl"])
            if recipe.target_kl and kl > 1.5 * recipe.target_kl:
                break
        if recipe.target_kl and kl > 1.5 * recipe.target_kl:
            break
    means = {name: float(total) / max(1, steps) for name, total in sums.items()}
    return {**means, "rows": float(len(batch.closed)), "minibatches": float(steps)}
