"""Q-learning from replay: double, dueling, n-step, prioritized; over plain indices or described options.

A round of learning is some updates of a minibatch each. Minibatches are drawn `draw_ahead` at a time, and always one
such group ahead: the next group is drawn before the priorities of the last one are written, whether a thread of its own
does it meanwhile or not. So what is learned does not depend on timing, and a minibatch is drawn by priorities that lack
the results of at most 2 × draw_ahead - 1 updates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.learn.ahead import Ahead
from maple.learn.descent import Descent, LossOfRows
from maple.learn.option_share import OptionShare
from maple.learn.q_gradient import FIGURES, q_steps
from maple.learn.replay import Drawn, Replay
from maple.nets.flat import FlatWeights
from maple.nets.noisy import NoisyLinear, renew_noise
from maple.nets.q import IndexQ, OptionQ
from maple.nets.seen import Described, Look, part_of
from maple.perf.spans import span

__all__ = [
    "Course",
    "DqnRecipe",
    "Lesson",
    "Pupil",
    "beyond_values",
    "copying_loss",
    "dqn_loss",
    "dqn_round",
    "follow",
    "has_kernel",
    "short_of_margin",
    "taken_values",
    "torch_step",
]

QNet = IndexQ | OptionQ
Q = TypeVar("Q", bound=nn.Module)
L = TypeVar("L")
Lesson = tuple[Drawn, Look | None, Look | None]  # with what was seen there and beyond, where that is encoded ahead
Learn = Callable[[Lesson, int], tuple[NDArray[np.float64], NDArray[np.float32]]]  # sums of FIGURES, each row's error


@dataclass(frozen=True, slots=True)
class DqnRecipe:
    """Values of one round."""

    updates: int
    minibatch: int
    draw_ahead: int
    beta: float
    double: bool
    tau: float
    target_every: int
    huber: float
    max_grad_norm: float
    margin: float  # by which a decision that was shown should be worth more than any other

    @property
    def stale_updates(self) -> int:
        """How many updates' priorities a minibatch may lack."""
        return 2 * self.draw_ahead - 1


@dataclass(frozen=True, slots=True)
class Pupil(Generic[Q]):
    """A network that learns, and the copy that follows it and judges what lies beyond."""

    net: Q
    descent: Descent
    target: Q
    target_weights: FlatWeights

    @property
    def by_kernel(self) -> bool:
        """Whether it learns in kernels."""
        return self.descent.in_kernels and has_kernel(self.net)


@dataclass(frozen=True, slots=True)
class Course(Generic[L]):
    """How groups of minibatches are made and learned from."""

    make: Callable[[int, int, bool], L]  # from the first one's number, how many, and whether the team is left to others
    learn: Callable[[L, int], tuple[NDArray[np.float64], NDArray[np.float32]]]  # sums of FIGURES, an error for each ...
    rows: Callable[[L], NDArray[np.int64]]  # ... of these rows of the replay


def has_kernel(net: nn.Module) -> bool:
    """Whether there is a kernel that learns for this network: not for distributions, nor for noisy layers."""
    plain = isinstance(net, IndexQ | OptionQ) and net.atoms == 1
    return plain and not any(isinstance(module, NoisyLinear) for module in net.modules())


def taken_values(net: QNet, view: NDArray[np.uint64], action: NDArray[np.int16], look: Look | None = None) -> Tensor:
    """(n, atoms) the values of actions already taken."""
    if isinstance(net, IndexQ):
        q = net(*_sight(net, view, look))
        return q[torch.arange(len(q)), torch.from_numpy(action.astype(np.int64))]  # type: ignore[no-any-return]
    if not net.dueling:
        return net.of_choices(view, action)
    described = look if isinstance(look, Described) else net.described(view, keep=True)
    options = described.options
    taken = np.flatnonzero(options.action == np.repeat(action, np.diff(options.offset)))
    return net.values(described, taken, net.scores(options))


def _sight(net: QNet, view: NDArray[np.uint64], look: Look | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    return look if isinstance(look, tuple) else net.seen.observation(view)


@torch.no_grad()
def beyond_values(net: QNet, target: QNet, view: NDArray[np.uint64], double: bool, look: Look | None = None) -> Tensor:
    """(n, atoms) the target's values of the best legal actions, by the network's own judgement if `double`."""
    if isinstance(net, IndexQ):
        assert isinstance(target, IndexQ)
        seen = _sight(net, view, look)
        judged = target(*seen)
        score = (net(*seen) if double else judged).mean(2)
        best = score.masked_fill(~torch.from_numpy(seen[1]).to(score.device), -torch.inf).argmax(1)
        return judged[torch.arange(len(best)), best]  # type: ignore[no-any-return]
    assert isinstance(target, OptionQ)
    described = look if isinstance(look, Described) else net.described(view, keep=True)
    options = described.options
    if double and not target.dueling:
        return target.of_choices(view, options.action[net.best(options, net.scores(options))])
    judged = target.scores(options)
    best_options = net.best(options, net.scores(options) if double else judged)
    return target.values(described, best_options, judged)


def dqn_loss(taken: Tensor, goal: Tensor, weight: Tensor, huber: float) -> Tensor:
    """Huber's loss, weighted; between distributions the quantile regression of it."""
    if taken.shape[1] == 1:
        each = torch.nn.functional.huber_loss(taken, goal, reduction="none", delta=huber)[:, 0]
        return (weight * each).mean()
    off = goal[:, None, :] - taken[:, :, None]  # (n, own quantiles, goal's)
    each = torch.nn.functional.huber_loss(off, torch.zeros_like(off), reduction="none", delta=huber)
    place = (torch.arange(taken.shape[1], device=taken.device) + 0.5) / taken.shape[1]
    lean = (place[None, :, None] - (off.detach() < 0).float()).abs()
    return (weight * (lean * each / huber).mean(2).sum(1)).mean()


def short_of_margin(score: Tensor, mask: NDArray[np.bool_], action: NDArray[np.int16], margin: float) -> Tensor:
    """(n,) by how much the score of each action falls short of beating all other legal ones (n, A) by `margin`."""
    taken = torch.from_numpy(action.astype(np.int64)).to(score.device)[:, None]
    own = score.gather(1, taken)
    bar = (score + margin).scatter(1, taken, own).masked_fill(~torch.from_numpy(mask).to(score.device), -torch.inf)
    return bar.amax(1) - own[:, 0]


def copying_loss(net: QNet, view: NDArray[np.uint64], action: NDArray[np.int16], margin: float) -> Tensor:
    """(n,) by how much each decision that was shown falls short of beating all others by `margin`."""
    if isinstance(net, IndexQ):
        observation, mask = net.seen.observation(view)
        score: Tensor = net(observation, mask).mean(2)
        return short_of_margin(score, mask, action, margin)
    options = net.seen.options(view, keep=True)
    is_taken = options.action == np.repeat(action, np.diff(options.offset))
    score = net.scores(options).mean(1)
    bar = score + margin * torch.from_numpy((~is_taken).astype(np.float32)).to(score.device)
    best = net.best(options, bar.detach()[:, None])
    return bar[torch.from_numpy(best).to(score.device)] - score[torch.from_numpy(is_taken).to(score.device)]


def dqn_round(
    pupil: Pupil[QNet], replay: Replay, ahead: Ahead[Lesson], recipe: DqnRecipe, seed: int, number: int
) -> dict[str, float]:
    """Updates number, number + 1, …; returns their mean figures."""
    if pupil.by_kernel and isinstance(pupil.net, OptionQ):
        learn = _by_options(pupil, pupil.net, recipe)
    elif pupil.by_kernel:
        learn = _by_kernel(pupil, recipe)
    else:
        learn = _by_autograd(pupil, recipe, seed)
    make = partial(_make, pupil.net, replay, recipe, seed)
    return follow(Course(make, learn, lambda lesson: lesson[0].row), replay, ahead, recipe, number)


def follow(course: Course[L], replay: Replay, ahead: Ahead[L], recipe: DqnRecipe, number: int) -> dict[str, float]:
    """Go through a round of updates group by group, each made one group ahead; returns their mean figures."""
    groups = [min(recipe.draw_ahead, recipe.updates - at) for at in range(0, recipe.updates, recipe.draw_ahead)]
    sums = np.zeros(len(FIGURES))

    def begin(first: int, batches: int) -> None:
        ahead.begin(partial(course.make, first, batches, ahead.in_thread))

    begin(number, groups[0])
    for group, following in zip(groups, [*groups[1:], 0], strict=True):
        lesson = ahead.take()
        if following:
            begin(number + group, following)
        found, error = course.learn(lesson, number)
        sums += found
        number += group
        ahead.settle()
        with span("replay_update"):
            replay.reweigh(course.rows(lesson), error)
    return dict(zip(FIGURES, (sums / recipe.updates).tolist(), strict=True))


def _make(net: QNet, replay: Replay, recipe: DqnRecipe, seed: int, number: int, batches: int, alone: bool) -> Lesson:
    """Draw a group of minibatches and encode them. `alone` leaves the team to others.

    Otherwise options are left to the threads that learn from them: each describes its own, which stay in its cache.
    """
    with span("replay_sample"):
        team = None if alone else net.seen.team
        drawn = replay.draw(recipe.minibatch, batches, recipe.beta, seed, number, team).pinned(net.seen.pinned)
    with span("learn_encode"):
        if isinstance(net, IndexQ):
            encode = net.seen.observation if alone else net.seen.all_observations
            return drawn, encode(drawn.view), encode(drawn.beyond_view)
        if not alone:
            return drawn, None, None
        here = net.described(drawn.view, keep=True) if net.dueling else None
        return drawn, here, net.described(drawn.beyond_view, keep=True)


def _by_kernel(pupil: Pupil[QNet], recipe: DqnRecipe) -> Learn:
    """All minibatches of a group without Python."""
    net, descent, flat = pupil.net, pupil.descent, pupil.descent.flat
    assert isinstance(net, IndexQ)
    value = flat.tower(net.value) if net.value is not None else np.zeros((0, 5), np.int64)
    plan = (flat.first(net.first), flat.tower(net.advantage), value, net.kind, net.value is not None)
    target = pupil.target_weights.vector.detach().numpy()
    values = np.array([recipe.huber, 1 / recipe.minibatch, recipe.margin], np.float32)

    def learn(lesson: Lesson, number: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        drawn, here, beyond = lesson
        assert isinstance(here, tuple)
        assert isinstance(beyond, tuple)
        known = (drawn.action, drawn.reward, drawn.discount, drawn.weight, drawn.shown)
        limits = (recipe.double, number, recipe.target_every, np.float32(recipe.tau), np.float32(recipe.max_grad_norm))
        error, figures = np.empty(len(drawn.row), np.float32), np.zeros((descent.team.threads, len(FIGURES)))
        args = (target, plan, (*here, *beyond), known, values, limits, recipe.minibatch, error, figures)
        descent.by_kernel(q_steps, recipe.minibatch, *args)
        return figures.sum(0), error

    return learn


def _by_options(pupil: Pupil[QNet], net: OptionQ, recipe: DqnRecipe) -> Learn:
    """A minibatch at a time in kernels, a share a thread; options are described when they are needed."""
    descent = pupil.descent
    values = np.array([recipe.huber, 1 / recipe.minibatch, recipe.margin], np.float32)
    share = OptionShare.of(net, descent.flat, pupil.target_weights, recipe.double, values)

    def learn(lesson: Lesson, number: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        drawn, here, beyond = lesson
        assert not isinstance(here, tuple)
        assert not isinstance(beyond, tuple)
        error, sums = np.empty(len(drawn.row), np.float32), np.zeros(len(FIGURES))
        for k in range(len(error) // recipe.minibatch):
            rows = np.arange(k * recipe.minibatch, (k + 1) * recipe.minibatch)
            add = partial(share.add, drawn, here, beyond, error)
            sums += descent.by_share(rows, add, recipe.max_grad_norm) / len(rows)
            _move_target(pupil, recipe, number + k)
        return sums, error

    return learn


def _by_autograd(pupil: Pupil[QNet], recipe: DqnRecipe, seed: int) -> Learn:
    """The same in torch, a minibatch at a time; also for distributions and noise."""

    def learn(lesson: Lesson, number: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        error = np.empty(len(lesson[0].row), np.float32)
        sums = np.zeros(len(FIGURES))
        for k in range(len(error) // recipe.minibatch):
            rows = np.arange(k * recipe.minibatch, (k + 1) * recipe.minibatch)
            loss_of = partial(_loss, pupil, recipe, lesson, error)
            sums += torch_step(pupil, recipe, seed, number + k, rows, loss_of)
        return sums, error

    return learn


def torch_step(
    pupil: Pupil[Q],
    recipe: DqnRecipe,
    seed: int,
    number: int,
    rows: NDArray[np.int64],
    loss_of: LossOfRows,
    worth: int | None = None,
) -> NDArray[np.float64]:
    """Update `number` by the loss of these rows, and the target's own step; returns FIGURES."""
    renew_noise(pupil.net, seed, 3 * number)
    renew_noise(pupil.target, seed, 3 * number + 1)
    found = pupil.descent.by_autograd(rows, loss_of, recipe.max_grad_norm, worth)
    _move_target(pupil, recipe, number)
    return np.array([found[name] for name in FIGURES])


def _move_target(pupil: Pupil[Q], recipe: DqnRecipe, number: int) -> None:
    """The target's own step after update `number`, if one is due."""
    if (number + 1) % recipe.target_every == 0:
        with torch.no_grad(), span("optimizer_step"):
            pupil.target_weights.vector.lerp_(pupil.descent.flat.vector, recipe.tau)


def _loss(
    pupil: Pupil[QNet], recipe: DqnRecipe, lesson: Lesson, error: NDArray[np.float32], rows: NDArray[np.int64]
) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean loss of neighbouring rows, and figures. Writes error."""
    drawn, part = lesson[0], slice(rows[0], rows[-1] + 1)
    here, beyond = (part_of(look, part.start, part.stop) for look in lesson[1:])
    led = beyond_values(pupil.net, pupil.target, drawn.beyond_view[part], recipe.double, beyond)
    columns = (drawn.reward, drawn.discount, drawn.weight)
    given = (torch.from_numpy(column[part]).to(led.device, non_blocking=True) for column in columns)
    reward, discount, weight = given
    goal = reward[:, None] + discount[:, None] * led
    taken = taken_values(pupil.net, drawn.view[part], drawn.action[part], here)
    loss = dqn_loss(taken, goal, weight, recipe.huber)
    if len(shown := np.flatnonzero(drawn.shown[part])):
        lag = copying_loss(pupil.net, drawn.view[part][shown], drawn.action[part][shown], recipe.margin)
        loss = loss + lag.sum() / len(rows)
    off = (taken.detach() - goal).mean(1)
    error[part] = off.cpu().numpy()
    return loss, {"loss": loss.detach(), "q": taken.detach().mean(), "error": off.abs().mean()}
