"""Choosing from scores: one pass over a row, one random number a row, no distribution objects."""

from __future__ import annotations

import math

from maple.core.kernels import kernel

__all__ = ["best_option", "best_options", "explore_mask", "explore_options", "sample_mask", "sample_options"]


@kernel
def sample_mask(logits, mask, uniform, greedy, action, log_prob):
    """An action of the softmax over each row's legal indices, or its mode. Writes action, log_prob."""
    for i in range(mask.shape[0]):
        best = -1
        for a in range(mask.shape[1]):
            if mask[i, a] and (best < 0 or logits[i, a] > logits[i, best]):
                best = a
        top, total = logits[i, best], 0.0
        for a in range(mask.shape[1]):
            if mask[i, a]:
                total += math.exp(logits[i, a] - top)
        chosen = best
        if not greedy:
            left = uniform[i] * total
            for a in range(mask.shape[1]):
                if mask[i, a]:
                    left -= math.exp(logits[i, a] - top)
                    if left < 0:
                        chosen = a
                        break
        action[i] = chosen
        log_prob[i] = logits[i, chosen] - top - math.log(total)


@kernel
def explore_mask(score, mask, uniform, second, epsilon, action, best):
    """Each row's best legal index, or with probability epsilon any of them. Writes action, best."""
    for i in range(mask.shape[0]):
        top, legal = -1, 0
        for a in range(mask.shape[1]):
            if mask[i, a]:
                legal += 1
                if top < 0 or score[i, a] > score[i, top]:
                    top = a
        best[i] = action[i] = top
        if uniform[i] < epsilon:
            left = int(second[i] * legal)
            for a in range(mask.shape[1]):
                if mask[i, a]:
                    if left == 0:
                        action[i] = a
                        break
                    left -= 1


@kernel
def best_option(offset, score, i):
    """The option of decision i with the highest score; the first of equals."""
    best = offset[i]
    for n in range(offset[i], offset[i + 1]):
        if score[n] > score[best]:
            best = n
    return best


@kernel
def best_options(offset, score, best):
    """The same of every decision. Writes best."""
    for i in range(offset.shape[0] - 1):
        best[i] = best_option(offset, score, i)


@kernel
def sample_options(offset, logits, uniform, greedy, chosen, log_prob):
    """An option of the softmax over each decision's own options, or its mode. Writes chosen, log_prob."""
    for i in range(offset.shape[0] - 1):
        best = best_option(offset, logits, i)
        top, total = logits[best], 0.0
        for n in range(offset[i], offset[i + 1]):
            total += math.exp(logits[n] - top)
        chosen[i] = best
        if not greedy:
            left = uniform[i] * total
            for n in range(offset[i], offset[i + 1]):
                left -= math.exp(logits[n] - top)
                if left < 0:
                    chosen[i] = n
                    break
        log_prob[i] = logits[chosen[i]] - top - math.log(total)


@kernel
def explore_options(offset, score, uniform, second, epsilon, temperature, chosen, best):
    """The best option, or with probability epsilon one of a softmax. Writes chosen, best."""
    for i in range(offset.shape[0] - 1):
        best[i] = best_option(offset, score, i)
        chosen[i] = best[i]
        if uniform[i] < epsilon:
            top, total = score[best[i]], 0.0
            for n in range(offset[i], offset[i + 1]):
                total += math.exp((score[n] - top) / temperature)
            left = second[i] * total
            for n in range(offset[i], offset[i + 1]):
                left -= math.exp((score[n] - top) / temperature)
                if left < 0:
                    chosen[i] = n
                    break
