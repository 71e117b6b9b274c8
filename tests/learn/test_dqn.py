"""Q-learning against the same worked out row by row, and its kernels against torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.learn.ahead import Ahead
from maple.learn.dqn import DqnRecipe, Lesson, Pupil, beyond_values, dqn_loss, dqn_round, taken_values
from maple.learn.replay import Replay
from maple.nets.flat import FlatWeights
from maple.nets.noisy import renew_noise, silence
from maple.nets.q import IndexQ, OptionQ
from maple.training.build import build_trainer
from maple.training.learners import DqnLearner
from maple.training.loop import Trainer
from tests.conftest import Decisions

RECIPE = DqnRecipe(
    margin=0.1,
    updates=6,
    minibatch=130,
    draw_ahead=2,
    beta=0.5,
    double=True,
    tau=0.05,
    target_every=2,
    huber=0.7,
    max_grad_norm=10.0,
)
# A shift of all options' advantages changes nothing: that gradient is but rounding, and with this eps so is its step.
STEADY = "optimizer.eps=0.001"
HEADS = [
    ["dqn.policy=index", "dqn.dueling=false"],
    ["dqn.policy=index", "dqn.dueling=true", "net.activation=tanh"],
    ["dqn.policy=index", "dqn.dueling=true", "dqn.quantiles=5"],
    ["dqn.policy=options", "dqn.dueling=false"],
    ["dqn.policy=options", "dqn.dueling=true"],
    ["dqn.policy=options", "dqn.dueling=true", "dqn.quantiles=4", "dqn.exploration=noisy"],
]


def _trainer(team: Team, *settings: str) -> Trainer:
    """A trainer that has played for a while and learned nothing; its target is another network than its own."""
    common = ["algo=dqn", "tables=64", "net.hidden=[24, 16]", "steps=1000000", "dqn.warmup=100000", "seed=3"]
    config = load_config("ofc", settings=[*common, "game.fantasyland=off", *settings])
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    for _ in range(30):
        trainer.round()
    with torch.no_grad():
        vector = _pupil(trainer).target_weights.vector
        vector.add_(0.1 * torch.from_numpy(np.random.default_rng(0).normal(size=vector.shape)).float())
    return trainer


def _pupil(trainer: Trainer) -> Pupil:
    assert isinstance(trainer.learner, DqnLearner)
    return trainer.learner._pupil


def _replay(trainer: Trainer) -> Replay:
    assert isinstance(trainer.learner.memory, Replay)
    return trainer.learner.memory


def _slow_values(net: IndexQ | OptionQ, view: NDArray[np.uint64], legal: NDArray[np.int64]) -> NDArray[np.float64]:
    """(legal, atoms) the values of one decision's legal actions, one by one."""
    if isinstance(net, IndexQ):
        observation, _ = net.seen.observation(view[None])
        x = torch.tensor(observation[0].astype(np.float32)) @ net.first.weight + net.first.bias
        x = torch.tanh(x) if net.kind else torch.relu(x)
        flat = net.advantage(x).detach().numpy().astype(np.float64)
        scores = np.stack([flat[a * net.atoms : (a + 1) * net.atoms] for a in legal])
        state = net.value(x).detach().numpy() if net.value is not None else None
    else:
        one = [net.of_choices(view[None], np.array([a], np.int16)).detach().numpy()[0] for a in legal]
        scores, state = np.stack(one).astype(np.float64), None
        if net.value is not None and net.value_first is not None:
            state = net.value(net.value_first.of_features(net.seen.state(view[None]))).detach().numpy()[0]
    return scores if state is None else state + scores - scores.mean(0)


@pytest.mark.parametrize("settings", HEADS)
@pytest.mark.parametrize("double", [True, False])
def test_targets_are_those_worked_out_row_by_row(settings: list[str], double: bool, team: Team) -> None:
    trainer = _trainer(team, *settings)
    pupil = _pupil(trainer)
    renew_noise(pupil.net, 1, 1)
    renew_noise(pupil.target, 1, 2)
    drawn = _replay(trainer).draw(40, 1, 0.4, 9, 0)
    _, masks = pupil.net.seen.observation(drawn.beyond_view)
    fast = beyond_values(pupil.net, pupil.target, drawn.beyond_view, double).numpy()
    _, here = pupil.net.seen.observation(drawn.view)
    taken = taken_values(pupil.net, drawn.view, drawn.action).detach().numpy()
    for i in range(40):
        legal = np.flatnonzero(masks[i])
        judged = _slow_values(pupil.target, drawn.beyond_view[i], legal)
        scores = (_slow_values(pupil.net, drawn.beyond_view[i], legal) if double else judged).mean(1)
        assert fast[i] == pytest.approx(judged[int(np.argmax(scores))], abs=1e-4)
        legal = np.flatnonzero(here[i])
        own = _slow_values(pupil.net, drawn.view[i], legal)
        assert taken[i] == pytest.approx(own[list(legal).index(drawn.action[i])], abs=1e-4)


def test_quantile_loss_by_hand() -> None:
    rng = np.random.default_rng(1)
    taken, goal, weight = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)) * 2, rng.random(3)
    total = 0.0
    for i in range(3):
        for place in range(4):
            for other in range(4):
                off = goal[i, other] - taken[i, place]
                size = abs(off)
                huber = 0.5 * off * off if size <= 0.7 else 0.7 * (size - 0.35)
                total += weight[i] * abs((place + 0.5) / 4 - (off < 0)) * huber / 0.7 / 4 / 3
    assert float(dqn_loss(*map(torch.tensor, (taken, goal, weight)), 0.7)) == pytest.approx(total)


def _learned(
    team: Team, settings: list[str], recipe: DqnRecipe, prefetch: bool = False, shown: float = 0.0
) -> list[NDArray[np.float64]]:
    """Figures, weights, the target's weights and priorities after a round."""
    trainer = _trainer(team, *settings)
    pupil, replay, ahead = _pupil(trainer), _replay(trainer), Ahead[Lesson](prefetch)
    replay.shown[:] = np.random.default_rng(2).random(len(replay.shown)) < shown
    try:
        figures = dqn_round(pupil, replay, ahead, recipe, 5, 3)
    finally:
        ahead.close()
    assert replay.tree is not None
    vectors = [weights.vector.detach().numpy().copy() for weights in (pupil.descent.flat, pupil.target_weights)]
    return [np.array(list(figures.values())), *vectors, replay.tree.priority.copy()]


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        (["dqn.dueling=false", "net.hidden=[24, 16]"], {}),
        (["dqn.dueling=true", "net.hidden=[24, 16]", "net.activation=tanh"], {"double": False}),
        (["dqn.dueling=true", "net.hidden=[10]"], {"max_grad_norm": 0.1}),
        (["dqn.dueling=true", "net.hidden=[16, 12, 9]"], {"target_every": 1}),
    ],
)
@pytest.mark.parametrize("policy", ["index", "options"])
def test_kernels_learn_as_torch_does(
    settings: list[str], changes: dict[str, float], policy: str, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, settings = replace(RECIPE, **changes), [f"dqn.policy={policy}", *settings]  # type: ignore[arg-type]
    if policy == "options":
        settings += [STEADY]
    fast = _learned(team, settings, recipe)
    with monkeypatch.context() as patch:
        patch.setattr(FlatWeights, "on_cpu", property(lambda _: False))
        slow = _learned(team, settings, recipe)
    for one, other in zip(fast, slow, strict=True):
        assert np.allclose(one, other, rtol=2e-3, atol=5e-5)
    assert (fast[3] != 1.0).sum() > 100


@pytest.mark.parametrize("policy", ["index", "options"])
@pytest.mark.parametrize(("dueling", "double", "shown"), [(True, True, 0.5), (False, True, 0.5), (False, False, 1.0)])
def test_kernels_copy_what_was_shown_as_torch_does(
    policy: str, dueling: bool, double: bool, shown: float, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(RECIPE, double=double, margin=0.3)
    settings = [f"dqn.policy={policy}", f"dqn.dueling={str(dueling).lower()}", STEADY]
    with monkeypatch.context() as patch:
        patch.setattr("maple.learn.dqn._by_autograd", None)  # what was shown does not take the kernels' place
        fast = _learned(team, settings, recipe, shown=shown)
    with monkeypatch.context() as patch:
        patch.setattr(FlatWeights, "on_cpu", property(lambda _: False))
        slow = _learned(team, settings, recipe, shown=shown)
    for one, other in zip(fast, slow, strict=True):
        assert np.allclose(one, other, rtol=2e-3, atol=5e-5)


@pytest.mark.parametrize("policy", ["index", "options"])
def test_a_thread_that_draws_ahead_changes_nothing(policy: str, team: Team) -> None:
    settings = [f"dqn.policy={policy}"]
    for one, other in zip(
        _learned(team, settings, RECIPE), _learned(team, settings, RECIPE, prefetch=True), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("updates", "draw_ahead"), [(9, 4), (6, 1), (3, 8), (8, 2)])
def test_priorities_are_never_older_than_stated(
    updates: int, draw_ahead: int, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(RECIPE, updates=updates, draw_ahead=draw_ahead)
    trainer = _trainer(team, "dqn.policy=index")
    replay, written, age = _replay(trainer), [0], {}
    draw, reweigh = replay.draw, replay.reweigh

    def drawing(batch: int, batches: int, beta: float, seed: int, number: int, team: Team | None) -> object:
        for k in range(batches):
            age[number + k] = number + k - written[0]  # updates before this one whose results are not in yet
        return draw(batch, batches, beta, seed, number, team)

    def writing(row: NDArray[np.int64], error: NDArray[np.float32]) -> None:
        written[0] += len(row) // recipe.minibatch
        reweigh(row, error)

    monkeypatch.setattr(replay, "draw", drawing)
    monkeypatch.setattr(replay, "reweigh", writing)
    for prefetch in (False, True):
        ahead = Ahead[Lesson](prefetch)
        written[0] = 0
        dqn_round(_pupil(trainer), replay, ahead, recipe, 5, 0)
        ahead.close()
        assert sorted(age) == list(range(updates))
        assert max(age.values()) <= recipe.stale_updates
        assert written[0] == updates


def test_random_actions_are_legal_and_all_alike(decisions: Decisions, team: Team) -> None:
    for policy in ("index", "options"):
        config = load_config("ofc", settings=["algo=dqn", f"dqn.policy={policy}", "net.hidden=[8]"])
        net = build_trainer(config, decisions.game, team).learner.policy
        assert isinstance(net, IndexQ | OptionQ)
        net.epsilon = 1.0
        view = np.repeat(decisions.view[:1], 6000, 0)
        keys = replace(decisions.keys.take(np.zeros(6000, np.int64)), decision=np.arange(6000, dtype=np.int32))
        choice = net.choose(view, keys, 0, greedy=False)
        _, mask = net.seen.observation(decisions.view[:1])
        counts = np.bincount(choice.action, minlength=mask.shape[1])
        assert (counts[~mask[0]] == 0).all()
        assert counts[mask[0]] == pytest.approx(6000 / mask.sum(), abs=6 * (6000 / mask.sum()) ** 0.5)
        assert len(set(net.choose(view, keys, 0, greedy=True).action)) == 1


def test_noise_follows_from_its_number_and_can_be_silenced(decisions: Decisions, team: Team) -> None:
    config = load_config("ofc", settings=["algo=dqn", "dqn.exploration=noisy", "net.hidden=[16, 8]"])
    net = build_trainer(config, decisions.game, team).learner.policy
    scores = []
    for number in (1, 2, 1, None):
        if number is None:
            silence(net)
        else:
            renew_noise(net, 0, number)
        scores.append(net.choose(decisions.view, decisions.keys, 0, greedy=True).value)
    assert np.array_equal(scores[0], scores[2])
    assert not np.allclose(scores[0], scores[1])
    assert not np.allclose(scores[0], scores[3])
