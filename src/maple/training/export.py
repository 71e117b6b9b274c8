"""A trained network as an ONNX file, checked against the network it came from.

The first layer becomes a plain matrix, so whoever runs the file gives dense rows: an observation for networks over
indices (with the mask, if a dueling head needs it), and for networks over options a row per option with how often each
feature is there (`dense_rows` makes them). Of a dueling network over options the file gives the advantages, by which
options are compared; of a distribution, its mean. A network that remembers takes its state and gives the next one.
"""

from __future__ import annotations

import warnings
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.arena.base import Arena
from maple.arena.open import open_arena
from maple.arena.serial import SerialArena
from maple.core.errors import MissingExtraError, RunError
from maple.games.external.game import ExternalGame
from maple.nets.dense import RELU
from maple.nets.policy import IndexPolicy, OptionPolicy
from maple.nets.q import IndexQ, OptionQ
from maple.nets.sequence import SequencePolicy
from maple.nets.sparse import Rows, SparseLayer
from maple.training.agent import Agent
from maple.training.learners import Net

__all__ = ["Exported", "dense_rows", "export_onnx"]

OPSET = 18
TABLES, SAMPLED = 24, 240  # the games that are played to check a file, and the decisions of them; half are checked


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and how far it is from the network."""

    path: str
    inputs: dict[str, list[int | str]]
    outputs: list[str]
    rows_checked: int
    largest_difference: float


class _Indices(nn.Module):
    def __init__(self, net: IndexPolicy) -> None:
        super().__init__()
        self.net = net

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        first = observation @ self.net.first.weight + self.net.first.bias
        first = torch.relu(first) if self.net.kind == RELU else torch.tanh(first)
        actor, critic = first.split(self.net.width, dim=1)
        return self.net.actor(actor), self.net.critic(critic)[:, 0]


class _IndexValues(nn.Module):
    def __init__(self, net: IndexQ) -> None:
        super().__init__()
        self.net = net

    def forward(self, observation: Tensor, mask: Tensor) -> Tensor:
        first = observation @ self.net.first.weight + self.net.first.bias
        first = torch.relu(first) if self.net.kind == RELU else torch.tanh(first)
        return self.net.head(first, mask).mean(2)


class _Sequence(nn.Module):
    def __init__(self, net: SequencePolicy) -> None:
        super().__init__()
        self.net = net

    def forward(self, observation: Tensor, state: Tensor | None = None) -> tuple[Tensor, ...]:
        first, tokens = self.net.first, None
        if isinstance(first, SparseLayer):
            x = observation @ first.weight + first.bias
        else:
            x, tokens = first(observation)
        x = self.net.activate(x)
        return self.net.heads(x, tokens) if state is None else self.net.decide(x, tokens, state)


class _Options(nn.Module):
    def __init__(self, first: SparseLayer, rest: nn.Module) -> None:
        super().__init__()
        self.first, self.rest = first, rest

    def forward(self, features: Tensor) -> Tensor:
        return self.rest(torch.relu(features @ self.first.weight + self.first.bias))  # type: ignore[no-any-return]


def dense_rows(rows: Rows, features: int) -> NDArray[np.float32]:
    """Feature lists as rows of counts."""
    dense = np.zeros((len(rows.length), features), np.float32)
    for row, (listed, length) in enumerate(zip(rows.feature, rows.length, strict=True)):
        np.add.at(dense[row], listed[:length].astype(np.int64), 1.0)
    return dense


def _sample(agent: Agent) -> tuple[NDArray[np.uint64], NDArray[np.int16]]:
    """Decisions of real games and what the agent does in them."""
    game, team = agent.game, agent.policy.seen.team
    arena: Arena = SerialArena(game, TABLES, 1) if isinstance(game, ExternalGame) else open_arena(game, TABLES, 1, team)
    views, actions, rows = list[NDArray[np.uint64]](), list[NDArray[np.int32]](), 0
    with closing(arena):
        while rows < SAMPLED:
            step = arena.recv()
            views.append(step.view.copy())
            actions.append(agent.choose(step.view, step.keys, 0))
            arena.send(actions[-1])
            rows += len(views[-1])
    agent.reset()
    return np.concatenate(views)[:SAMPLED], np.concatenate(actions)[:SAMPLED].astype(np.int16)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A module to export, its inputs by name, and its outputs by name with what they should be."""

    module: nn.Module
    given: dict[str, NDArray[Any]]
    wanted: dict[str, NDArray[Any]]


def _sequence_plan(net: SequencePolicy, view: NDArray[np.uint64]) -> _Plan:
    """Of a network that remembers, the state goes in and comes out; whoever runs the file begins a game with zeros."""
    observation, _ = net.seen.observation(view)
    given = {"observation": observation.astype(np.float32)}
    state = np.random.default_rng(0).normal(size=(len(view), net.state_width)).astype(np.float32)
    logits, value, after = (tensor.numpy() for tensor in net(observation, torch.from_numpy(state)))
    wanted = {"logits": logits, "value": value}
    if not net.state_width:
        return _Plan(_Sequence(net), given, wanted)
    return _Plan(_Sequence(net), {**given, "state": state}, {**wanted, "next_state": after})


@torch.no_grad()
def _plan(net: Net, view: NDArray[np.uint64], action: NDArray[np.int16]) -> _Plan:
    """What is exported of a network, with decisions to check it on."""
    if isinstance(net, IndexPolicy | IndexQ):
        observation, mask = net.seen.observation(view)
        dense = {"observation": observation.astype(np.float32)}
        if isinstance(net, IndexPolicy):
            logits, value = (tensor.numpy() for tensor in net(observation))
            return _Plan(_Indices(net), dense, {"logits": logits, "value": value})
        return _Plan(_IndexValues(net), {**dense, "mask": mask}, {"values": net(observation, mask).mean(2).numpy()})
    if isinstance(net, SequencePolicy):
        return _sequence_plan(net, view)
    rows, features = net.seen.choice(view, action), net.seen.spec.features
    given: dict[str, NDArray[Any]] = {"features": dense_rows(rows, features)}
    if isinstance(net, OptionPolicy):
        return _Plan(_Options(net.first, net.actor), given, {"logit": net.actor(net.first.of_features(rows)).numpy()})
    if isinstance(net, OptionQ):
        score = net.advantage(net.first.of_features(rows)).numpy()
        return _Plan(_Options(net.first, net.advantage), given, {"score": score})
    return _Plan(_Options(net.first, net.rest), given, {"signals": net(rows).numpy()})


def export_onnx(agent: Agent, path: Path) -> Exported:
    """Write the agent's network as ONNX and run the file on real decisions."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("export needs ONNX: pip install 'maple-rl[export]'") from None
    plan = _plan(agent.policy, *_sample(agent))
    names, many = list(plan.wanted), torch.export.Dim("rows")
    part = path.with_name(path.name + ".part")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            plan.module.eval(),
            tuple(torch.from_numpy(array) for array in plan.given.values()),
            input_names=list(plan.given),
            output_names=names,
            dynamic_shapes=tuple({0: many} for _ in plan.given),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        program.save(str(part))  # type: ignore[union-attr]
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise RunError(f"cannot write {path}: {error.strerror}; choose another place") from None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    half = len(next(iter(plan.given.values()))) // 2  # another number of rows than it was traced with
    asked = {node.name for node in session.get_inputs()}  # a mask that changes nothing is left out of the file
    found = session.run(names, {name: array[:half] for name, array in plan.given.items() if name in asked})
    difference = max(float(np.abs(a - b[:half]).max()) for a, b in zip(found, plan.wanted.values(), strict=True))
    inputs: dict[str, list[int | str]] = {name: ["rows", array.shape[1]] for name, array in plan.given.items()}
    return Exported(str(path), {name: inputs[name] for name in inputs if name in asked}, names, half, difference)
