"""The gradient of Q-learning over plain indices, for one thread's share of a minibatch, in one kernel call.

It says the same as `dqn_loss` over `taken_values` and `beyond_values`, and as `copying_loss`, by autograd, which are
its oracle in the tests and the way on other devices. Illegal actions are never scored. The best next action, its
judgement by the target, the loss, the gradient, Adam and the target's move run without Python for as many minibatches
as were drawn together.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import cycles, fast_kernel
from maple.core.threads import meet
from maple.learn.descent import GRADIENT, LOSS, OPTIMIZER, descend
from maple.nets.dense import activate, deactivate, layer_weight, stage, tower_backward, tower_forward, turn
from maple.nets.legal import list_legal, score_legal, spread_legal
from maple.nets.sparse import spread_bytes, sum_bytes

__all__ = ["FIGURES", "add_q_gradient", "copy_shown", "pull", "q_steps"]

FIGURES = ("loss", "q", "error")
BLOCK = 64  # rows at a time: their values at all stages stay in a core's own cache

_0 = np.float32(0)
_1 = np.float32(1)
_HALF = np.float32(0.5)


@fast_kernel
def _bias(vector, tower, layer):
    return vector[tower[layer, 1] : tower[layer, 1] + tower[layer, 3]]


@fast_kernel
def _ahead(weights, turned, plan, observation, with_value, x, rooms):
    """Take rows up to the last layer of the advantages, and to the value if wanted. Writes x, rooms."""
    first, advantage, value, kind, _ = plan
    features, width, n = first[2], first[3], len(observation)
    below = weights[first[0] : first[0] + features * width].reshape(features, width)
    sum_bytes(below, weights[first[1] : first[1] + width], observation, False, x)
    activate(kind, x)
    stage(rooms[0], advantage, 0, n)[:] = x
    tower_forward(weights, turned, advantage, advantage.shape[0] - 1, kind, n, rooms[0])
    if with_value:
        stage(rooms[1], value, 0, n)[:] = x
        tower_forward(weights, turned, value, value.shape[0], kind, n, rooms[1])


@fast_kernel
def _mean(score, n):
    total = _0
    for j in range(n):
        total += score[j]
    return total / np.float32(n)


@fast_kernel
def _best(score, n):
    best = 0
    for j in range(1, n):
        if score[j] > score[best]:
            best = j
    return best


@fast_kernel
def _goals(weights, target, turns, plan, led, double, rooms, scratch, goal):
    """What each row's value should be: its reward and the target's judgement of the best next action. Writes goal."""
    first, advantage, value, _, dueling = plan
    legal, score, _ = scratch
    beyond, mask, reward, discount = led
    n, top = len(reward), advantage.shape[0] - 1
    x = np.empty((n, first[3]), np.float32)
    best = np.empty(n, np.int64)
    if double:
        _ahead(weights, turns[0], plan, beyond, False, x, rooms)
        hidden, weight = stage(rooms[0], advantage, top, n), layer_weight(weights, advantage, top)
        for i in range(n):
            count = list_legal(mask[i], legal)
            score_legal(hidden[i], weight, _bias(weights, advantage, top), count, legal, score)
            best[i] = _best(score, count)
    _ahead(target, turns[1], plan, beyond, dueling, x, rooms)
    hidden, weight = stage(rooms[0], advantage, top, n), layer_weight(target, advantage, top)
    for i in range(n):
        count = list_legal(mask[i], legal)
        score_legal(hidden[i], weight, _bias(target, advantage, top), count, legal, score)
        judged = score[best[i] if double else _best(score, count)]
        if dueling:
            judged += stage(rooms[1], value, value.shape[0], n)[i, 0] - _mean(score, count)
        goal[i] = reward[i] + discount[i] * judged


@fast_kernel
def pull(q, goal, weight, recipe, figures):
    """The loss's gradient with regard to one row's value. Writes figures."""
    huber, scale = recipe[0], recipe[1]
    off = q - goal
    size = abs(off)
    loss = _HALF * off * off if size <= huber else huber * (size - _HALF * huber)
    figures[0] += weight * loss
    figures[1] += q
    figures[2] += size
    return scale * weight * max(min(off, huber), -huber)


@fast_kernel
def copy_shown(score, taken, recipe, flow, figures):
    """Pull an action that was shown above all others by a margin. Writes flow, figures."""
    scale, margin = recipe[1], recipe[2]
    best, bar = taken, score[taken]
    for n in range(len(score)):
        if n != taken and score[n] + margin > bar:
            best, bar = n, score[n] + margin
    figures[0] += bar - score[taken]
    flow[best] += scale
    flow[taken] -= scale


@fast_kernel
def _block(weights, turned, plan, rows, recipe, rooms, scratch, out):
    """A few rows forward and backward; the cycles of each. Writes rooms and all of out: gradient, figures, error."""
    began = cycles()
    first, advantage, value, kind, dueling = plan
    legal, score, flow = scratch
    observation, mask, action, goal, weight, shown = rows
    gradient, figures, error = out
    n, top, features, width = len(action), advantage.shape[0] - 1, first[2], first[3]
    x = np.empty((n, width), np.float32)
    _ahead(weights, turned, plan, observation, dueling, x, rooms)
    hidden, into = stage(rooms[0], advantage, top, n), stage(rooms[2], advantage, top, n)
    last, last_grad = layer_weight(weights, advantage, top), layer_weight(gradient, advantage, top)
    for i in range(n):
        if dueling or shown[i]:
            count = list_legal(mask[i], legal)
        else:
            count = 1
            legal[:5] = action[i]
        score_legal(hidden[i], last, _bias(weights, advantage, top), count, legal, score)
        taken = 0
        while legal[taken] != action[i]:
            taken += 1
        q = score[taken]
        if dueling:
            q += stage(rooms[1], value, value.shape[0], n)[i, 0] - _mean(score, count)
        error[i] = q - goal[i]
        push = pull(q, goal[i], weight[i], recipe, figures)
        flow[: count + 4] = _0
        if dueling:
            flow[:count] = -push / np.float32(count)
            stage(rooms[3], value, value.shape[0], n)[i, 0] = push
        flow[taken] += push
        if shown[i]:
            copy_shown(score[:count], taken, recipe, flow, figures)
        spread_legal(hidden[i], last, count, legal, flow, into[i], last_grad, _bias(gradient, advantage, top))
    between = cycles()
    tower_backward(weights, advantage, top, kind, n, rooms[0], rooms[2], gradient)
    dx = stage(rooms[2], advantage, 0, n)
    if dueling:
        tower_backward(weights, value, value.shape[0], kind, n, rooms[1], rooms[3], gradient)
        dx += stage(rooms[3], value, 0, n)
    deactivate(kind, x, dx)
    bias = gradient[first[1] : first[1] + width]
    for i in range(n):
        for h in range(width):
            bias[h] += dx[i, h]
    spread_bytes(observation, dx, gradient[first[0] : first[0] + features * width].reshape(features, width))
    return between - began, cycles() - between


@fast_kernel
def add_q_gradient(weights, target, plan, seen, known, lo, hi, recipe, double, gradient, error):
    """Add the gradient of the loss over rows [lo, hi). Writes gradient, error.

    Returns the sums of FIGURES, and the cycles that went into the loss and into the gradient.

    plan: first layer, advantage and value tower (see FlatWeights), activation, whether there is a value; seen:
    observation and mask of all rows, and of what they led to; known: action, reward, discount, importance weight and
    whether the row was shown; recipe: where Huber's loss becomes a line, what one row counts for, the margin of copies.
    """
    _, advantage, value, _, _ = plan
    observation, mask, beyond, beyond_mask = seen
    action, reward, discount, weight, shown = known
    turned, turned_target = np.empty_like(weights), np.empty_like(weights)
    for tower in (advantage, value):
        turn(weights, tower, tower.shape[0], turned)
        turn(target, tower, tower.shape[0], turned_target)
    a, v, actions = BLOCK * (advantage[:, 2].sum() + 1), BLOCK * (value[:, 2].sum() + 1), mask.shape[1] + 8
    empty = np.empty
    rooms = empty(a, np.float32), empty(v, np.float32), empty(a, np.float32), empty(v, np.float32)
    scratch = empty(actions, np.int64), empty(actions, np.float32), empty(actions, np.float32)
    figures, goal, forward, backward = np.zeros(len(FIGURES), np.float64), empty(BLOCK, np.float32), 0, 0
    turns = (turned, turned_target)
    for at in range(lo, hi, BLOCK):
        began, part = cycles(), slice(at, min(at + BLOCK, hi))
        goals = goal[: part.stop - at]
        led = (beyond[part], beyond_mask[part], reward[part], discount[part])
        _goals(weights, target, turns, plan, led, double, rooms, scratch, goals)
        forward += cycles() - began
        rows = (observation[part], mask[part], action[part], goals, weight[part], shown[part])
        out = (gradient, figures, error[part])
        ahead, back = _block(weights, turned, plan, rows, recipe, rooms, scratch, out)
        forward, backward = forward + ahead, backward + back
    return figures, forward, backward


@fast_kernel
def _follow(crew, weights, target, tau):
    """Move the target towards the weights, each thread its part; False if another thread has failed. Writes target."""
    began = cycles()
    for i in range(len(weights) * crew[0] // crew[1], len(weights) * (crew[0] + 1) // crew[1]):
        target[i] += tau * (weights[i] - target[i])
    crew[OPTIMIZER] += cycles() - began
    return meet(crew)


@fast_kernel
def q_steps(crew, state, learning_rate, eps, target, plan, seen, known, recipe, limits, minibatch, error, figures):
    """A step for each minibatch of the rows, one after the other. Writes state, target, error, figures.

    limits: whether the network picks the next action itself (double), the number of the first update, after how many
    the target moves, how far, and the largest norm of a gradient.
    """
    double, number, target_every, tau, max_norm = limits
    me, threads, gradient = crew[0], crew[1], state[1][crew[0]]
    for lo in range(0, len(error), minibatch):
        begin, end = lo + minibatch * me // threads, lo + minibatch * (me + 1) // threads
        args = (plan, seen, known, begin, end, recipe, double, gradient, error)
        found, forward, backward = add_q_gradient(state[0], target, *args)
        crew[LOSS] += forward
        crew[GRADIENT] += backward
        figures[me] += recipe[1] * found
        if not descend(crew, state, max_norm, learning_rate, eps):
            return
        number += 1
        if number % target_every == 0 and not _follow(crew, state[0], target, tau):
            return
