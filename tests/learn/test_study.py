"""Copying what somebody else decided: losses against the same worked out row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.learn.dqn import copying_loss
from maple.learn.ppo import ppo_loss
from maple.learn.replay import Replay
from maple.learn.rollout import Rollout
from maple.nets.q import IndexQ, OptionQ
from maple.training.build import build_trainer
from tests.learn.test_gradients import RECIPE


def test_rows_that_were_shown_are_copied_and_the_others_learned_as_ever() -> None:
    rng = np.random.default_rng(0)
    columns = [torch.from_numpy(rng.normal(size=40).astype(np.float32)) for _ in range(7)]
    log_prob, entropy, *known = columns
    shown = torch.from_numpy(rng.random(40) < 0.5)
    log_prob.requires_grad_()
    mixed, _ = ppo_loss(log_prob, entropy, *known, RECIPE, shown)
    (gradient,) = torch.autograd.grad(mixed, log_prob)
    own, _ = ppo_loss(log_prob, entropy, *known, RECIPE)
    (as_ever,) = torch.autograd.grad(own, log_prob)
    assert torch.allclose(gradient[shown], torch.full((int(shown.sum()),), -1 / 40))
    assert torch.allclose(gradient[~shown], as_ever[~shown])
    apart = replace(RECIPE, entropy=0.0, value_weight=0.0)
    entropy.requires_grad_()
    bonus, _ = ppo_loss(log_prob, entropy, *known, RECIPE, shown)
    (by_entropy,) = torch.autograd.grad(bonus, entropy)
    assert not by_entropy[shown].any()
    all_shown, figures = ppo_loss(log_prob, entropy, *known, apart, torch.ones(40, dtype=torch.bool))
    assert all_shown.item() == pytest.approx(-log_prob.mean().item())
    assert figures["kl"] == 0


@pytest.mark.parametrize("settings", [["dqn.policy=index"], ["dqn.policy=options"], ["dqn.dueling=false"]], ids=str)
def test_falling_short_of_the_margin_is_worked_out_row_by_row(settings: list[str], team: Team) -> None:
    config = load_config("ofc", settings=["algo=dqn", "tables=64", "steps=9999", "dqn.study=safe", *settings])
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    trainer.round()
    replay, net = trainer.learner.memory, trainer.learner.policy
    assert isinstance(replay, Replay)
    assert isinstance(net, IndexQ | OptionQ)
    assert replay.shown[: replay.size].all()
    view, action = replay.view[:60], replay.action[:60]
    found = copying_loss(net, view, action, 0.25).detach().numpy()
    _, masks = net.seen.observation(view)
    for i in range(60):
        legal = np.flatnonzero(masks[i])
        if isinstance(net, IndexQ):
            score = net(*net.seen.observation(view[i : i + 1])).mean(2)[0].detach().numpy()[legal]
        else:
            options = net.seen.options(view[i : i + 1], keep=True)
            by_action = dict(zip(options.action.tolist(), net.scores(options).mean(1).tolist(), strict=True))
            score = np.array([by_action[a] for a in legal.tolist()])
        mine = legal.tolist().index(action[i])
        bar = max(value + (0.25 if k != mine else 0.0) for k, value in enumerate(score))
        assert found[i] == pytest.approx(bar - score[mine], abs=1e-4)
    assert (found >= 0).all()


def test_the_script_plays_in_the_learners_place_for_so_many_steps(team: Team) -> None:
    settings = [
        "algo=ppo",
        "tables=64",
        "steps=99999",
        "ppo.horizon=640",
        "ppo.minibatch=128",
        "ppo.study=safe",
        "ppo.study_steps=600",
    ]
    config = load_config("ofc", settings=[*settings, "opponents=self"])
    game = make_game("ofc", config.game)
    trainer = build_trainer(config, game, team)
    rollout = trainer.learner.memory
    assert isinstance(rollout, Rollout)
    trainer.learner.begin(0, 0.0)
    trainer.actor.guide = trainer.guide
    step = trainer.here.recv()
    acted = trainer.actor.act(step, None)
    wanted = np.empty(64, np.int32)
    game.bot("safe")(step.view, config.seed, step.keys, wanted, 0, 64)
    assert np.array_equal(acted.action, wanted)
    trainer.here.send(acted.action)
    shown = []
    for _ in range(3):
        trainer.round()
        shown.append(int(rollout.explored[: rollout.size].sum()))
    assert shown[0] > 0  # carried over from the first round
    assert trainer.actor.guide is None
    assert shown[2] == 0


@pytest.mark.parametrize("tables", [4, 12, 40])
def test_the_script_plays_on_at_a_share_of_the_tables(tables: int, team: Team) -> None:
    settings = ["algo=dqn", "opponents=self", f"tables={tables}", "steps=99999", "dqn.capacity=20000"]
    study = ["dqn.study=safe", "dqn.study_steps=200", "dqn.study_share=0.25"]
    config = load_config("ofc", settings=[*settings, *study])
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    replay = trainer.learner.memory
    assert isinstance(replay, Replay)
    while trainer.counters.steps < 400:
        trainer.round()
    before = replay.count
    while trainer.counters.steps < 1200:
        trainer.round()
    shown = replay.shown[before : replay.count]
    assert shown.mean() == pytest.approx(0.25)
    assert trainer.seating.guided.sum() == tables // 4
