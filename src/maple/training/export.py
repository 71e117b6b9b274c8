"""A trained network as an ONNX file, checked against the network it came from.

The first layer becomes a plain matrix, so whoever runs the file gives dense rows: an observation for policies over
indices, and for networks over options a row per option with how often each feature is there (`dense_rows` makes them).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.arena.native import NativeArena
from maple.core.errors import MissingExtraError, RunError
from maple.nets.dense import RELU
from maple.nets.policy import IndexPolicy, OptionPolicy
from maple.nets.sparse import Rows, SparseLayer
from maple.training.agent import Agent
from maple.training.learners import Net

__all__ = ["Exported", "dense_rows", "export_onnx"]

OPSET = 18


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
    team = agent.policy.seen.team
    arena = NativeArena(agent.game, 24, 1, team, observations=False, check=False)
    views = []
    for _ in range(10):
        step = arena.recv()
        views.append(step.view.copy())
        arena.send(agent.choose(step.view, step.keys, 0))
    view = np.concatenate(views)
    keys = arena.recv().keys.take(np.arange(len(view)) % arena.tables)
    return view, agent.policy.choose(view, keys, 0, True).action


def _plan(net: Net, view: NDArray[np.uint64], action: NDArray[np.int16]) -> tuple[nn.Module, Any, list[str], list[Any]]:
    """The module to export, its input, the names of its outputs, and what they should be."""
    with torch.no_grad():
        if isinstance(net, IndexPolicy):
            observation, _ = net.seen.observation(view)
            wanted = [tensor.numpy() for tensor in net(observation)]
            return _Indices(net), observation.astype(np.float32), ["logits", "value"], wanted
        rows, features = net.seen.choice(view, action), net.seen.spec.features
        given = dense_rows(rows, features)
        if isinstance(net, OptionPolicy):
            wanted = [net.actor(net.first.of_features(rows)).numpy()]
            return _Options(net.first, net.actor), given, ["logit"], wanted
        return _Options(net.first, net.rest), given, ["signals"], [net(rows).numpy()]


def export_onnx(agent: Agent, path: Path) -> Exported:
    """Write the agent's network as ONNX and run the file on real decisions."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("export needs ONNX: pip install 'maple-rl[export]'") from None
    module, given, names, wanted = _plan(agent.policy, *_sample(agent))
    label = "observation" if isinstance(agent.policy, IndexPolicy) else "features"
    part = path.with_name(path.name + ".part")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            (torch.from_numpy(given),),
            input_names=[label],
            output_names=names,
            dynamic_shapes=({0: torch.export.Dim("rows")},),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        program.save(str(part))  # type: ignore[union-attr]
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RunError(f"cannot write {path}: {error.strerror}; choose another place") from None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    half = given[: len(given) // 2]  # another number of rows than it was traced with
    found = session.run(names, {label: half})
    difference = max(float(np.abs(a - b[: len(half)]).max()) for a, b in zip(found, wanted, strict=True))
    return Exported(str(path), {label: ["rows", given.shape[1]]}, names, len(half), difference)
