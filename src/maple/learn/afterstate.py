"""After-state values: learn what each option leads to, from TD(λ) over the learner's own games."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.core.rng import Purpose, permutation
from maple.learn.returns import lambda_targets
from maple.learn.rollout import Batch
from maple.learn.shares import shared_gradient
from maple.nets.policy import OptionValue

__all__ = ["AfterstateRecipe", "afterstate_update"]


@dataclass(frozen=True, slots=True)
class AfterstateRecipe:
    """Values of one update."""

    gamma: float
    lam: float
    epochs: int
    minibatch: int


def afterstate_update(
    net: OptionValue,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    recipe: AfterstateRecipe,
    seed: int,
    update: int,
) -> dict[str, float]:
    """Regress the chosen options' values on their targets; returns the figures of this update."""
    target = np.empty_like(batch.reward)
    args = (batch.reward, batch.value, batch.explored, batch.following, batch.bootstrap)
    lambda_targets(*args, recipe.gamma, recipe.lam, target)
    closed, total, steps = batch.closed, torch.zeros(()), 0

    def loss_of(rows: NDArray[np.int64]) -> tuple[Tensor, dict[str, Tensor]]:
        predicted = net(net.seen.choice(batch.view[rows], batch.action[rows]))
        loss = torch.nn.functional.mse_loss(predicted, torch.from_numpy(target[rows]).to(predicted.device))
        return loss, {"loss": loss.detach()}

    for epoch in range(recipe.epochs):
        order = closed[permutation(len(closed), seed, Purpose.SHUFFLE, update * 64 + epoch)]
        for lo in range(0, len(order) - recipe.minibatch // 2, recipe.minibatch):
            figures = shared_gradient(net, net.seen.team, order[lo : lo + recipe.minibatch], loss_of)
            optimizer.step()
            total += figures["loss"].cpu()
            steps += 1
    return {"loss": float(total) / max(1, steps), "rows": float(len(closed)), "minibatches": float(steps)}
