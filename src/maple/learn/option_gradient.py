"""The gradient of PPO over described options, for one thread's share of a minibatch, in one kernel call.

It says the same as `ppo_loss` over `judge_options` by autograd, which is its oracle in the tests and the way on other
devices. A share has tens of thousands of options; they go forward and backward in blocks that stay in a core's cache.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import cycles, fast_kernel
from maple.learn.index_gradient import FIGURES, policy_flow, soften, value_flow
from maple.nets.dense import RELU, deactivate, stage, tower_backward, tower_forward, turn
from maple.nets.sparse import spread_features, spread_row, sum_features, sum_options

__all__ = ["BLOCK", "FAINT", "add_option_gradient", "first_layer", "keep_flowing", "spread_kept"]

BLOCK = 128  # options, or decisions, at a time
FAINT = 1e-4  # probability of options whose gradient is left out: below this, it is nothing beside the others'

_0 = np.float32(0)


@fast_kernel
def first_layer(vector, first):
    """A first layer's weight and bias in a flat vector."""
    features, width = first[2], first[3]
    return vector[first[0] : first[0] + features * width].reshape(features, width), vector[first[1] : first[1] + width]


@fast_kernel
def _judge(offset, action, lo, hi, logits, known, recipe, flow, figures):
    """The loss's gradient with regard to the options' logits of decisions [lo, hi). Writes flow, figures.

    Options that the policy would not take pull on nothing: their gradient is left out.
    """
    taken, old_log_prob, _, advantage, _, shown = known
    begin, faint = offset[lo], recipe[7]
    log_p, p = np.empty(len(logits), np.float32), np.empty(len(logits), np.float32)
    for i in range(lo, hi):
        a, b = offset[i] - begin, offset[i + 1] - begin
        log_p[a:b] = logits[a:b, 0]
        soften(b - a, log_p[a:b], p[a:b])
        gain = (advantage[i] - recipe[5]) * recipe[6]
        own = action[offset[i] : offset[i + 1]]
        args = (taken[i], old_log_prob[i], gain, shown[i], recipe, flow[a:b, 0], figures)
        policy_flow(b - a, own, log_p[a:b], p[a:b], *args)
        for n in range(a, b):
            if p[n] < faint and own[n - a] != taken[i]:
                flow[n, 0] = _0


@fast_kernel
def keep_flowing(tower, rows, values, flows, which, kept):
    """Take along only the rows whose gradient is not zero. Writes which, kept (values, flows); returns how many."""
    count, layers = 0, tower.shape[0]
    flow = stage(flows, tower, layers, rows)
    for n in range(rows):
        which[count] = n
        count += flow[n, 0] != _0
    for layer in range(layers):
        own, new = stage(values, tower, layer, rows), stage(kept[0], tower, layer, count)
        for k in range(count):
            new[k] = own[which[k]]
    new = stage(kept[1], tower, layers, count)
    for k in range(count):
        new[k] = flow[which[k]]
    return count


@fast_kernel
def spread_kept(options, lo, hi, which, count, x, dx, into, bias):
    """The gradient of the first layer, for the options that were kept. Writes into, bias."""
    offset, shared, shared_length, part, part_length, option_part = options
    width = into.shape[1]
    flow, base = np.empty(width, np.float32), np.empty(width, np.float32)
    k = 0
    for i in range(lo, hi):
        base[:] = _0
        while k < count and which[k] < offset[i + 1] - offset[lo]:
            for h in range(width):
                flow[h] = dx[k, h] if x[k, h] > _0 else _0
                base[h] += flow[h]
            for p in option_part[offset[lo] + which[k]]:
                spread_row(part[p], part_length[p], flow, into)
            k += 1
        for h in range(width):
            bias[h] += base[h]
        spread_row(shared[i], shared_length[i], base, into)


@fast_kernel
def _actor(weights, turned, plan, options, action, known, recipe, gradient, figures):
    """All decisions through the actor and back; the cycles of each way. Writes gradient, figures."""
    first, tower, _, _, max_parts = plan
    offset, layers, forward, backward = options[0], tower.shape[0], 0, 0
    (below, bias), (below_grad, bias_grad) = first_layer(weights, first), first_layer(gradient, first)
    most = BLOCK
    for i in range(len(offset) - 1):
        most = max(most, offset[i + 1] - offset[i])
    room, which = most * (tower[:, 2].sum() + 1), np.empty(most + 1, np.int64)
    values, flows = np.empty(room, np.float32), np.empty(room, np.float32)
    kept = np.empty(room, np.float32), np.empty(room, np.float32)
    lo = 0
    while lo < len(offset) - 1:
        hi, began = lo + 1, cycles()
        while hi < len(offset) - 1 and offset[hi + 1] - offset[lo] <= most:
            hi += 1
        n = offset[hi] - offset[lo]
        sum_options(below, bias, options, max_parts, lo, hi, stage(values, tower, 0, n))
        tower_forward(weights, turned, tower, layers, RELU, n, values)
        logits, flow = stage(values, tower, layers, n), stage(flows, tower, layers, n)
        _judge(offset, action, lo, hi, logits, known, recipe, flow, figures)
        between = cycles()
        count = keep_flowing(tower, n, values, flows, which, kept)
        tower_backward(weights, tower, layers, RELU, count, kept[0], kept[1], gradient)
        x, dx = stage(kept[0], tower, 0, count), stage(kept[1], tower, 0, count)
        spread_kept(options, lo, hi, which, count, x, dx, below_grad, bias_grad)
        forward, backward = forward + between - began, backward + cycles() - between
        lo = hi
    return forward, backward


@fast_kernel
def _critic(weights, turned, plan, feature, length, known, recipe, gradient, figures):
    """All decisions through the critic and back; the cycles of each way. Writes gradient, figures."""
    _, _, first, tower, _ = plan
    _, _, old_value, _, returns, _ = known
    layers, forward, backward = tower.shape[0], 0, 0
    (below, bias), (below_grad, bias_grad) = first_layer(weights, first), first_layer(gradient, first)
    room = BLOCK * (tower[:, 2].sum() + 1)
    values, flows = np.empty(room, np.float32), np.empty(room, np.float32)
    for lo in range(0, len(length), BLOCK):
        hi, began = min(lo + BLOCK, len(length)), cycles()
        n = hi - lo
        x, dx = stage(values, tower, 0, n), stage(flows, tower, 0, n)
        sum_features(below, bias, feature[lo:hi], length[lo:hi], True, x)
        tower_forward(weights, turned, tower, layers, RELU, n, values)
        value, flow = stage(values, tower, layers, n), stage(flows, tower, layers, n)
        for i in range(n):
            flow[i, 0] = value_flow(value[i, 0], old_value[lo + i], returns[lo + i], recipe, figures)
        between = cycles()
        tower_backward(weights, tower, layers, RELU, n, values, flows, gradient)
        deactivate(RELU, x, dx)
        for i in range(n):
            for h in range(dx.shape[1]):
                bias_grad[h] += dx[i, h]
        spread_features(feature[lo:hi], length[lo:hi], dx, below_grad)
        forward, backward = forward + between - began, backward + cycles() - between
    return forward, backward


@fast_kernel
def add_option_gradient(weights, plan, options, action, feature, length, known, recipe, gradient):
    """Add the gradient of the loss over the decisions of a share. Writes gradient.

    Returns the sums of FIGURES, and the cycles that went into the loss and into the gradient.

    plan: first layer and tower of the actor, of the critic (see FlatWeights), parts of a decision at most; options: see
    `sum_options`, with their actions; feature, length: the decisions as they stand; known and recipe: as for indices,
    and the probability below which an option's gradient is left out.
    """
    figures, turned = np.zeros(len(FIGURES), np.float64), np.empty_like(weights)
    turn(weights, plan[1], plan[1].shape[0], turned)
    turn(weights, plan[3], plan[3].shape[0], turned)
    ahead, back = _actor(weights, turned, plan, options, action, known, recipe, gradient, figures)
    forward, backward = _critic(weights, turned, plan, feature, length, known, recipe, gradient, figures)
    return figures, ahead + forward, back + backward
