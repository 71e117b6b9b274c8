"""The learners' kernels against the same written in torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from maple.core.config import Config
from maple.core.sources import load_config
from maple.core.threads import Team, meet
from maple.games import make_game
from maple.learn import ppo
from maple.learn.afterstate import AfterstateRecipe, afterstate_update
from maple.learn.ahead import Ahead
from maple.learn.index_gradient import FIGURES
from maple.learn.option_gradient import FAINT
from maple.learn.ppo import PpoRecipe, judge_options, ppo_update
from maple.learn.rollout import Batch, Rollout
from maple.nets.dense import RELU, TANH, activate, add_product, deactivate
from maple.nets.flat import FlatWeights
from maple.nets.policy import OptionPolicy, OptionValue
from maple.nets.seen import Look
from maple.training.build import build_trainer
from maple.training.loop import Trainer

RECIPE = PpoRecipe(
    gamma=0.99,
    lam=0.9,
    epochs=2,
    minibatch=300,
    clip=0.2,
    entropy=0.02,
    value_weight=0.5,
    max_grad_norm=0.5,
    normalize=True,
    clip_value=0.0,
    target_kl=0.0,
    augment=False,
)


def _trainer(team: Team, *settings: str) -> Trainer:
    config: Config = load_config("ofc", settings=["tables=64", "steps=1000000", *settings])
    return build_trainer(config, make_game("ofc", config.game), team)


def _play(trainer: Trainer, decisions: int) -> Batch:
    rollout = trainer.learner.memory
    assert isinstance(rollout, Rollout)
    rollout.capacity = decisions
    trainer.collect()
    return rollout.batch()


def _updated_ppo(
    team: Team,
    recipe: PpoRecipe,
    settings: list[str],
    torch_only: bool,
    monkey: pytest.MonkeyPatch,
    shown: float = 0.0,
    prefetch: bool = False,
) -> tuple[dict[str, float], NDArray[np.float32]]:
    with monkey.context() as patch:
        if torch_only:
            patch.setattr(FlatWeights, "on_cpu", property(lambda _: False))
        trainer = _trainer(team, "algo=ppo", *settings)
        batch = _play(trainer, 900)
        # Actions were taken by this very policy; move it, so that ratios are not all 1 and some are clipped.
        random = np.random.default_rng(0)
        batch = replace(batch, log_prob=batch.log_prob + random.normal(0, 0.3, len(batch.log_prob)).astype(np.float32))
        if shown:
            batch = replace(batch, explored=random.random(len(batch.log_prob)) < shown)
        descent = trainer.learner.schedule.descent
        ahead = Ahead[Look](prefetch)
        figures = ppo_update(trainer.learner.policy, descent, batch, recipe, 3, 0, ahead)  # type: ignore[arg-type]
        ahead.close()
        return figures, descent.flat.vector.detach().numpy().copy()


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        (["net.hidden=[24, 16]", "net.activation=tanh"], {}),
        (["net.hidden=[24, 16]", "net.activation=relu"], {"clip_value": 0.05}),
        (["net.hidden=[10]", "net.activation=tanh"], {"max_grad_norm": 0.0, "normalize": False}),
        (["net.hidden=[16, 12, 9]", "net.activation=relu"], {"augment": True}),
    ],
)
@pytest.mark.parametrize(("policy", "shown"), [("index", 0.0), ("options", 0.0), ("options", 0.5), ("index", 0.5)])
def test_ppo_kernels_learn_as_torch_does(
    settings: list[str],
    changes: dict[str, float],
    policy: str,
    shown: float,
    team: Team,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = replace(RECIPE, **changes)  # type: ignore[arg-type]
    # A shift of all logits changes nothing, so some gradients are but rounding; with this eps their steps are as small.
    settings = [f"ppo.policy={policy}", "optimizer.eps=0.001", *settings]
    fast, fast_weights = _updated_ppo(team, recipe, settings, False, monkeypatch, shown)
    slow, slow_weights = _updated_ppo(team, recipe, settings, True, monkeypatch, shown)
    assert fast["minibatches"] == slow["minibatches"] == 6
    assert fast["clipped"] > 0.02
    for name in FIGURES:
        assert fast[name] == pytest.approx(slow[name], rel=1e-3, abs=1e-5), name
    assert np.abs(fast_weights - slow_weights).max() < 2e-5


@pytest.mark.parametrize("policy", ["index", "options"])
@pytest.mark.parametrize("changes", [{}, {"augment": True}, {"target_kl": 1e-9}], ids=str)
def test_a_thread_that_encodes_ahead_changes_nothing(
    policy: str, changes: dict[str, float], team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, settings = replace(RECIPE, **changes), [f"ppo.policy={policy}", "net.hidden=[16]"]  # type: ignore[arg-type]
    plain, weights = _updated_ppo(team, recipe, settings, True, monkeypatch)
    ahead, same = _updated_ppo(team, recipe, settings, True, monkeypatch, prefetch=True)
    assert ahead == plain
    assert np.array_equal(same, weights)


def test_options_that_are_described_once_are_learned_from_the_same(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ["ppo.policy=options", "net.hidden=[16]"]
    once, weights = _updated_ppo(team, RECIPE, settings, False, monkeypatch)
    monkeypatch.setattr(ppo, "KEPT_BYTES", 0)
    anew, same = _updated_ppo(team, RECIPE, settings, False, monkeypatch)
    assert once == anew
    assert np.array_equal(weights, same)


def test_options_that_are_not_taken_hardly_matter(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(RECIPE, epochs=1, minibatch=1000, max_grad_norm=0.0)
    found = []
    for faint in (0.0, FAINT):
        monkeypatch.setattr(ppo, "FAINT", faint)
        trainer = _trainer(team, "algo=ppo", "ppo.policy=options", "net.hidden=[24, 16]")
        batch, net = _play(trainer, 900), trainer.learner.policy
        assert isinstance(net, OptionPolicy)
        with torch.no_grad():
            net.actor[-1].weight.mul_(3000.0)  # type: ignore[operator, union-attr]
        log_prob, entropy, _ = judge_options(net, batch.view, batch.action)
        assert entropy.mean().item() < 1.5  # about 3.4 without an opinion
        batch = replace(batch, log_prob=log_prob.detach().numpy())
        descent = trainer.learner.schedule.descent
        ppo_update(net, descent, batch, recipe, 3, 0)
        found.append(descent.state()["exp_avg"].copy())  # a tenth of the gradient
    exact, near = found
    assert (exact != near).any()
    assert np.linalg.norm(exact - near) < 1e-3 * np.linalg.norm(exact)


def test_ppo_stops_when_the_policy_has_moved_too_far(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(RECIPE, target_kl=1e-9)
    for torch_only in (False, True):
        for policy in ("index", "options"):
            settings = [f"ppo.policy={policy}", "net.hidden=[8]"]
            figures, _ = _updated_ppo(team, recipe, settings, torch_only, monkeypatch)
            assert figures["minibatches"] == 1


def test_after_state_kernels_learn_as_torch_does(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = AfterstateRecipe(gamma=1.0, lam=0.7, epochs=2, minibatch=300)
    found = []
    for torch_only in (False, True):
        with monkeypatch.context() as patch:
            if torch_only:
                patch.setattr(FlatWeights, "on_cpu", property(lambda _: False))
            trainer = _trainer(team, "algo=afterstate", "net.hidden=[24, 16]")
            batch = _play(trainer, 900)
            descent = trainer.learner.schedule.descent
            assert isinstance(trainer.learner.policy, OptionValue)
            figures = afterstate_update(trainer.learner.policy, descent, batch, recipe, 3, 0)
            found.append((figures, descent.flat.vector.detach().numpy().copy()))
    (fast, fast_weights), (slow, slow_weights) = found
    assert fast["minibatches"] == slow["minibatches"] == 6
    assert fast["loss"] == pytest.approx(slow["loss"], rel=1e-4)
    assert np.abs(fast_weights - slow_weights).max() < 2e-5


@pytest.mark.parametrize("kind", [RELU, TANH])
def test_activations(kind: int) -> None:
    x = np.linspace(-12, 12, 10_001, dtype=np.float32)
    y, flow = x.copy(), np.ones_like(x)
    activate(kind, y)
    assert np.abs(y - (np.maximum(x, 0) if kind == RELU else np.tanh(x.astype(np.float64)))).max() < 1e-6
    deactivate(kind, y, flow)
    assert np.abs(flow - ((x > 0) if kind == RELU else 1 - np.tanh(x.astype(np.float64)) ** 2)).max() < 2e-6


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20))
def test_products(rows: int, inner: int, width: int) -> None:
    random = np.random.default_rng(rows * 400 + inner * 20 + width)
    shapes = ((rows, inner), (inner, width), (rows, width))
    a, b, out = (random.normal(size=shape).astype(np.float32) for shape in shapes)
    expected = out + a @ b
    add_product(a, b, out)
    assert np.allclose(out, expected, atol=1e-4)


def test_a_crew_waits_for_each_other_and_not_for_the_failed(team: Team) -> None:
    seen = []

    def work(crew: NDArray[np.int64], fail: bool) -> None:
        if fail and crew[0] == 1:
            raise RuntimeError("this thread fails")
        seen.append((int(crew[0]), bool(meet(crew))))

    team.together(work, 2, False)
    assert sorted(seen) == [(0, True), (1, True)]
    seen.clear()
    with pytest.raises(RuntimeError, match="this thread fails"):
        team.together(work, 2, True)
    assert seen == [(0, False)]
