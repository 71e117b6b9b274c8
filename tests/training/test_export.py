"""Exported networks answer as the ones they came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from maple.core.errors import RunError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.games.showdown.runtime import NodeError, find_node, installed_modules
from maple.nets.policy import IndexPolicy
from maple.nets.seen import Seen
from maple.training import export
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
    "q of options that remembers": ["algo=dqn", "dqn.policy=options", "net.core=gru", "dqn.quantiles=2"],
    "options that remember": ["algo=ppo", "ppo.policy=options", "net.core=lstm", "net.core_width=10"],
    "indices": ["algo=ppo", "ppo.policy=index", "net.activation=tanh"],
}


WARGAME = {
    "attention": ["ppo.policy=index"],
    "q with attention and memory": ["algo=dqn", "dqn.policy=index", "net.core=lstm"],
    "q of options, attention and memory": ["algo=dqn", "dqn.policy=options", "net.core=lstm"],
    "q with attention and quantiles": ["algo=dqn", "dqn.policy=index", "dqn.quantiles=3"],
    "q of options, attention and quantiles": ["algo=dqn", "dqn.policy=options", "dqn.quantiles=3"],
    "options and attention": ["ppo.policy=options"],
    "options, attention and memory": ["ppo.policy=options", "net.core=gru"],
}
FEW = {kind for kind in (*KINDS, *WARGAME) if "options" in kind and ("remember" in kind or "attention" in kind)}


@contextmanager
def _agent(name: str, *settings: str) -> Iterator[Agent]:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    config = load_config(name, settings=[*settings, "net.hidden=[24, 12]"], defaults=entry(name).defaults)
    game = make_game(name, config.game)
    with Team(1) as team:
        policy = make_policy(config, Seen(game, team), torch.device("cpu"))
        yield Agent(policy.requires_grad_(False), game, config, steps=0)


def _check(agent: Agent, folder: Path, rows: int = 120) -> None:
    written = export_onnx(agent, folder / "net.onnx")
    assert (folder / "net.onnx").exists()
    assert written.rows_checked == rows
    assert written.largest_difference < 1e-5


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_file_says_what_the_network_says(kind: str, tmp_path: Path) -> None:
    with _agent("ofc", *KINDS[kind]) as agent:
        _check(agent, tmp_path, 17 if kind in FEW else 120)


@pytest.mark.parametrize("kind", list(WARGAME))
def test_networks_that_attend_are_exported_too(kind: str, tmp_path: Path) -> None:
    with _agent("wargame", "net.attention=true", *WARGAME[kind]) as agent:
        _check(agent, tmp_path, 17 if kind in FEW else 120)


@pytest.mark.parametrize(
    ("env", "settings"),
    [
        ("Walk", ["algo=ppo"]),
        ("Match", ["algo=dqn", "env.leaves=true"]),  # seats that decide at once
        ("Herd", ["net.attention=true", "net.core=gru"]),
    ],
)
def test_networks_of_envs_are_exported_too(env: str, settings: list[str], tmp_path: Path) -> None:
    with _agent(f"tests.games.external.envs:{env}", *settings) as agent:
        _check(agent, tmp_path)


def test_a_network_of_battles_is_exported_too(tmp_path: Path) -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))
    with _agent("showdown", "algo=ppo", "ppo.policy=index") as agent:
        _check(agent, tmp_path)


@pytest.mark.parametrize("wrong", ["tolerance", "not a number"])
def test_a_file_that_answers_otherwise_is_not_kept(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.onnx").write_text("an older one")
    with _agent("ofc", *KINDS["indices"]) as agent:
        if wrong == "tolerance":
            monkeypatch.setattr(export, "TOLERANCE", -1.0)
        else:
            assert isinstance(agent.policy, IndexPolicy)
            agent.policy.critic[-1].bias.fill_(torch.nan)  # the last output alone
        with pytest.raises(RunError, match=r"net\.onnx is not written"):
            export_onnx(agent, tmp_path / "net.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
    assert (tmp_path / "net.onnx").read_text() == "an older one"
