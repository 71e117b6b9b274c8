"""Policies choose legally, by the distribution they claim, and the same whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maple.core.config import Config
from maple.core.sources import load_config
from maple.core.step import Keys
from maple.core.threads import Team
from maple.nets.policy import IndexPolicy, OptionValue
from maple.nets.q import IndexQ
from maple.nets.sampling import sample_mask, sample_options
from maple.nets.seen import Seen
from maple.training.learners import Net, make_policy
from tests.conftest import Decisions

KINDS = [
    ["algo=afterstate"],
    ["algo=ppo", "ppo.policy=options"],
    ["algo=ppo", "ppo.policy=index"],
    ["algo=dqn", "dqn.policy=options"],
    ["algo=dqn", "dqn.policy=index"],
]


def _config(settings: list[str]) -> Config:
    return load_config("ofc", settings=["net.hidden=[16, 8]", *settings])


def _policy(settings: list[str], decisions: Decisions, team: Team) -> Net:
    return make_policy(_config(settings), Seen(decisions.game, team), torch.device("cpu"))


@pytest.mark.parametrize("settings", KINDS)
@pytest.mark.parametrize("greedy", [True, False])
def test_choices_are_legal(settings: list[str], greedy: bool, decisions: Decisions, team: Team) -> None:
    policy = _policy(settings, decisions, team)
    choice = policy.choose(decisions.view, decisions.keys, 5, greedy)
    _, mask = policy.seen.observation(decisions.view)
    assert mask[np.arange(len(mask)), choice.action].all()


@pytest.mark.parametrize("settings", KINDS)
def test_choices_do_not_depend_on_threads(settings: list[str], decisions: Decisions, team: Team) -> None:
    config = _config(settings)
    with Team(1) as alone:
        one = make_policy(config, Seen(decisions.game, alone), torch.device("cpu"))
        many = make_policy(config, Seen(decisions.game, team), torch.device("cpu"))
        a = one.choose(decisions.view, decisions.keys, 5, False)
        b = many.choose(decisions.view, decisions.keys, 5, False)
    assert np.array_equal(a.action, b.action)
    assert np.array_equal(a.value, b.value)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_small_networks_choose_in_a_kernel_as_in_torch(activation: str, decisions: Decisions, team: Team) -> None:
    settings = ["algo=ppo", "ppo.policy=index", "net.hidden=[16, 8, 8]", f"net.activation={activation}"]
    policy = _policy(settings, decisions, team)
    assert isinstance(policy, IndexPolicy)
    with torch.no_grad():
        policy.actor[-1].weight.mul_(300.0)  # opinions that differ by row
    assert policy.small
    by_kernel = policy.choose(decisions.view, decisions.keys, 5, False)
    policy.small = False
    by_torch = policy.choose(decisions.view, decisions.keys, 5, False)
    assert (by_kernel.action == by_torch.action).mean() > 0.999  # a draw may fall between two roundings
    same = by_kernel.action == by_torch.action
    assert len(np.unique(by_torch.action)) > 5
    assert np.allclose(by_kernel.log_prob[same], by_torch.log_prob[same], atol=1e-4)
    assert np.allclose(by_kernel.value, by_torch.value, atol=1e-5)


@pytest.mark.parametrize(
    "more", [["dqn.quantiles=0"], ["dqn.quantiles=5"], ["dqn.dueling=false", "net.activation=tanh"]]
)
def test_small_q_networks_choose_in_a_kernel_as_in_torch(more: list[str], decisions: Decisions, team: Team) -> None:
    policy = _policy(["algo=dqn", "dqn.policy=index", *more], decisions, team)
    assert isinstance(policy, IndexQ)
    policy.epsilon = 0.3
    assert policy.small
    by_kernel = policy.choose(decisions.view, decisions.keys, 5, False)
    policy.small = False
    by_torch = policy.choose(decisions.view, decisions.keys, 5, False)
    assert (by_kernel.action == by_torch.action).mean() > 0.999  # two scores may be as good as equal
    assert 0.1 < by_kernel.explored.mean() < 0.4
    assert len(np.unique(by_torch.action)) > 5
    assert np.allclose(by_kernel.value, by_torch.value, atol=1e-5)


def test_a_small_network_chooses_for_a_row_as_if_it_were_alone(decisions: Decisions, team: Team) -> None:
    policy = _policy(["algo=ppo", "ppo.policy=index"], decisions, team)
    whole = policy.choose(decisions.view, decisions.keys, 5, False)
    for rows in (np.arange(1), np.arange(3, 10), np.arange(7, 200)):
        part = policy.choose(decisions.view[rows], decisions.keys.take(rows), 5, False)
        assert np.array_equal(part.value, whole.value[rows])
        assert np.array_equal(part.log_prob, whole.log_prob[rows])


def test_caution_avoids_the_second_signal(decisions: Decisions, team: Team) -> None:
    policy = _policy(KINDS[0], decisions, team)
    assert isinstance(policy, OptionValue)
    risk = []
    for caution in (0.0, 1000.0):
        policy.set_caution(caution)
        risk.append(policy.choose(decisions.view, decisions.keys, 5, True).value[:, 1])
    assert (risk[1] <= risk[0] + 1e-6).all()
    assert risk[1].mean() < risk[0].mean()


def test_the_initial_weights_follow_from_the_seed(decisions: Decisions, team: Team) -> None:
    first = _policy(KINDS[0], decisions, team).state_dict()
    again = _policy(KINDS[0], decisions, team).state_dict()
    other = _policy([*KINDS[0], "seed=1"], decisions, team).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_masked_sampling_follows_the_softmax() -> None:
    logits = np.array([[0.0, 2.0, 9.0, 1.0]], np.float32)
    mask = np.array([[True, True, False, True]])
    p = np.exp([0.0, 2.0, 1.0]) / np.exp([0.0, 2.0, 1.0]).sum()
    n = 4000
    uniform = (np.arange(n) + 0.5) / n
    action, log_prob = np.zeros(n, np.int16), np.zeros(n, np.float32)
    sample_mask(np.repeat(logits, n, 0), np.repeat(mask, n, 0), uniform, False, action, log_prob)
    for a, expected in zip((0, 1, 3), p, strict=True):
        assert (action == a).mean() == pytest.approx(expected, abs=2 / n)
        assert log_prob[action == a][0] == pytest.approx(np.log(expected), abs=1e-5)
    sample_mask(logits, mask, uniform, True, action, log_prob)
    assert action[0] == 1


def test_option_sampling_follows_the_softmax() -> None:
    offset = np.array([0, 1, 4], np.int64)
    logits = np.array([5.0, 0.0, 2.0, 1.0], np.float32)
    chosen, log_prob = np.zeros(2, np.int64), np.zeros(2, np.float32)
    total = np.exp([0.0, 2.0, 1.0]).sum()
    for u, expected in ((0.01, 1), (0.5, 2), (0.99, 3)):
        sample_options(offset, logits, np.array([u, u]), False, chosen, log_prob)
        assert chosen[1] == expected
        assert log_prob[1] == pytest.approx(float(logits[expected]) - np.log(total), abs=1e-5)
    assert chosen[0] == 0
    assert log_prob[0] == pytest.approx(0.0)


def test_caution_trades_reward_for_safety(decisions: Decisions, team: Team) -> None:
    bold = make_policy(_config(["afterstate.caution=0"]), Seen(decisions.game, team), torch.device("cpu"))
    wary = make_policy(_config(["afterstate.caution=50"]), Seen(decisions.game, team), torch.device("cpu"))
    keys: Keys = decisions.keys
    risk_bold = bold.choose(decisions.view, keys, 0, True).value[:, 1]
    risk_wary = wary.choose(decisions.view, keys, 0, True).value[:, 1]
    assert (risk_wary <= risk_bold + 1e-6).all()
    assert (risk_wary < risk_bold - 1e-6).any()
