"""The gradient of masked PPO over plain indices, for one thread's share of a minibatch, in one kernel call.

It says the same as `ppo_loss` over `judge_indices` by autograd, which is its oracle in the tests and the way on other
devices. Only what is there is paid for: bytes that are not zero at the bottom, legal actions at the top.
"""

from __future__ import annotations

import numpy as np

from maple.core.kernels import cycles, fast_kernel
from maple.learn.descent import GRADIENT, LOSS, descend, share_of
from maple.nets.dense import activate, deactivate, exp, layer_weight, stage, tower_backward, tower_forward, turn
from maple.nets.legal import list_legal, score_legal, spread_legal
from maple.nets.sparse import spread_bytes, sum_bytes

__all__ = ["FIGURES", "add_index_gradient", "index_epoch", "policy_flow", "soften", "value_flow"]

FIGURES = ("policy_loss", "value_loss", "entropy", "kl", "clipped")

BLOCK = 64  # rows at a time: their values at all stages stay in a core's own cache

_0 = np.float32(0)
_1 = np.float32(1)
_2 = np.float32(2)
_LEAST = np.float32(-80)  # e to this is nothing


@fast_kernel
def soften(n, log_p, p):
    """From one row's logits to log-probabilities and probabilities. Writes log_p, p."""
    top = log_p[0]
    for j in range(1, n):
        top = max(top, log_p[j])
    total = _0
    for j in range(n):
        p[j] = exp(max(log_p[j] - top, _LEAST))
    for j in range(n):
        total += p[j]  # on its own: in the loop above, how it is added up would depend on where the arrays lie
    shift, share = top + np.log(total), _1 / total
    for j in range(n):
        log_p[j] -= shift
        p[j] *= share


@fast_kernel
def policy_flow(n, legal, log_p, p, taken, old_log_prob, advantage, shown, recipe, flow, figures):
    """The loss's gradient with regard to one row's legal logits; what was shown is copied. Writes flow, figures."""
    clip, entropy_weight, scale = recipe[0], recipe[1], recipe[4]
    entropy, at = _0, 0
    for j in range(n):
        entropy -= p[j] * log_p[j]
        if legal[j] == taken:
            at = j
    if shown:
        for j in range(n):
            flow[j] = scale * p[j]
        flow[at] -= scale
        figures[0] -= log_p[at]
        return
    log_ratio = log_p[at] - old_log_prob
    ratio = np.exp(log_ratio)
    kept = advantage * ratio
    bound = advantage * min(max(ratio, _1 - clip), _1 + clip)
    pull = -kept if kept <= bound else _0
    for j in range(n):
        flow[j] = scale * p[j] * (entropy_weight * (log_p[j] + entropy) - pull)
    flow[at] += scale * pull
    figures[0] -= min(kept, bound)
    figures[2] += entropy
    figures[3] += (ratio - _1) - log_ratio
    figures[4] += _1 if abs(ratio - _1) > clip else _0


@fast_kernel
def value_flow(value, old_value, target, recipe, figures):
    """The loss's gradient with regard to one row's value. Writes figures."""
    weight, clip, scale = recipe[2], recipe[3], recipe[4]
    off = value - target
    error, flow = off * off, _2 * off
    if clip > _0 and abs(value - old_value) > clip:
        near = (old_value + clip if value > old_value else old_value - clip) - target
        if near * near > error:
            error, flow = near * near, _0
    figures[1] += error
    return scale * weight * flow


@fast_kernel
def _head(hidden, weights, actor, mask, rows, known, recipe, into, gradient, figures):
    """The actor's last layer, forward and backward, over legal actions alone. Writes into, gradient, figures."""
    action, old_log_prob, _, advantage, _, shown = known
    top = actor.shape[0] - 1
    weight, weight_grad = layer_weight(weights, actor, top), layer_weight(gradient, actor, top)
    bias = weights[actor[top, 1] : actor[top, 1] + actor[top, 3]]
    bias_grad = gradient[actor[top, 1] : actor[top, 1] + actor[top, 3]]
    legal = np.empty(mask.shape[1] + 4, np.int64)
    log_p = np.empty(mask.shape[1] + 4, np.float32)
    p = np.empty(mask.shape[1] + 4, np.float32)
    flow = np.empty(mask.shape[1] + 4, np.float32)
    for i in range(len(rows)):
        r = rows[i]
        n = list_legal(mask[r], legal)
        score_legal(hidden[i], weight, bias, n, legal, log_p)
        soften(n, log_p, p)
        gain = (advantage[r] - recipe[5]) * recipe[6]
        policy_flow(n, legal, log_p, p, action[r], old_log_prob[r], gain, shown[r], recipe, flow, figures)
        flow[n : n + 4] = _0
        spread_legal(hidden[i], weight, n, legal, flow, into[i], weight_grad, bias_grad)


@fast_kernel
def _block(weights, turned, plan, seen, rows, known, recipe, rooms, gradient, figures):
    """A few rows forward and backward; returns the cycles of each. Writes rooms, gradient, figures.

    The actor's last layer counts as forward with all it does.
    """
    began = cycles()
    first, actor, critic, kind = plan
    observation, mask = seen
    _, _, old_value, _, returns, _ = known
    actor_values, actor_flows, critic_values, critic_flows = rooms
    n, features, width = len(rows), first[2], first[3]
    half = width // 2
    below = weights[first[0] : first[0] + features * width].reshape(features, width)
    bytes_of = observation[rows]
    x = np.empty((n, width), np.float32)
    sum_bytes(below, weights[first[1] : first[1] + width], bytes_of, False, x)
    activate(kind, x)
    stage(actor_values, actor, 0, n)[:] = x[:, :half]
    stage(critic_values, critic, 0, n)[:] = x[:, half:]
    top = actor.shape[0] - 1
    tower_forward(weights, turned, actor, top, kind, n, actor_values)
    tower_forward(weights, turned, critic, top + 1, kind, n, critic_values)
    hidden, into = stage(actor_values, actor, top, n), stage(actor_flows, actor, top, n)
    _head(hidden, weights, actor, mask, rows, known, recipe, into, gradient, figures)
    value, flow = stage(critic_values, critic, top + 1, n), stage(critic_flows, critic, top + 1, n)
    for i in range(n):
        flow[i, 0] = value_flow(value[i, 0], old_value[rows[i]], returns[rows[i]], recipe, figures)
    between = cycles()
    tower_backward(weights, actor, top, kind, n, actor_values, actor_flows, gradient)
    tower_backward(weights, critic, top + 1, kind, n, critic_values, critic_flows, gradient)
    dx = np.empty((n, width), np.float32)
    dx[:, :half] = stage(actor_flows, actor, 0, n)
    dx[:, half:] = stage(critic_flows, critic, 0, n)
    deactivate(kind, x, dx)
    bias = gradient[first[1] : first[1] + width]
    for i in range(n):
        for h in range(width):
            bias[h] += dx[i, h]
    spread_bytes(bytes_of, dx, gradient[first[0] : first[0] + features * width].reshape(features, width))
    return between - began, cycles() - between


@fast_kernel
def add_index_gradient(weights, plan, seen, rows, known, recipe, gradient):
    """Add the gradient of the loss over `rows`. Writes gradient.

    Returns the sums of FIGURES, and the cycles that went into the loss and into the gradient.

    plan: first layer, actor and critic tower (see FlatWeights), activation; seen: observation and mask of all rows;
    known: action, old log-probability, old value, advantage, return of all rows, and whether they were shown; recipe:
    clip, entropy weight, value weight, value clip, what one row counts for, and what an advantage is shifted and scaled
    by.
    """
    _, actor, critic, _ = plan
    figures, forward, backward = np.zeros(len(FIGURES), np.float64), 0, 0
    turned = np.empty_like(weights)
    turn(weights, actor, actor.shape[0] - 1, turned)
    turn(weights, critic, critic.shape[0], turned)
    a = BLOCK * (actor[:, 2].sum() + 1)
    c = BLOCK * (critic[:, 2].sum() + 1)
    empty = np.empty
    rooms = empty(a, np.float32), empty(a, np.float32), empty(c, np.float32), empty(c, np.float32)
    for lo in range(0, len(rows), BLOCK):
        part = rows[lo : min(lo + BLOCK, len(rows))]
        ahead, back = _block(weights, turned, plan, seen, part, known, recipe, rooms, gradient, figures)
        forward, backward = forward + ahead, backward + back
    return figures, forward, backward


@fast_kernel
def _moments(rows, advantage, shown):
    """Mean of the rows' advantages and one over their standard deviation; rows that are copied have no say."""
    mean, count = 0.0, 0
    for r in rows:
        if not shown[r]:
            mean += advantage[r]
            count += 1
    if count == 0:
        return _0, _1
    mean /= count
    spread = 0.0
    for r in rows:
        if not shown[r]:
            spread += (advantage[r] - mean) ** 2
    return np.float32(mean), np.float32(1.0 / (np.sqrt(spread / count) + 1e-8))


@fast_kernel
def index_epoch(
    crew, state, learning_rate, eps, plan, seen, known, recipe, limits, order, minibatch, figures, distances
):
    """Steps over `order`, a minibatch at a time, until the policy has moved too far if `target_kl` says so.

    Adds each thread's sums of FIGURES and, behind them, of minibatches. Writes state, figures, distances.
    """
    me, recipe = crew[0], recipe.copy()
    normalize, max_norm, target_kl = limits
    for number, lo in enumerate(range(0, len(order) - minibatch // 2, minibatch)):
        rows = order[lo : min(lo + minibatch, len(order))]
        recipe[4] = _1 / np.float32(len(rows))
        if normalize:
            recipe[5], recipe[6] = _moments(rows, known[3], known[5])
        gradient = state[1][me]
        args = (plan, seen, share_of(crew, rows), known, recipe, gradient)
        found, forward, backward = add_index_gradient(state[0], *args)
        crew[LOSS] += forward
        crew[GRADIENT] += backward
        figures[me, : len(FIGURES)] += recipe[4] * found
        distance = distances[number % 2]  # two of them, so that none is written before all have read it
        distance[me] = recipe[4] * found[3]
        figures[me, len(FIGURES)] += 1.0
        if not descend(crew, state, max_norm, learning_rate, eps):
            return
        if target_kl > 0 and distance[: crew[1]].sum() > 1.5 * target_kl:
            return
