"""After-state values: learn what each option leads to, from TD(λ) over the learner's own games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.core.rng import Purpose, permutation
from maple.learn.descent import Descent
from maple.learn.returns import lambda_targets
from maple.learn.rollout import Batch
from maple.learn.value_gradient import value_epoch
from maple.nets.policy import OptionValue
from maple.perf.spans import span

__all__ = ["AfterstateRecipe", "afterstate_update"]

Learn = Callable[[NDArray[np.int64]], float]  # learns from rows in this order; the sum of the minibatches' losses


@dataclass(frozen=True, slots=True)
class AfterstateRecipe:
    """Values of one update."""

    gamma: float
    lam: float
    epochs: int
    minibatch: int


def afterstate_update(
    net: OptionValue, descent: Descent, batch: Batch, recipe: AfterstateRecipe, seed: int, update: int
) -> dict[str, float]:
    """Regress the chosen options' values on their targets; returns the figures of this update."""
    target = np.empty_like(batch.reward)
    args = (batch.reward, batch.value, batch.explored, batch.following, batch.bootstrap)
    with span("advantage_calculation"):
        lambda_targets(*args, recipe.gamma, recipe.lam, target)
    closed, total, steps = batch.closed, 0.0, 0
    learner = _by_kernel if descent.in_kernels else _by_autograd
    learn = learner(net, descent, batch, target, recipe)
    for epoch in range(recipe.epochs):
        with span("replay_sample"):
            order = closed[permutation(len(closed), seed, Purpose.SHUFFLE, update * 64 + epoch)]
        total += learn(order)
        steps += len(range(0, len(order) - recipe.minibatch // 2, recipe.minibatch))
    return {"loss": total / max(1, steps), "rows": float(len(closed)), "minibatches": float(steps)}


def _by_kernel(
    net: OptionValue, descent: Descent, batch: Batch, target: NDArray[np.float32], recipe: AfterstateRecipe
) -> Learn:
    """Whole epochs without Python, over features that are described once."""
    with span("learn_encode"):
        chosen = net.seen.all_choices(batch.view, batch.action)
    lists = (descent.flat.first(net.first), descent.flat.tower(net.rest), chosen.feature, chosen.length, target)

    def learn(order: NDArray[np.int64]) -> float:
        errors = np.zeros(descent.team.threads, np.float64)
        descent.by_kernel(value_epoch, recipe.minibatch, *lists, order, recipe.minibatch, errors)
        return float(errors.sum())

    return learn


def _by_autograd(
    net: OptionValue, descent: Descent, batch: Batch, target: NDArray[np.float32], recipe: AfterstateRecipe
) -> Learn:
    """The same in torch."""

    def loss_of(rows: NDArray[np.int64]) -> tuple[Tensor, dict[str, Tensor]]:
        predicted = net(net.seen.choice(batch.view[rows], batch.action[rows]))
        loss = torch.nn.functional.mse_loss(predicted, torch.from_numpy(target[rows]).to(predicted.device))
        return loss, {"loss": loss.detach()}

    def learn(order: NDArray[np.int64]) -> float:
        starts = range(0, len(order) - recipe.minibatch // 2, recipe.minibatch)
        return sum(descent.by_autograd(order[lo : lo + recipe.minibatch], loss_of)["loss"] for lo in starts)

    return learn
