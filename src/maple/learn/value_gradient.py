"""The gradient of after-state values' squared error, for one thread's share of a minibatch, in one kernel call.

It says the same as the mean squared error of `OptionValue` by autograd, its oracle in the tests.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import cycles, fast_kernel
from maple.learn.descent import GRADIENT, LOSS, descend, share_of
from maple.nets.dense import RELU, deactivate, stage, tower_backward, tower_forward, turn
from maple.nets.sparse import spread_features, sum_features

__all__ = ["add_value_gradient", "value_epoch"]

BLOCK = 64  # rows at a time: their values at all stages stay in a core's own cache

_2 = np.float32(2)


@fast_kernel
def add_value_gradient(weights, first, tower, feature, length, target, rows, scale, gradient):
    """Add the gradient of the squared error over `rows`, times `scale`. Writes gradient.

    Returns the sum of the squared errors and the cycles that went into the loss and into the gradient.
    """
    features, width = first[2], first[3]
    below = weights[first[0] : first[0] + features * width].reshape(features, width)
    below_grad = gradient[first[0] : first[0] + features * width].reshape(features, width)
    bias, bias_grad = weights[first[1] : first[1] + width], gradient[first[1] : first[1] + width]
    layers = tower.shape[0]
    room = BLOCK * (tower[:, 2].sum() + tower[layers - 1, 3])
    values, flows = np.empty(room, np.float32), np.empty(room, np.float32)
    turned = np.empty_like(weights)
    turn(weights, tower, layers, turned)
    error, forward, backward = 0.0, 0, 0
    for lo in range(0, len(rows), BLOCK):
        part = rows[lo : min(lo + BLOCK, len(rows))]
        n, began = len(part), cycles()
        lists, lengths = feature[part], length[part]
        x, dx = stage(values, tower, 0, n), stage(flows, tower, 0, n)
        sum_features(below, bias, lists, lengths, True, x)
        tower_forward(weights, turned, tower, layers, RELU, n, values)
        out, flow = stage(values, tower, layers, n), stage(flows, tower, layers, n)
        for i in range(n):
            for c in range(out.shape[1]):
                off = out[i, c] - target[part[i], c]
                error += off * off
                flow[i, c] = scale * _2 * off
        between = cycles()
        tower_backward(weights, tower, layers, RELU, n, values, flows, gradient)
        deactivate(RELU, x, dx)
        for i in range(n):
            for h in range(width):
                bias_grad[h] += dx[i, h]
        spread_features(lists, lengths, dx, below_grad)
        forward, backward = forward + between - began, backward + cycles() - between
    return error, forward, backward


@fast_kernel
def value_epoch(crew, state, learning_rate, eps, first, tower, feature, length, target, order, minibatch, errors):
    """Steps over all of `order`, a minibatch at a time; adds each thread's squared errors. Writes state, errors."""
    for lo in range(0, len(order) - minibatch // 2, minibatch):
        rows = order[lo : min(lo + minibatch, len(order))]
        gradient, scale = state[1][crew[0]], np.float32(1 / (len(rows) * target.shape[1]))
        args = (feature, length, target, share_of(crew, rows), scale, gradient)
        error, forward, backward = add_value_gradient(state[0], first, tower, *args)
        errors[crew[0]] += scale * error
        crew[LOSS] += forward
        crew[GRADIENT] += backward
        if not descend(crew, state, np.float32(0), learning_rate, eps):
            return
