"""Dense layers as kernels: what a thread needs to take rows forward and backward without Python.

Between minibatches of a few hundred rows, torch spends its time on operators and their bookkeeping, and two threads
spend theirs on the GIL. These kernels take a thread's whole share in one call. Weights are laid out as torch has them,
(out, in), so that both read the same memory.

A tower is a table with a row per layer: where its weight and its bias begin in the flat vector of a network's weights,
how many values go in and come out, and how many values a row holds before this layer's input. The rows' values at all
stages lie one stage after the other in one scratch vector, and so do their gradients.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import fast_kernel, float_from_bits

__all__ = [
    "RELU",
    "TANH",
    "activate",
    "add_product",
    "deactivate",
    "exp",
    "layer_weight",
    "stage",
    "tower_backward",
    "tower_forward",
    "turn",
]

RELU, TANH = 0, 1

_0 = np.float32(0)
_1 = np.float32(1)
_9 = np.float32(9)


@fast_kernel
def add_product(a, b, out):
    """out += a @ b, in tiles of four rows of a and four of b. Writes out."""
    rows, inner = a.shape
    width, tall, whole = out.shape[1], rows - rows % 4, inner - inner % 4
    for i in range(0, tall, 4):
        o, p, q, r = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(0, whole, 4):
            o0, o1, o2, o3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            p0, p1, p2, p3 = a[i + 1, k], a[i + 1, k + 1], a[i + 1, k + 2], a[i + 1, k + 3]
            q0, q1, q2, q3 = a[i + 2, k], a[i + 2, k + 1], a[i + 2, k + 2], a[i + 2, k + 3]
            r0, r1, r2, r3 = a[i + 3, k], a[i + 3, k + 1], a[i + 3, k + 2], a[i + 3, k + 3]
            b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
            for h in range(width):
                x0, x1, x2, x3 = b0[h], b1[h], b2[h], b3[h]
                o[h] += o0 * x0 + o1 * x1 + o2 * x2 + o3 * x3
                p[h] += p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
                q[h] += q0 * x0 + q1 * x1 + q2 * x2 + q3 * x3
                r[h] += r0 * x0 + r1 * x1 + r2 * x2 + r3 * x3
        for j in range(i, i + 4):
            _add_row(a[j], b, whole, inner, out[j])
    for i in range(tall, rows):
        o = out[i]
        for k in range(0, whole, 4):
            o0, o1, o2, o3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
            for h in range(width):
                o[h] += o0 * b0[h] + o1 * b1[h] + o2 * b2[h] + o3 * b3[h]
        _add_row(a[i], b, whole, inner, o)


@fast_kernel
def _add_row(a, b, lo, hi, out):
    """out += a[lo:hi] @ b[lo:hi], for one row. Writes out."""
    for k in range(lo, hi):
        for h in range(len(out)):
            out[h] += a[k] * b[k, h]


@fast_kernel
def _affine(x, turned, bias, out):
    """out = x @ turned + bias, `turned` being the layer's weight the other way round. Writes out."""
    for i in range(out.shape[0]):
        for h in range(out.shape[1]):
            out[i, h] = bias[h]
    add_product(x, turned, out)


@fast_kernel
def _spread_affine(x, weight, flow, weight_grad, bias_grad, into):
    """Where the gradient `flow` of a layer's output goes. Writes weight_grad, bias_grad, into."""
    for i in range(flow.shape[0]):
        for h in range(flow.shape[1]):
            bias_grad[h] += flow[i, h]
    add_product(flow.T, x, weight_grad)
    into[:] = _0
    add_product(flow, weight, into)


@fast_kernel
def activate(kind, x):
    """Apply an activation. Writes x."""
    flat = x.reshape(x.size)
    if kind == RELU:
        for i in range(flat.size):
            flat[i] = max(flat[i], _0)
    else:
        for i in range(flat.size):
            flat[i] = _tanh(flat[i])


@fast_kernel
def deactivate(kind, y, flow):
    """Take a gradient back through an activation that gave y. Writes flow."""
    ys, flows = y.reshape(y.size), flow.reshape(flow.size)
    if kind == RELU:
        for i in range(ys.size):
            flows[i] = flows[i] if ys[i] > _0 else _0
    else:
        for i in range(ys.size):
            flows[i] *= _1 - ys[i] * ys[i]


@fast_kernel
def _tanh(x):
    """tanh by its continued fraction at a quarter of x, doubled twice: to 1e-6, and without a call in the loop."""
    t = max(min(x, _9), -_9) * np.float32(0.25)
    s = t * t
    above = np.float32(135135) + s * (np.float32(17325) + s * (np.float32(378) + s))
    below = np.float32(135135) + s * (np.float32(62370) + s * (np.float32(3150) + s * np.float32(28)))
    t = t * above / below
    t = np.float32(2) * t / (_1 + t * t)
    return np.float32(2) * t / (_1 + t * t)


@fast_kernel
def exp(x):
    """e to the power of x for x from -87 to 88, without a call in the loop: 2**n times a polynomial, to 2e-7."""
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    r = (x - n * np.float32(0.693145751953125)) - n * np.float32(1.428606765330187e-06)
    p = np.float32(1 / 120) + r * np.float32(1 / 720)
    p = _1 + r * (_1 + r * (np.float32(0.5) + r * (np.float32(1 / 6) + r * (np.float32(1 / 24) + r * p))))
    return p * float_from_bits(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))


@fast_kernel
def stage(vector, tower, layer, rows):
    """The values (or gradients) of rows that go into a layer; one layer too many is what comes out of the last."""
    last = min(layer, tower.shape[0] - 1)
    begin, width = tower[last, 4], tower[last, 2]
    if layer > last:
        begin, width = begin + width, tower[last, 3]
    return vector[rows * begin : rows * (begin + width)].reshape(rows, width)


@fast_kernel
def layer_weight(vector, tower, layer):
    """A layer's weight (out, in) in a flat vector."""
    begin, width, height = tower[layer, 0], tower[layer, 2], tower[layer, 3]
    return vector[begin : begin + width * height].reshape(height, width)


@fast_kernel
def _layer_bias(vector, tower, layer):
    return vector[tower[layer, 1] : tower[layer, 1] + tower[layer, 3]]


@fast_kernel
def turn(weights, tower, layers, turned):
    """Turn the weights of the first `layers` layers the other way round, each in its place. Writes turned."""
    for layer in range(layers):
        weight = layer_weight(weights, tower, layer)
        height, width = weight.shape
        other = turned[tower[layer, 0] : tower[layer, 0] + height * width].reshape(width, height)
        for k in range(width):
            for h in range(height):
                other[k, h] = weight[h, k]


@fast_kernel
def tower_forward(weights, turned, tower, layers, kind, rows, values):
    """Take rows through the first `layers` layers of a tower. Writes values."""
    for layer in range(layers):
        out = stage(values, tower, layer + 1, rows)
        begin, width, height = tower[layer, 0], tower[layer, 2], tower[layer, 3]
        other = turned[begin : begin + width * height].reshape(width, height)
        _affine(stage(values, tower, layer, rows), other, _layer_bias(weights, tower, layer), out)
        if layer + 1 < tower.shape[0]:
            activate(kind, out)


@fast_kernel
def tower_backward(weights, tower, layers, kind, rows, values, flows, gradient):
    """Take gradients back through the first `layers` layers of a tower. Writes flows, gradient."""
    for layer in range(layers - 1, -1, -1):
        flow = stage(flows, tower, layer + 1, rows)
        if layer + 1 < tower.shape[0]:
            deactivate(kind, stage(values, tower, layer + 1, rows), flow)
        into = layer_weight(gradient, tower, layer), _layer_bias(gradient, tower, layer)
        x, weight = stage(values, tower, layer, rows), layer_weight(weights, tower, layer)
        _spread_affine(x, weight, flow, into[0], into[1], stage(flows, tower, layer, rows))
