"""Q-learning from segments of replay: the network and its target are unrolled over a seat's consecutive decisions.

Both begin with the state that the first of them was made with, and go through `burn_in` decisions before the segment
without learning from them. An estimate of n decisions later is read further along the same walk. Segments are drawn by
their errors, mostly by the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.learn.ahead import Ahead
from maple.learn.chains import Walked
from maple.learn.dqn import Course, DqnRecipe, Pupil, dqn_loss, follow, short_of_margin, torch_step
from maple.learn.q_gradient import FIGURES
from maple.learn.replay import Replay
from maple.learn.segments import NO_ROW
from maple.nets.body import Unrolled, side_by_side
from maple.nets.sequence_q import RecurrentQ
from maple.perf.spans import span

__all__ = ["SegmentLesson", "sequence_round"]

LARGEST = 0.9  # how much of a segment's priority is its largest error; the rest is the mean


@dataclass(frozen=True, slots=True)
class SegmentLesson:
    """Segments that were drawn, batches one after the other, and what their rows hold; `walked` points at those."""

    head: NDArray[np.int64]  # (n,) rows of the ring
    weight: NDArray[np.float32]  # (n,) importance weights
    walked: Walked
    sight: NDArray[Any]  # (m, ·) what the network reads
    mask: NDArray[np.bool_]  # (m, A)
    action: NDArray[np.int16]  # (m,)
    reward: NDArray[np.float32]  # (m,)
    discount: NDArray[np.float32]  # (m,)
    shown: NDArray[np.bool_]  # (m,)


def make_lesson(
    net: RecurrentQ, replay: Replay, batch: int, batches: int, beta: float, seed: int, number: int, alone: bool = False
) -> SegmentLesson:
    """Draw batches of segments, the first of which is called `number`, and encode all that they go through."""
    with span("replay_sample"):
        head, weight, walked, rows = replay.draw_segments(batch, batches, beta, seed, number)
    with span("learn_encode"):
        sight, mask = net.read(replay.view[rows], by_all=not alone)
    known = replay.action[rows], replay.reward[rows], replay.discount[rows], replay.shown[rows]
    return SegmentLesson(head, weight, walked, sight, mask, *known)


def _first_state(net: RecurrentQ, lesson: SegmentLesson, chosen: NDArray[np.int64]) -> Tensor:
    """(n, S) what this network would remember before each segment."""
    walked = lesson.walked
    state = torch.from_numpy(walked.state[chosen]).to(net.body.device)
    length = walked.before_size[chosen]
    if not length.any():
        return state
    rows, context = side_by_side(walked.before[chosen], state)
    return net.advance(lesson.sight[rows], context, length)


def segment_loss(
    pupil: Pupil[RecurrentQ],
    recipe: DqnRecipe,
    reach: int,
    lesson: SegmentLesson,
    error: NDArray[np.float32],
    share_of_decision: float,
    chosen: NDArray[np.int64],
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a share of a minibatch, as much of it as it has of the decisions, and figures. Writes error."""
    net, target, walked = pupil.net, pupil.target, lesson.walked
    rows, segments = side_by_side(walked.rows[chosen], _first_state(net, lesson, chosen))
    seen = lesson.sight[rows], lesson.mask[rows]
    q = net.unroll(*seen, segments)  # (m, A, atoms)
    with torch.no_grad():
        judged = target.unroll(*seen, Unrolled(segments.place, segments.steps, _first_state(target, lesson, chosen)))
    here, beyond, owner = _cells(walked, chosen, reach)
    legal = torch.from_numpy(seen[1]).to(q.device)
    score = (q.detach() if recipe.double else judged).mean(2).masked_fill(~legal, -torch.inf)
    led = judged[beyond, score[beyond].argmax(1)]  # (d, atoms)
    columns = (lesson.reward[rows[here]], lesson.discount[rows[here]], lesson.weight[chosen[owner]])
    reward, discount, weight = (torch.from_numpy(column).to(q.device) for column in columns)
    goal = reward[:, None] + discount[:, None] * led
    taken = q[here, torch.from_numpy(lesson.action[rows[here]].astype(np.int64))]
    loss = dqn_loss(taken, goal, weight, recipe.huber)
    if len(copied := here[lesson.shown[rows[here]]]):
        actions = lesson.action[rows[copied]]
        loss = loss + short_of_margin(q[copied].mean(2), seen[1][copied], actions, recipe.margin).sum() / len(here)
    off = (taken.detach() - goal).mean(1)
    size, each = walked.size[chosen], off.abs().cpu().numpy()
    begin = np.concatenate([[0], np.cumsum(size)[:-1]])
    largest, total = np.maximum.reduceat(each, begin), np.add.reduceat(each, begin)
    error[chosen] = LARGEST * largest + (1 - LARGEST) * total / size
    share = share_of_decision * len(here) / len(chosen)  # shares are weighed by segments, decisions should count
    figures = {"loss": loss.detach(), "q": taken.detach().mean(), "error": off.abs().mean()}
    return loss * share, {name: figure * share for name, figure in figures.items()}


def _cells(
    walked: Walked, chosen: NDArray[np.int64], reach: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each decision to learn from: its place among the rows side by side, that of where it led, its segment."""
    rows, size, total = walked.rows[chosen], walked.size[chosen], walked.total[chosen]
    place = np.full(rows.shape, NO_ROW)
    there = rows.T != NO_ROW
    place.T[there] = np.arange(there.sum())
    owner = np.repeat(np.arange(len(chosen)), size)
    k = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    return place[owner, k], place[owner, np.minimum(k + reach, total[owner] - 1)], owner


def sequence_round(
    pupil: Pupil[RecurrentQ],
    replay: Replay,
    ahead: Ahead[SegmentLesson],
    recipe: DqnRecipe,
    seed: int,
    number: int,
) -> dict[str, float]:
    """Updates number, number + 1, … from about `minibatch` decisions each; returns their mean figures."""
    assert replay.chains is not None
    batch, reach = max(1, recipe.minibatch // replay.chains.length), replay.chains.reach

    def make(first: int, batches: int, alone: bool) -> SegmentLesson:
        return make_lesson(pupil.net, replay, batch, batches, recipe.beta, seed, first, alone)

    def learn(lesson: SegmentLesson, first: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        error, sums = np.empty(len(lesson.head), np.float32), np.zeros(len(FIGURES))
        for k in range(len(error) // batch):
            chosen = np.arange(k * batch, (k + 1) * batch)
            decisions = int(lesson.walked.size[chosen].sum())
            loss_of = partial(segment_loss, pupil, recipe, reach, lesson, error, batch / decisions)
            sums += torch_step(pupil, recipe, seed, first + k, chosen, loss_of, pupil.net.body.worth(decisions))
        return sums, error

    return follow(Course(make, learn, lambda lesson: lesson.head), replay, ahead, recipe, number)
