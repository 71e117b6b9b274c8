"""Small networks that choose in one kernel call.

For the few rows of a handful of envs torch spends its time on operators and their bookkeeping. A row's figures depend
on that row alone, so it does not matter how rows are split over calls, threads or processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maple.core.kernels import fast_kernel
from maple.nets.dense import activate
from maple.nets.sampling import explore_mask, sample_mask
from maple.nets.sparse import sum_bytes

__all__ = ["choose_index", "choose_value", "is_small", "tower_arrays"]

SMALL = 40_000  # weights of dense layers: beyond, torch's products win even with few rows

_0 = np.float32(0)
_1 = np.float32(1)


def _linear(tower: nn.Sequential) -> list[nn.Linear]:
    return [layer for layer in tower if isinstance(layer, nn.Linear)]


def is_small(*towers: nn.Sequential) -> bool:
    """Whether kernels take rows through these towers sooner than torch does."""
    return sum(layer.weight.numel() for tower in towers for layer in _linear(tower)) <= SMALL


def tower_arrays(tower: nn.Sequential) -> tuple[tuple[NDArray[Any], ...], tuple[NDArray[Any], ...]]:
    """Weights (out, in) and biases of a tower as they are now, layer by layer."""
    found = _linear(tower)
    return tuple(x.weight.detach().numpy() for x in found), tuple(x.bias.detach().numpy() for x in found)


@fast_kernel
def _dense(x, weight, bias, out):
    """out = x @ weight.T + bias. Writes out."""
    for i in range(out.shape[0]):
        row = x[i]
        for h in range(out.shape[1]):
            w, total = weight[h], _0
            for k in range(w.shape[0]):
                total += w[k] * row[k]
            out[i, h] = total + bias[h]


@fast_kernel
def _through(x, tower, kind):
    """What comes out of a tower's last layer."""
    weights, biases = tower
    for layer in range(len(weights)):
        out = np.empty((x.shape[0], weights[layer].shape[0]), np.float32)
        _dense(x, weights[layer], biases[layer], out)
        if layer + 1 < len(weights):
            activate(kind, out)
        x = out
    return x


@fast_kernel
def choose_index(first, towers, kind, observation, mask, uniform, greedy, action, log_prob, value):
    """Choose from the logits of a first layer and two towers, each half of it below. Writes action, log_prob, value."""
    weight, bias = first
    x = np.empty((observation.shape[0], weight.shape[1]), np.float32)
    sum_bytes(weight, bias, observation, False, x)
    activate(kind, x)
    half = weight.shape[1] // 2
    logits = _through(x[:, :half].copy(), towers[0], kind)
    value[:] = _through(x[:, half:].copy(), towers[1], kind)[:, 0]
    sample_mask(logits, mask, uniform, greedy, action, log_prob)


@fast_kernel
def _scores(advantage, value, mask, atoms, score):
    """Means of each action's atoms; with a value, over the mean of the legal ones and on top of it. Writes score."""
    share = _1 / np.float32(atoms)
    for i in range(score.shape[0]):
        legal, total, base = _0, _0, _0
        for a in range(score.shape[1]):
            mean = _0
            for k in range(atoms):
                mean += advantage[i, a * atoms + k]
            score[i, a] = mean * share
            if mask[i, a]:
                legal, total = legal + _1, total + score[i, a]
        if value.shape[1]:
            for k in range(atoms):
                base += value[i, k]
            base = base * share - total / legal
        for a in range(score.shape[1]):
            score[i, a] += base


@fast_kernel
def choose_value(first, advantage, value, dueling, kind, atoms, observation, mask, draws, epsilon, action, best, score):
    """The best of the values of a first layer and one or two towers, or another. Writes action, best, score."""
    weight, bias = first
    x = np.empty((observation.shape[0], weight.shape[1]), np.float32)
    sum_bytes(weight, bias, observation, False, x)
    activate(kind, x)
    alone = _through(x, value, kind) if dueling else np.empty((x.shape[0], 0), np.float32)
    _scores(_through(x, advantage, kind), alone, mask, atoms, score)
    explore_mask(score, mask, draws[0], draws[1], epsilon, action, best)
