"""What torch can do to be faster, and what is said where it cannot."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.learn.descent import Descent
from maple.nets.accelerate import KERNELS, TORCH, bfloat16_gain, choose_precision, compile_towers, is_compiled
from maple.nets.policy import layers
from maple.training.build import build_trainer, make_learner
from maple.training.learners import DqnLearner, Learner, frozen_copy
from maple.training.loop import Trainer

CPU = torch.device("cpu")


@pytest.mark.parametrize("plain", [KERNELS, TORCH])
def test_sixteen_bits_are_used_where_they_win(plain: str) -> None:
    said: list[str] = []
    asked: list[str] = []

    def gain(times: float) -> Callable[[str], float]:
        return lambda plain: asked.append(plain) or times  # type: ignore[func-returns-value]

    assert choose_precision(CPU, None, plain, said.append, gain(5.0)) is None
    assert choose_precision(CPU, False, plain, said.append, gain(5.0)) is None
    assert choose_precision(CPU, True, plain, said.append, gain(5.0)) is torch.bfloat16
    assert said == []
    assert choose_precision(CPU, True, plain, said.append, gain(0.2)) is None
    assert said == [f"torch.amp is off: torch's 16-bit products are 0.20 times as fast here as plain ones in {plain}"]
    said.clear()
    assert choose_precision(CPU, True, plain, said.append, gain(0.0)) is None
    assert said == [
        "torch.amp is off: 16-bit products end the process on this CPU; try ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
    ]
    assert asked == [plain] * 3


@pytest.mark.parametrize("plain", [KERNELS, TORCH])
def test_products_are_tried_in_another_process(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bfloat16_gain(plain) > 0
    with monkeypatch.context() as patch:
        patch.setattr("maple.nets.accelerate.__name__", "maple.nets.no_such_module")
        assert bfloat16_gain(plain) == 0


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        (["algo=ppo", "ppo.policy=index"], KERNELS),
        (["algo=ppo", "ppo.policy=options"], KERNELS),
        (["algo=afterstate"], KERNELS),
        (["algo=dqn", "dqn.policy=index"], KERNELS),
        (["algo=dqn", "dqn.policy=options"], KERNELS),
        (["algo=dqn", "dqn.quantiles=4"], TORCH),
        (["algo=dqn", "dqn.exploration=noisy"], TORCH),
        (["algo=ppo", "ppo.policy=index", "net.core=lstm"], TORCH),
        (["algo=dqn", "dqn.policy=index", "net.core=gru"], TORCH),
    ],
)
def test_sixteen_bits_are_compared_with_what_would_learn_without_them(
    settings: list[str], plain: str, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("maple.training.build.choose_precision", partial(choose_precision, gain=lambda _: 0.5))
    config = load_config("ofc", settings=["tables=4", "torch.amp=true", *settings])
    build_trainer(config, make_game("ofc"), team, warn=said.append)
    assert said == [f"torch.amp is off: torch's 16-bit products are 0.50 times as fast here as plain ones in {plain}"]


def test_compile_falls_back_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    net, said = torch.nn.Module(), list[str]()
    net.tower = layers([4, 3, 2], torch.nn.ReLU)
    x = torch.ones(5, 4)
    expected = net.tower(x)

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler here\nand much more")

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Sequential, "compile", refuse)
        assert not compile_towers(net, CPU, said.append)
    assert said == ["torch.compile is off: no compiler here"]
    assert torch.equal(net.tower(x), expected)
    said.clear()
    assert not compile_towers(torch.nn.Module(), CPU, said.append)
    assert said == ["torch.compile is off: this network has no tower of dense layers"]


COMMON = ["tables=32", "net.hidden=[16, 8]", "game.fantasyland=off", "ppo.horizon=480", "ppo.minibatch=120"]
COMMON += ["afterstate.horizon=480", "afterstate.minibatch=120", "net.core_width=8", "ppo.augment=false"]
COMMON += ["net.attention_width=8", "net.attention_heads=2", "ppo.segment=4", "ppo.burn_in=2", "dqn.segment=4"]
COMMON += ["dqn.burn_in=2", "dqn.warmup=0", "dqn.train_every=960", "dqn.minibatch=128", "dqn.updates_per_step=2"]
EVERY_LEARNER = [
    ["algo=ppo", "ppo.policy=options"],
    ["algo=ppo", "ppo.policy=index"],
    ["algo=afterstate"],
    ["algo=dqn", "dqn.policy=options"],
    ["algo=dqn", "dqn.policy=index"],
    ["algo=dqn", "dqn.quantiles=4"],
    ["algo=ppo", "ppo.policy=index", "net.core=lstm"],
    ["algo=ppo", "ppo.policy=options", "net.core=gru", "net.attention=true"],
    ["algo=dqn", "dqn.policy=index", "net.core=gru"],
    ["algo=dqn", "dqn.policy=options", "net.core=lstm", "net.attention=true"],
]


def _moved(settings: list[str], team: Team, said: list[str]) -> tuple[Trainer, np.ndarray]:
    """A trainer after its first round, and how far that moved the weights."""
    config = load_config("ofc", settings=[*COMMON, *settings], flags={"steps": 480})
    trainer = build_trainer(config, make_game("ofc", config.game), team, warn=said.append)
    before = trainer.learner.schedule.descent.flat.vector.detach().numpy().copy()
    trainer.round()
    return trainer, trainer.learner.schedule.descent.flat.vector.detach().numpy() - before


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("settings", EVERY_LEARNER)
def test_learning_in_sixteen_bits_is_nearly_the_same(
    settings: list[str], precision: torch.dtype, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = []
    for chosen in (None, precision):
        monkeypatch.setattr("maple.training.build.choose_precision", lambda *_, chosen=chosen: chosen)
        moved.append(_moved(settings, team, [])[1])
    plain, short = moved
    assert not np.array_equal(plain, short)
    assert np.corrcoef(plain, short)[0, 1] > 0.85


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler")
@pytest.mark.parametrize(
    ("settings", "tower"),
    [
        (["algo=ppo", "ppo.policy=index"], "actor"),
        (["algo=afterstate"], "rest"),
        (["algo=dqn", "dqn.policy=index"], "advantage"),
    ],
)
def test_compiled_layers_learn_and_act_as_plain_ones_do(settings: list[str], tower: str, team: Team) -> None:
    said: list[str] = []
    _, plain = _moved(settings, team, said)
    trainer, compiled = _moved([*settings, "torch.compile=true"], team, said)
    assert said == []
    assert not trainer.learner.schedule.descent.in_kernels
    assert np.corrcoef(plain, compiled)[0, 1] > 0.99
    net = trainer.learner.policy
    snapshot = frozen_copy(net)
    assert is_compiled(net.get_submodule(tower))
    assert is_compiled(snapshot.get_submodule(tower))
    if isinstance(trainer.learner, DqnLearner):
        assert is_compiled(trainer.learner.target.get_submodule(tower))
    step = trainer.arena.recv()
    args = (step.view.copy(), step.keys, 1, True)
    assert np.array_equal(net.choose(*args).action, snapshot.choose(*args).action)


def test_what_needs_a_gpu_says_so_once(team: Team) -> None:
    said: list[str] = []
    config = load_config("ofc", settings=["algo=dqn", "torch.pin_memory=true", "tables=4"])
    trainer = build_trainer(config, make_game("ofc"), team, warn=said.append)
    learner: Learner = make_learner(config, make_game("ofc"), trainer.learner.policy, None)
    assert learner.memory.full is False
    if not torch.cuda.is_available():
        assert said == ["torch.pin_memory has no effect: no GPU learns here"]


@pytest.mark.parametrize("precision", [None, torch.bfloat16, torch.float16])
def test_a_run_goes_on_with_the_numbers_it_began_with(precision: torch.dtype | None, team: Team) -> None:
    rows = np.arange(64)
    x, goal = torch.randn(64, 5, generator=torch.Generator().manual_seed(1)), torch.ones(64, 1)

    def net_of() -> torch.nn.Sequential:
        torch.manual_seed(0)
        return layers([5, 8, 1], torch.nn.ReLU)

    def step(net: torch.nn.Module, descent: Descent, times: float) -> None:
        def loss_of(some: np.ndarray) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            return times * (net(x[some]) - goal[some]).square().mean(), {}

        descent.by_autograd(rows, loss_of)

    whole = net_of()
    descent = Descent(whole, team, 1e-2, 1e-5, precision)
    for times in (1.0, 1e4, 1.0):  # in 16 bits the second is too large, and is answered with a smaller scale
        step(whole, descent, times)
    halves = net_of()
    halves.load_state_dict(whole.state_dict())
    again = Descent(halves, team, 1e-2, 1e-5, None)
    again.restore({name: np.array(value) for name, value in descent.state().items()})
    for net, own in ((whole, descent), (halves, again)):
        for _ in range(3):
            step(net, own, 1.0)
    for ours, theirs in zip(whole.parameters(), halves.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert [value.tolist() for value in descent.state().values()] == [v.tolist() for v in again.state().values()]
    if precision is torch.float16:
        assert descent.state()["numbers"][1] < 65536.0
