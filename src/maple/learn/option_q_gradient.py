"""The gradient of Q-learning over described options, for one thread's share of a minibatch, in kernel calls.

It says the same as `dqn_loss` over `taken_values` and `beyond_values`, and as `copying_loss`, by autograd, which are
its oracle in the tests and the way on other devices. Options go through the network in blocks that stay in a core's
cache. Without a dueling head an option's value needs no other option: then only the network's own pick among the
options beyond goes through the target, and of a decision itself only what was taken, unless it was shown.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import cycles, fast_kernel
from maple.learn.option_gradient import BLOCK, first_layer, keep_flowing, spread_kept
from maple.learn.q_gradient import FIGURES, copy_shown, pull
from maple.nets.dense import RELU, deactivate, stage, tower_backward, tower_forward, turn
from maple.nets.sparse import add_rows, spread_features, sum_features, sum_options

__all__ = ["add_choice_gradient", "add_option_q_gradient", "option_goals"]

_0 = np.float32(0)


@fast_kernel
def _turned(weights, tower):
    """A tower's weights the other way round."""
    turned = np.empty_like(weights)
    turn(weights, tower, tower.shape[0], turned)
    return turned


@fast_kernel
def _room(tower, rows):
    return np.empty(rows * (tower[:, 2].sum() + 1), np.float32)


@fast_kernel
def _most(offset):
    """The most options of a decision, or a block's."""
    most = BLOCK
    for i in range(len(offset) - 1):
        most = max(most, offset[i + 1] - offset[i])
    return most


@fast_kernel
def _up_to(offset, lo, most):
    """The decision before which a block of at most so many options ends."""
    hi = lo + 1
    while hi < len(offset) - 1 and offset[hi + 1] - offset[lo] <= most:
        hi += 1
    return hi


@fast_kernel
def _score_all(weights, layers, options, max_parts, score):
    """What a network makes of every option. Writes score."""
    first, tower = layers
    below, bias = first_layer(weights, first)
    offset, turned = options[0], _turned(weights, tower)
    most = _most(offset)
    values, lo = _room(tower, most), 0
    while lo < len(offset) - 1:
        hi = _up_to(offset, lo, most)
        n = offset[hi] - offset[lo]
        sum_options(below, bias, options, max_parts, lo, hi, stage(values, tower, 0, n))
        tower_forward(weights, turned, tower, tower.shape[0], RELU, n, values)
        score[offset[lo] : offset[hi]] = stage(values, tower, tower.shape[0], n)[:, 0]
        lo = hi


@fast_kernel
def _score_some(weights, layers, options, chosen, score):
    """What a network makes of one option of each decision. Writes score."""
    first, tower = layers
    below, bias = first_layer(weights, first)
    _, shared, shared_length, part, part_length, option_part = options
    turned, values = _turned(weights, tower), _room(tower, BLOCK)
    for lo in range(0, len(chosen), BLOCK):
        hi = min(lo + BLOCK, len(chosen))
        x = stage(values, tower, 0, hi - lo)
        for i in range(lo, hi):
            row = x[i - lo]
            row[:] = bias
            add_rows(below, shared[i], np.int64(shared_length[i]), row)
            for p in option_part[chosen[i]]:
                add_rows(below, part[p], np.int64(part_length[p]), row)
            for h in range(len(row)):
                row[h] = max(row[h], _0)
        tower_forward(weights, turned, tower, tower.shape[0], RELU, hi - lo, values)
        score[lo:hi] = stage(values, tower, tower.shape[0], hi - lo)[:, 0]


@fast_kernel
def _value_rows(weights, layers, feature, length, value):
    """What a network makes of rows of features. Writes value."""
    first, tower = layers
    below, bias = first_layer(weights, first)
    turned, values = _turned(weights, tower), _room(tower, BLOCK)
    for lo in range(0, len(length), BLOCK):
        hi = min(lo + BLOCK, len(length))
        sum_features(below, bias, feature[lo:hi], length[lo:hi], True, stage(values, tower, 0, hi - lo))
        tower_forward(weights, turned, tower, tower.shape[0], RELU, hi - lo, values)
        value[lo:hi] = stage(values, tower, tower.shape[0], hi - lo)[:, 0]


@fast_kernel
def _spread_rows(weights, layers, feature, length, flow, gradient):
    """The gradient of that, for a given one of its outcome. Writes gradient."""
    first, tower = layers
    (below, bias), (below_grad, bias_grad) = first_layer(weights, first), first_layer(gradient, first)
    turned, values, flows = _turned(weights, tower), _room(tower, BLOCK), _room(tower, BLOCK)
    for lo in range(0, len(length), BLOCK):
        hi = min(lo + BLOCK, len(length))
        n = hi - lo
        x, dx = stage(values, tower, 0, n), stage(flows, tower, 0, n)
        sum_features(below, bias, feature[lo:hi], length[lo:hi], True, x)
        tower_forward(weights, turned, tower, tower.shape[0], RELU, n, values)
        stage(flows, tower, tower.shape[0], n)[:, 0] = flow[lo:hi]
        tower_backward(weights, tower, tower.shape[0], RELU, n, values, flows, gradient)
        deactivate(RELU, x, dx)
        for i in range(n):
            for h in range(dx.shape[1]):
                bias_grad[h] += dx[i, h]
        spread_features(feature[lo:hi], length[lo:hi], dx, below_grad)


@fast_kernel
def option_goals(weights, target, plan, options, feature, length, led, double, goal):
    """What each decision's value should be: its reward and the target's judgement of the best option beyond.

    Writes goal. plan: see `add_option_q_gradient`; feature, length: the decisions
    beyond as they stand, none without a dueling head; led: reward and discount.
    """
    advantage, value, max_parts, dueling = plan
    reward, discount = led
    offset, decisions = options[0], len(reward)
    score, judged = np.empty(offset[decisions], np.float32), np.empty(decisions, np.float32)
    _score_all(weights if double else target, advantage, options, max_parts, score)
    best = np.empty(decisions, np.int64)
    for i in range(decisions):
        best[i] = offset[i] + np.argmax(score[offset[i] : offset[i + 1]])
    if dueling:
        _value_rows(target, value, feature, length, judged)
        if double:
            _score_all(target, advantage, options, max_parts, score)
        for i in range(decisions):
            judged[i] += score[best[i]] - score[offset[i] : offset[i + 1]].mean()
    elif double:
        _score_some(target, advantage, options, best, judged)
    else:
        judged[:] = score[best]
    for i in range(decisions):
        goal[i] = reward[i] + discount[i] * judged[i]


@fast_kernel
def _judge(offset, action, lo, hi, score, known, recipe, states, dueling, out):
    """The loss's gradient with regard to the scores of decisions [lo, hi). Writes all of out."""
    taken, goal, weight, shown = known
    flow, figures, error, state_flow = out
    begin = offset[lo]
    flow[:] = _0
    for i in range(lo, hi):
        a, b = offset[i] - begin, offset[i + 1] - begin
        at = a
        while action[begin + at] != taken[i]:
            at += 1
        q = score[at, 0]
        if dueling:
            q += states[i] - score[a:b, 0].mean()
        error[i] = q - goal[i]
        push = pull(q, goal[i], weight[i], recipe, figures)
        if dueling:
            flow[a:b, 0] = -push / np.float32(b - a)
            state_flow[i] = push
        flow[at, 0] += push
        if shown[i]:
            copy_shown(score[a:b, 0], at - a, recipe, flow[a:b, 0], figures)


@fast_kernel
def add_option_q_gradient(weights, plan, options, action, feature, length, known, recipe, gradient, error):
    """Add the gradient of the loss over decisions with all of their options. Writes gradient, error.

    Returns the sums of FIGURES, and the cycles that went into the loss and into the gradient.

    plan: first layer and tower of the advantages, of the value (see FlatWeights), parts of a decision at most, whether
    there is a value; feature, length: the decisions as they stand, none without a value; known: action, goal,
    importance weight, whether it was shown; recipe: where Huber's loss becomes a line, what a row counts for, the
    margin of copies.
    """
    began = cycles()
    (first, tower), value, max_parts, dueling = plan
    offset, layers, decisions = options[0], tower.shape[0], len(known[0])
    (below, bias), (below_grad, bias_grad) = first_layer(weights, first), first_layer(gradient, first)
    states, state_flow = np.zeros(decisions, np.float32), np.zeros(decisions, np.float32)
    if dueling:
        _value_rows(weights, value, feature, length, states)
    most, turned, figures = _most(offset), _turned(weights, tower), np.zeros(len(FIGURES), np.float64)
    values, flows, kept = _room(tower, most), _room(tower, most), (_room(tower, most), _room(tower, most))
    which, lo = np.empty(most + 1, np.int64), 0
    forward, backward = cycles() - began, 0
    while lo < decisions:
        began, hi = cycles(), _up_to(offset, lo, most)
        n = offset[hi] - offset[lo]
        sum_options(below, bias, options, max_parts, lo, hi, stage(values, tower, 0, n))
        tower_forward(weights, turned, tower, layers, RELU, n, values)
        score, flow = stage(values, tower, layers, n), stage(flows, tower, layers, n)
        out = (flow, figures, error, state_flow)
        _judge(offset, action, lo, hi, score, known, recipe, states, dueling, out)
        between = cycles()
        count = keep_flowing(tower, n, values, flows, which, kept)
        tower_backward(weights, tower, layers, RELU, count, kept[0], kept[1], gradient)
        x, dx = stage(kept[0], tower, 0, count), stage(kept[1], tower, 0, count)
        spread_kept(options, lo, hi, which, count, x, dx, below_grad, bias_grad)
        forward, backward = forward + between - began, backward + cycles() - between
        lo = hi
    if dueling:
        began = cycles()
        _spread_rows(weights, value, feature, length, state_flow, gradient)
        backward += cycles() - began
    return figures, forward, backward


@fast_kernel
def add_choice_gradient(weights, plan, feature, length, known, recipe, gradient, error):
    """The same over decisions of which only the taken option is looked at: `feature`, `length` describe it.

    Not for a dueling head, nor for decisions that were shown. Writes gradient, error.
    """
    began = cycles()
    _, goal, weight, _ = known
    figures, flow = np.zeros(len(FIGURES), np.float64), np.empty(len(goal), np.float32)
    _value_rows(weights, plan[0], feature, length, error)
    for i in range(len(goal)):
        flow[i] = pull(error[i], goal[i], weight[i], recipe, figures)
        error[i] -= goal[i]
    between = cycles()
    _spread_rows(weights, plan[0], feature, length, flow, gradient)
    return figures, between - began, cycles() - between
