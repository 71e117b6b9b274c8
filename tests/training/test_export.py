"""Exported networks answer as the ones they came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.nets.seen import Seen
from maple.training.agent import Agent
from maple.training.export import export_onnx
from maple.training.learners import make_policy

KINDS = {
    "afterstate": ["algo=afterstate"],
    "options": ["algo=ppo", "ppo.policy=options"],
    "q of indices": ["algo=dqn", "dqn.policy=index", "dqn.quantiles=3"],
    "q of indices, no duel": ["algo=dqn", "dqn.policy=index", "dqn.dueling=false"],
    "q of options": ["algo=dqn", "dqn.policy=options", "dqn.exploration=noisy"],
    "lstm": ["algo=ppo", "ppo.policy=index", "net.core=lstm", "net.core_width=10"],
    "gru": ["algo=ppo", "ppo.policy=index", "net.core=gru", "net.activation=tanh"],
    "q that remembers": ["algo=dqn", "dqn.policy=index", "net.core=gru", "dqn.quantiles=2"],
    "options that remember": ["algo=ppo", "ppo.policy=options", "net.core=lstm", "net.core_width=10"],
    "indices": ["algo=ppo", "ppo.policy=index", "net.activation=tanh"],
}


WARGAME = {
    "attention": ["ppo.policy=index"],
    "q with attention and memory": ["algo=dqn", "dqn.policy=index", "net.core=lstm"],
    "options and attention": ["ppo.policy=options"],
    "options, attention and memory": ["ppo.policy=options", "net.core=gru"],
}
FEW = {"options that remember", "options and attention", "options, attention and memory"}


@pytest.fixture(params=[*KINDS, *WARGAME])
def agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    kind = request.param
    name = "wargame" if kind in WARGAME else "ofc"
    own = KINDS[kind] if kind in KINDS else ["net.attention=true", *WARGAME[kind]]
    config = load_config(name, settings=[*own, "net.hidden=[24, 12]"], defaults=entry(name).defaults)
    game = make_game(name)
    with Team(1) as team:
        policy = make_policy(config, Seen(game, team), torch.device("cpu"))
        yield Agent(policy.requires_grad_(False), game, config, steps=0)


def test_the_file_says_what_the_network_says(agent: Agent, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    written = export_onnx(agent, tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").exists()
    assert written.rows_checked == (17 if request.node.callspec.params["agent"] in FEW else 120)
    assert written.largest_difference < 1e-5
