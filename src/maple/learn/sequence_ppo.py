"""Masked PPO over segments of a seat's decisions: truncated back-propagation through what it remembers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.core.rng import Purpose, permutation
from maple.learn.descent import Descent
from maple.learn.index_gradient import FIGURES
from maple.learn.ppo import PpoRecipe, judge_logits, judge_option_logits, normalized, ppo_loss
from maple.learn.returns import gae
from maple.learn.rollout import Batch
from maple.learn.segments import NO_ROW, Segments, cut_segments
from maple.nets.body import Sight, Unrolled, side_by_side
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.perf.spans import span

__all__ = ["sequence_update"]


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What an update learns from."""

    net: SequencePolicy | OptionSequencePolicy
    recipe: PpoRecipe
    batch: Batch
    segments: Segments
    observation: NDArray[Any]  # (rows, O); (rows, 0) where options are scored: those are too many to keep
    mask: NDArray[np.bool_]  # (rows, A) or (rows, 0)
    value: NDArray[np.float32]  # (rows,)
    advantage: NDArray[np.float32]  # (rows,)

    @staticmethod
    def of(
        net: SequencePolicy | OptionSequencePolicy, batch: Batch, recipe: PpoRecipe, length: int, burn_in: int
    ) -> _Lesson:
        advantage = np.empty(len(batch.action), np.float32)
        with span("advantage_calculation"):
            gae(batch.reward, batch.value, batch.following, batch.bootstrap, recipe.gamma, recipe.lam, advantage)
        observation, mask = np.empty((len(batch.view), 0), np.uint8), np.empty((len(batch.view), 0), np.bool_)
        if isinstance(net, SequencePolicy):
            with span("learn_encode"):
                observation, mask = net.seen.all_observations(batch.view)
        value = np.ascontiguousarray(batch.value[:, 0])
        segments = cut_segments(batch.following, length, burn_in)
        return _Lesson(net, recipe, batch, segments, observation, mask, value, advantage)

    def minibatches(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Segments in this order, split where about `minibatch` decisions are together."""
        total = np.cumsum(self.segments.size[order])
        count = max(1, round(int(total[-1]) / self.recipe.minibatch)) if len(order) else 0
        bounds = np.searchsorted(total, [total[-1] * k / count for k in range(1, count)])
        return [part for part in np.split(order, bounds) if len(part)]

    def step(self, descent: Descent, chosen: NDArray[np.int64]) -> dict[str, float]:
        """One step for the mean loss over the decisions of these segments."""
        rows = self.segments.rows[chosen]
        rows = rows[rows != NO_ROW]
        weight = self.advantage
        if self.recipe.normalize:
            weight = weight.copy()
            weight[rows] = normalized(self.advantage[rows], self.batch.explored[rows])
        loss = partial(self._loss, weight, len(chosen) / len(rows))
        return descent.by_autograd(chosen, loss, self.recipe.max_grad_norm, self.net.body.worth(len(rows)))

    def _loss(
        self, weight: NDArray[np.float32], segments_per_row: float, chosen: NDArray[np.int64]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a share of a minibatch, as much of it as the share has of the decisions."""
        rows, segments = side_by_side(self.segments.rows[chosen], self._first_state(chosen))
        log_prob, entropy, value = self._judge(rows, segments)
        columns = (self.batch.log_prob, self.value, weight, self.advantage + self.value)
        known = [torch.from_numpy(column[rows]).to(value.device) for column in columns]
        shown = torch.from_numpy(self.batch.explored[rows]).to(value.device) if self.batch.explored.any() else None
        loss, figures = ppo_loss(log_prob, entropy, value, known[0], known[1], known[2], known[3], self.recipe, shown)
        share = segments_per_row * len(rows) / len(chosen)  # shares are weighed by segments, decisions should count
        return loss * share, {name: figure * share for name, figure in figures.items()}

    def _judge(self, rows: NDArray[np.int64], segments: Unrolled) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probability, entropy and value (m,) of the decisions of segments."""
        action = self.batch.action[rows]
        if isinstance(self.net, SequencePolicy):
            logits, value = self.net.unroll(self.observation[rows], segments)
            return *judge_logits(logits, self.mask[rows], action), value
        options = self.net.seen.options(self.batch.view[rows], keep=True)
        logits, value = self.net.unroll(self._sight(rows), options, segments)
        return *judge_option_logits(logits, options, action), value

    def _sight(self, rows: NDArray[np.int64]) -> Sight:
        """What the network reads of some rows."""
        if isinstance(self.net, SequencePolicy):
            return self.observation[rows]
        return self.net.body.sight(self.batch.view[rows])

    def _first_state(self, chosen: NDArray[np.int64]) -> Tensor:
        """(n, S) what was remembered before each segment: as stored, or gone through again from further back."""
        device, state = self.net.body.device, self.batch.state
        before, length = self.segments.before[chosen], self.segments.before_size[chosen]
        if not length.any():
            return torch.from_numpy(state[self.segments.rows[chosen, 0]]).to(device)
        begin = np.where(length > 0, before[:, 0], self.segments.rows[chosen, 0])
        rows, context = side_by_side(before, torch.from_numpy(state[begin]).to(device))
        return self.net.body.advance(self._sight(rows), context, length)


def sequence_update(
    net: SequencePolicy | OptionSequencePolicy,
    descent: Descent,
    batch: Batch,
    recipe: PpoRecipe,
    seed: int,
    update: int,
    *,
    length: int,
    burn_in: int,
) -> dict[str, float]:
    """Epochs of minibatches over segments of the closed rows; returns the figures of this update."""
    lesson = _Lesson.of(net, batch, recipe, length, burn_in)
    found: list[dict[str, float]] = []
    moved_too_far = False
    for epoch in range(recipe.epochs):
        with span("replay_sample"):
            order = permutation(len(lesson.segments.size), seed, Purpose.SHUFFLE, update * 64 + epoch)
        for chosen in lesson.minibatches(order):
            found.append(lesson.step(descent, chosen))
            moved_too_far = bool(recipe.target_kl) and found[-1]["kl"] > 1.5 * recipe.target_kl
            if moved_too_far:
                break
        if moved_too_far:
            break
    means = {name: float(np.mean([figures[name] for figures in found])) if found else 0.0 for name in FIGURES}
    return {**means, "rows": float(len(batch.closed)), "minibatches": float(len(found))}
