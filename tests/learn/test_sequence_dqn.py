"""Q-learning from segments against a loop over decisions, one at a time."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from maple.arena.native import NativeArena
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.learn.ahead import Ahead
from maple.learn.dqn import DqnRecipe, dqn_loss
from maple.learn.replay import Replay
from maple.learn.sequence_dqn import sequence_round
from maple.nets.noisy import renew_noise
from maple.nets.sequence_q import RecurrentQ
from maple.training.build import build_trainer
from maple.training.learners import DqnLearner

WALK = "tests.games.external.envs:Walk"
RECIPE = DqnRecipe(
    margin=0.1,
    updates=1,
    minibatch=60,
    draw_ahead=1,
    beta=0.5,
    double=True,
    tau=0.05,
    target_every=2,
    huber=0.7,
    max_grad_norm=9.0,
)


def _learner(team: Team, name: str, *settings: str) -> DqnLearner:
    """A learner that has played for a while and learned nothing; its target is another network than its own."""
    small = ["algo=dqn", "dqn.policy=index", "net.hidden=[12, 10]", "net.core_width=9", "steps=1000000", "seed=3"]
    sizes = ["tables=24", "dqn.warmup=100000", "dqn.epsilon=0.2"]
    config = load_config(name, settings=[*small, *sizes, *settings], defaults=entry(name).defaults)
    trainer = build_trainer(config, make_game(name, config.game), team)
    for _ in range(30):
        trainer.round()
    trainer.arena.close()
    learner = trainer.learner
    assert isinstance(learner, DqnLearner)
    torch.manual_seed(2)
    with torch.no_grad():  # so that what was remembered is no longer what would be, by either network
        for vector in (learner._pupil.descent.flat.vector, learner._pupil.target_weights.vector):
            vector += 0.1 * torch.randn_like(vector)
    return learner


def _walked(net: RecurrentQ, replay: Replay, head: int, burn_in: int) -> dict[int, tuple[Tensor, NDArray[np.bool_]]]:
    """The values (A, atoms) and the mask of every row from a segment's first on, one at a time; by row."""
    chains = replay.chains
    assert chains is not None
    back = [head]
    while len(back) <= burn_in and chains.previous[back[0]] >= 0:
        back.insert(0, int(chains.previous[back[0]] % replay.capacity))
    state, found, row = torch.from_numpy(chains.state[back[0]][None]), {}, back[0]
    while True:
        observation, mask = net.read(replay.view[row : row + 1])
        if row in back[:-1]:
            with torch.no_grad():
                values, state = net(observation, mask, state)
        else:
            values, state = net(observation, mask, state)
        found[row] = (values[0], mask[0])
        following = int(chains.following[row])
        if following < 0:
            following = int(replay.beyond[row])  # the last sight of a game that was cut off
            if following in found:
                return found
            observation, mask = net.read(replay.view[following : following + 1])
            found[following] = (net(observation, mask, state)[0][0], mask[0])
            return found
        row = following


def _one_by_one(
    learner: DqnLearner, net: RecurrentQ, heads: NDArray[np.int64], weights: NDArray[np.float32], double: bool
) -> dict[int, float]:
    """The gradient of the same loss, into `net`; returns the priority error of each segment by its first row."""
    replay, target = learner.memory, learner._pupil.target
    chains = replay.chains
    assert chains is not None
    taken, goal, weight, short, errors = [], [], [], [], {}
    for head, w in zip(heads.tolist(), weights.tolist(), strict=True):
        own = _walked(net, replay, head, chains.burn_in)
        with torch.no_grad():
            judged = _walked(target, replay, head, chains.burn_in)
        row, off = head, []
        for _ in range(chains.length):
            values, mask = own[int(replay.beyond[row])]
            legal = torch.from_numpy(np.flatnonzero(mask))
            there = judged[int(replay.beyond[row])][0]
            best = legal[(values if double else there).mean(1)[legal].argmax()]
            goal.append(float(replay.reward[row]) + float(replay.discount[row]) * there[best].detach())
            taken.append(own[row][0][int(replay.action[row])])
            weight.append(w)
            if replay.shown[row]:
                here, mine = own[row], int(replay.action[row])
                score = {int(a): here[0][a].mean() for a in np.flatnonzero(here[1])}
                bar = max(value + (RECIPE.margin if a != mine else 0.0) for a, value in score.items())
                short.append(bar - score[mine])
            off.append(abs(float((taken[-1].detach() - goal[-1]).mean())))
            row = int(chains.following[row])
            if row < 0:
                break
        errors[head] = 0.9 * max(off) + 0.1 * float(np.mean(off))
    loss = dqn_loss(torch.stack(taken), torch.stack(goal), torch.tensor(weight), RECIPE.huber)
    (loss + sum(short) / len(taken)).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), RECIPE.max_grad_norm)
    return errors


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ofc", ["net.core=lstm", "dqn.segment=2", "dqn.burn_in=0", "game.fantasyland=off"]),
        (
            "ofc",
            ["net.core=gru", "dqn.segment=3", "dqn.burn_in=2", "dqn.n_step=1", "dqn.quantiles=3", "dqn.double=false"],
        ),
        (WALK, ["workers.count=0", "net.core=lstm", "dqn.segment=4", "dqn.burn_in=3", "dqn.n_step=3", "env.limit=6"]),
        ("wargame", ["net.attention=true", "dqn.n_step=2", "opponents=self"]),
        ("ofc", ["dqn.policy=options", "net.core=lstm", "dqn.segment=3", "dqn.burn_in=2", "dqn.dueling=true"]),
        ("ofc", ["dqn.policy=options", "net.core=gru", "dqn.segment=2", "dqn.quantiles=3", "net.attention=true"]),
        ("wargame", ["dqn.policy=options", "net.core=gru", "net.attention=true", "dqn.n_step=2", "opponents=self"]),
        ("wargame", ["net.attention=true", "dqn.quantiles=3", "opponents=self"]),
        ("wargame", ["dqn.policy=options", "net.attention=true", "dqn.quantiles=3", "opponents=self"]),
    ],
)
def test_the_gradient_of_segments_is_that_of_single_decisions(name: str, settings: list[str], team: Team) -> None:
    learner = _learner(team, name, *settings)
    replay, net, seen = learner.memory, learner.policy, learner.policy.seen
    assert isinstance(net, RecurrentQ)
    assert replay.chains is not None
    double = "dqn.double=false" not in settings
    slow = deepcopy(net, {id(seen): seen, id(seen.team): seen.team})
    slow.zero_grad()
    heads, weights, _, _ = replay.draw_segments(60 // replay.chains.length, 1, RECIPE.beta, 5, 0)
    errors = _one_by_one(learner, slow, heads, weights, double)
    recipe = DqnRecipe(**{**{f: getattr(RECIPE, f) for f in RECIPE.__dataclass_fields__}, "double": double})
    ahead = Ahead(False)  # type: ignore[var-annotated]
    sequence_round(learner._pupil, replay, ahead, recipe, 5, 0)
    found = dict(net.named_parameters())
    for weight_name, weight in slow.named_parameters():
        assert weight.grad is not None
        torch.testing.assert_close(found[weight_name].grad, weight.grad, rtol=1e-3, atol=2e-6, msg=weight_name)
    assert replay.tree is not None
    for head, error in errors.items():
        np.testing.assert_allclose(replay.tree.priority[head], (error + 1e-2) ** 0.6, rtol=1e-3)


@pytest.mark.parametrize("policy", ["index", "options"])
@pytest.mark.parametrize("hidden", ["[12]", "[12, 8]"])
def test_noise_changes_which_action_is_best(policy: str, hidden: str, team: Team) -> None:
    """Of a network that points at entities too, with one hidden layer or several: what is compared has noise."""
    settings = ["dqn.exploration=noisy", "net.attention=true", f"dqn.policy={policy}", f"net.hidden={hidden}"]
    net = _learner(team, "wargame", *settings, "opponents=self").policy
    assert isinstance(net, RecurrentQ)
    with NativeArena(make_game("wargame"), 4, 1, team) as arena:
        view = arena.recv().view.copy()
    sight, mask = net.read(view)
    state = torch.zeros(len(view), 0)
    spread = []
    for number in (1, 2):
        renew_noise(net, 0, number)
        with torch.no_grad():
            values = net(sight, mask, state)[0].mean(2).numpy()
        spread.append(values - values[mask].mean())
    assert np.ptp((spread[0] - spread[1])[0][mask[0]]) > 1e-4
