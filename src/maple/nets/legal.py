"""Last layers over legal actions alone, as kernels: what is not legal costs nothing, forward or backward."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import fast_kernel

__all__ = ["list_legal", "score_legal", "spread_legal"]

_0 = np.float32(0)


@fast_kernel
def list_legal(mask, legal):
    """The legal actions of one row, then the last again, four at a time being read; returns how many. Writes legal."""
    n = 0
    for a in range(mask.shape[0]):
        legal[n] = a
        n += mask[a]
    for j in range(n, n + 4):
        legal[j] = legal[n - 1]
    return n


@fast_kernel
def score_legal(x, weight, bias, n, legal, score):
    """The scores of one row's `n` legal actions, four at a time. Writes score."""
    for j in range(0, n, 4):
        w0, w1, w2, w3 = weight[legal[j]], weight[legal[j + 1]], weight[legal[j + 2]], weight[legal[j + 3]]
        s0, s1, s2, s3 = bias[legal[j]], bias[legal[j + 1]], bias[legal[j + 2]], bias[legal[j + 3]]
        for h in range(x.shape[0]):
            s0 += x[h] * w0[h]
            s1 += x[h] * w1[h]
            s2 += x[h] * w2[h]
            s3 += x[h] * w3[h]
        score[j], score[j + 1], score[j + 2], score[j + 3] = s0, s1, s2, s3


@fast_kernel
def spread_legal(x, weight, n, legal, flow, into, weight_grad, bias_grad):
    """Where the gradient `flow` of those scores goes. Writes into, weight_grad, bias_grad."""
    into[:] = _0
    for j in range(0, n, 4):
        w0, w1, w2, w3 = weight[legal[j]], weight[legal[j + 1]], weight[legal[j + 2]], weight[legal[j + 3]]
        f0, f1, f2, f3 = flow[j], flow[j + 1], flow[j + 2], flow[j + 3]
        for h in range(x.shape[0]):
            into[h] += f0 * w0[h] + f1 * w1[h] + f2 * w2[h] + f3 * w3[h]
    for j in range(n):
        f, row = flow[j], weight_grad[legal[j]]
        bias_grad[legal[j]] += f
        for h in range(x.shape[0]):
            row[h] += f * x[h]
