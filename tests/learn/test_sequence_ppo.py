"""Learning from segments against a loop over decisions, one at a time."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.learn.ppo import ppo_loss
from maple.learn.returns import DROPPED, ENDED, OPEN, gae
from maple.learn.rollout import Batch, Rollout
from maple.learn.segments import cut_segments
from maple.learn.sequence_ppo import sequence_update
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.training.build import build_trainer
from maple.training.loop import Trainer
from tests.learn.test_gradients import RECIPE


@settings(deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(0, 4))
def test_segments_cover_every_closed_row_once(data: st.DataObject, length: int, burn_in: int) -> None:
    rows = data.draw(st.integers(0, 30))
    following, last = np.full(rows, OPEN, np.int32), list[int]()
    chains: list[list[int]] = []
    for row in range(rows):  # each row goes on with one of the open chains or begins another
        chain = data.draw(st.integers(0, len(last)))
        if chain == len(last) or last[chain] < 0:
            last.append(row)
            chains.append([row])
        else:
            following[last[chain]] = row
            last[chain] = row
            chains[chain].append(row)
        if data.draw(st.booleans()):
            at = next(i for i, end in enumerate(last) if end == row)
            following[row], last[at] = data.draw(st.sampled_from([ENDED, DROPPED])), -1
    expected = []
    for chain in chains:
        known = chain if following[chain[-1]] == ENDED else chain[:-1]
        for begin in range(0, len(known), length):
            expected.append((known[begin : begin + length], chain[max(0, begin - burn_in) : begin]))
    found = cut_segments(following, length, burn_in)
    parts = zip(found.rows, found.size, found.before, found.before_size, strict=True)
    segments = [(rows[:n].tolist(), before[:b].tolist()) for rows, n, before, b in parts]
    assert segments == sorted(expected)


ATTENTION = ["net.attention=true", "net.attention_width=8", "net.attention_heads=2"]
KINDS = {
    "indices": ("ofc", ["ppo.policy=index", "game.fantasyland=off", "net.activation=tanh"]),
    "options": ("ofc", ["ppo.policy=options", "game.fantasyland=off"]),
    "attention": ("wargame", ["ppo.policy=options", "opponents=self", *ATTENTION]),
}


def _trainer(team: Team, core: str, kind: str = "indices") -> Trainer:
    name, own = KINDS[kind]
    shape = ["net.hidden=[12, 10]", f"net.core={core}", "net.core_width=9"]
    settings = ["algo=ppo", "tables=24", "steps=1000000", *shape, *own]
    config = load_config(name, settings=[*settings, "ppo.horizon=500", "ppo.minibatch=100"])
    return build_trainer(config, make_game(name, config.game), team)


def _played(trainer: Trainer) -> tuple[SequencePolicy | OptionSequencePolicy, Batch]:
    net, rollout = trainer.learner.policy, trainer.learner.memory
    assert isinstance(net, SequencePolicy | OptionSequencePolicy)
    assert isinstance(rollout, Rollout)
    trainer.collect()
    return net, rollout.batch()


def _single(
    net: SequencePolicy | OptionSequencePolicy, view: NDArray[np.uint64], state: Tensor
) -> tuple[Tensor, NDArray[np.int64], Tensor, Tensor]:
    """One decision (1, V): the logits of what is legal, which actions those are, the value and the state after it."""
    if isinstance(net, SequencePolicy):
        observation, mask = net.seen.observation(view)
        logits, value, state = net(observation, state)
        legal = np.flatnonzero(mask[0])
        return logits[0][legal], legal, value[0], state
    options = net.seen.options(view, keep=True)
    logits, value, state = net(net.body.sight(view), options, state)
    return logits, options.action.astype(np.int64), value[0], state


def _one_by_one(net: SequencePolicy | OptionSequencePolicy, batch: Batch, length: int, burn_in: int) -> None:
    """The gradient of the same loss: every chain gone through row by row, the state cut off at each segment."""
    recipe = RECIPE
    advantage = np.empty(len(batch.action), np.float32)
    gae(batch.reward, batch.value, batch.following, batch.bootstrap, recipe.gamma, recipe.lam, advantage)
    previous = {int(j): i for i, j in enumerate(batch.following) if j >= 0}
    place = dict.fromkeys(range(len(batch.action)), 0)
    for i, j in enumerate(batch.following):
        if j >= 0:
            place[int(j)] = place[i] + 1
    known, log_probs, entropies, values = set(batch.closed.tolist()), {}, {}, {}
    for begin in (i for i in sorted(known) if place[i] % length == 0):
        early = begin
        for _ in range(burn_in):
            early = previous.get(early, early)
        state, row = torch.from_numpy(batch.state[early : early + 1]), early
        with torch.no_grad():
            while row != begin:
                state = _single(net, batch.view[row : row + 1], state)[3]
                row = int(batch.following[row])
        for _ in range(length):
            if row not in known:
                break
            logits, legal, value, state = _single(net, batch.view[row : row + 1], state)
            log_p = torch.log_softmax(logits, 0)
            taken = legal.tolist().index(batch.action[row])
            log_probs[row], entropies[row], values[row] = log_p[taken], -(log_p.exp() * log_p).sum(), value
            row = int(batch.following[row])
    rows = np.array(sorted(known))
    judged = [torch.stack([column[row] for row in rows.tolist()]) for column in (log_probs, entropies, values)]
    weight = (advantage[rows] - advantage[rows].mean()) / (advantage[rows].std() + 1e-8)
    old = batch.value[rows, 0]
    columns = (batch.log_prob[rows], old, weight, advantage[rows] + old)
    loss, _ = ppo_loss(*judged, *(torch.from_numpy(column) for column in columns), recipe)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), recipe.max_grad_norm)


@pytest.mark.parametrize(
    ("kind", "core", "length", "burn_in"),
    [
        ("indices", "lstm", 2, 0),
        ("indices", "gru", 3, 0),
        ("indices", "lstm", 2, 3),
        ("indices", "gru", 16, 1),
        ("options", "lstm", 3, 2),
        ("options", "gru", 2, 0),
        ("attention", "lstm", 4, 3),
        ("attention", "none", 1, 0),
    ],
)
def test_the_gradient_of_segments_is_that_of_single_decisions(
    kind: str, core: str, length: int, burn_in: int, team: Team
) -> None:
    trainer = _trainer(team, core, kind)
    net, batch = _played(trainer)
    torch.manual_seed(2)
    with torch.no_grad():  # so that what was played is no longer what would be
        for weight in net.parameters():
            weight += 0.05 * torch.randn_like(weight)
    seen, team = net.seen, net.seen.team
    slow = deepcopy(net, {id(seen): seen, id(team): team})
    slow.zero_grad()
    _one_by_one(slow, batch, length, burn_in)
    recipe = replace(RECIPE, epochs=1, minibatch=10_000)
    descent = trainer.learner.schedule.descent
    figures = sequence_update(net, descent, batch, recipe, 1, 1, length=length, burn_in=burn_in)
    assert figures["minibatches"] == 1
    found = dict(net.named_parameters())
    for name, weight in slow.named_parameters():
        assert weight.grad is not None
        assert weight.grad.any()
        torch.testing.assert_close(found[name].grad, weight.grad, rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_played_is_what_is_judged(kind: str, team: Team) -> None:
    """Before any step, learning sees the very probabilities that acting drew from."""
    trainer = _trainer(team, "lstm", kind)
    net, batch = _played(trainer)
    descent = trainer.learner.schedule.descent
    descent.learning_rate = 0.0
    for burn_in in (0, 2):
        figures = sequence_update(net, descent, batch, RECIPE, 1, 1, length=2, burn_in=burn_in)
        assert abs(figures["kl"]) < 1e-6
        assert figures["clipped"] == 0
        assert figures["minibatches"] == 2 * round(len(batch.closed) / RECIPE.minibatch)
