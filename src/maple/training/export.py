"""A trained network as an ONNX file, checked against the network it came from.

The first layer becomes a plain matrix, so whoever runs the file gives dense rows: an observation for networks over
indices (with the mask, if a dueling head needs it), and for networks over options a row per option with how often each
feature is there (`dense_rows` makes them). Of a dueling network over options the file gives the advantages, by which
options are compared; of a distribution, its mean. A network that remembers takes its state and gives the next one. One
that attends or remembers and scores options takes decisions (`sight`: observations where it attends, else features),
their options, which decision each is of (`decision`) and, where it points at entities, the options' actions.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.arena.base import Arena
from maple.arena.choose import evaluation_arena
from maple.arena.open import open_arena
from maple.core.errors import MissingExtraError, RunError
from maple.games.external.game import ExternalGame
from maple.nets.body import Body
from maple.nets.dense import RELU
from maple.nets.entities import Tokens
from maple.nets.policy import IndexPolicy, OptionPolicy
from maple.nets.q import IndexQ, OptionQ
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.nets.sequence_q import OptionSequenceQ, SequenceQ
from maple.nets.sparse import Rows, SparseLayer
from maple.training.agent import Agent
from maple.training.learners import Net

__all__ = ["Exported", "dense_rows", "export_onnx"]

OPSET = 18
TOLERANCE = 1e-4  # by which a file may differ from the network
TABLES, SAMPLED = 24, 240  # the games that are played to check a file, and the decisions of them; half are checked
PER_OPTION = ("features", "decision", "action", "logits", "score")  # of networks that take decisions and options apart
FEW = 32  # decisions that such a network is checked on: dense options are large


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
        x, tokens, after = _through(self.net.body, observation, state)
        return *self.net.heads(x, tokens), *after


def _through(body: Body, sight: Tensor, state: Tensor | None) -> tuple[Tensor, Tokens | None, tuple[Tensor, ...]]:
    """What a body makes of dense rows, and of a state if there is one."""
    tokens = None
    if isinstance(body.first, SparseLayer):
        x = sight @ body.first.weight + body.first.bias
    else:
        x, tokens = body.first(sight)
    x = body.activate(x)
    if state is None:
        return x, tokens, ()
    x, after = body.remember(x, state)
    return x, tokens, (after,)


class _SequenceValues(nn.Module):
    def __init__(self, net: SequenceQ) -> None:
        super().__init__()
        self.net = net

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor | None = None) -> tuple[Tensor, ...]:
        x, tokens, after = _through(self.net.body, observation, state)
        return self.net.heads(x, tokens, mask).mean(2), *after


class _OptionSequence(nn.Module):
    """The inputs after the third are the state, if it remembers, and the actions, if it points."""

    def __init__(self, net: OptionSequencePolicy | OptionSequenceQ) -> None:
        super().__init__()
        self.net = net

    def forward(self, sight: Tensor, features: Tensor, decision: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        net = self.net
        x, tokens, after = _through(net.body, sight, rest[0] if net.state_width else None)
        described = torch.relu(features @ net.first.weight + net.first.bias)
        scores = net.score(described, net.context(x).index_select(0, decision))
        if isinstance(net, OptionSequenceQ):
            scores = scores.mean(1)
        if net.pointer is not None:
            pointed = net.pointer(x, tokens).unflatten(1, (net.pointer.actions, -1)).mean(2).index_select(0, decision)
            scores = scores + pointed.gather(1, rest[-1][:, None])[:, 0]
        return (scores, *after) if isinstance(net, OptionSequenceQ) else (scores, net.critic(x)[:, 0], *after)


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
    arena: Arena
    if isinstance(game, ExternalGame):
        arena = evaluation_arena(game, TABLES, 1, 1, agent.config.workers)
    else:
        arena = open_arena(game, TABLES, 1, team)
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
    options: NDArray[np.int64] | None = None  # where each decision's begin, if inputs and outputs have a row for each

    def rows(self, name: str, decisions: int) -> int:
        """How many rows of an input or output belong to the first so many decisions."""
        return int(self.options[decisions]) if self.options is not None and name in PER_OPTION else decisions


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


def _sequence_values_plan(net: SequenceQ, view: NDArray[np.uint64]) -> _Plan:
    """The same of values of indices."""
    observation, mask = net.seen.observation(view)
    given: dict[str, NDArray[Any]] = {"observation": observation.astype(np.float32), "mask": mask}
    state = np.random.default_rng(0).normal(size=(len(view), net.state_width)).astype(np.float32)
    values, after = net(observation, mask, torch.from_numpy(state))
    wanted = {"values": values.mean(2).numpy()}
    if not net.state_width:
        return _Plan(_SequenceValues(net), given, wanted)
    return _Plan(_SequenceValues(net), {**given, "state": state}, {**wanted, "next_state": after.numpy()})


def _option_sequence_plan(net: OptionSequencePolicy | OptionSequenceQ, view: NDArray[np.uint64]) -> _Plan:
    """The same of a network over options."""
    sight, options, features = net.body.sight(view), net.seen.options(view, keep=True), net.seen.spec.features
    count = np.diff(options.offset)
    decision = np.repeat(np.arange(len(view)), count)
    described = net.seen.choice(view[decision], options.action)
    given: dict[str, NDArray[Any]] = {
        "sight": dense_rows(sight, features) if isinstance(sight, Rows) else sight.astype(np.float32),
        "features": dense_rows(described, features),
        "decision": decision,
    }
    state = np.random.default_rng(0).normal(size=(len(view), net.state_width)).astype(np.float32)
    if net.state_width:
        given["state"] = state
    if net.pointer is not None:
        given["action"] = options.action.astype(np.int64)
    x, tokens, after = net.body(sight, torch.from_numpy(state))
    if isinstance(net, OptionSequenceQ):
        wanted = {"score": net.scores(options, x, tokens)[0].mean(1).numpy()}
    else:
        wanted = dict(zip(("logits", "value"), (y.numpy() for y in net.heads(options, x, tokens)), strict=True))
    wanted |= {"next_state": after.numpy()} if net.state_width else {}
    return _Plan(_OptionSequence(net), given, wanted, options.offset)


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
    if isinstance(net, SequenceQ):
        return _sequence_values_plan(net, view)
    if isinstance(net, OptionSequencePolicy | OptionSequenceQ):
        return _option_sequence_plan(net, view[:: len(view) // FEW])
    rows, features = net.seen.choice(view, action), net.seen.spec.features
    given: dict[str, NDArray[Any]] = {"features": dense_rows(rows, features)}
    if isinstance(net, OptionPolicy):
        return _Plan(_Options(net.first, net.actor), given, {"logit": net.actor(net.first.of_features(rows)).numpy()})
    if isinstance(net, OptionQ):
        score = net.advantage(net.first.of_features(rows)).numpy()
        return _Plan(_Options(net.first, net.advantage), given, {"score": score})
    return _Plan(_Options(net.first, net.rest), given, {"signals": net(rows).numpy()})


def export_onnx(agent: Agent, path: Path) -> Exported:
    """Write the agent's network as ONNX and run the file on real decisions; one that answers otherwise is not kept."""
    try:
        import onnxruntime  # noqa: F401  whoever cannot check a file should not wait for it
    except ImportError:
        raise MissingExtraError("export needs ONNX: pip install 'maple-rl[export]'") from None
    plan = _plan(agent.policy, *_sample(agent))
    counted = {name: "options" if plan.options is not None and name in PER_OPTION else "rows" for name in plan.given}
    program = _translated(plan, counted)
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        program.save(str(part))
        half = len(next(iter(plan.given.values()))) // 2  # another number of rows than it was traced with
        asked, difference = _compared(plan, part, half)
        if not difference <= TOLERANCE:  # written so that what is not a number fails too
            raise RunError(
                f"{path} is not written: it would differ from the network by {difference:.2g}, and {TOLERANCE:.2g} is "
                "the most; look at the run's figures, or export an earlier agent of it (RUN@STEP)"
            )
        part.replace(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}; choose another place") from None
    finally:
        with suppress(OSError):
            part.unlink()
    inputs: dict[str, list[int | str]] = {
        name: [counted[name], *array.shape[1:]] for name, array in plan.given.items() if name in asked
    }
    return Exported(str(path), inputs, list(plan.wanted), half, difference)


def _translated(plan: _Plan, counted: Mapping[str, str]) -> Any:
    """The module as an ONNX program; `counted` says of what an input has rows."""
    dims = {"rows": torch.export.Dim("rows"), "options": torch.export.Dim("options")}
    shapes: list[Any] = [{0: dims[counted[name]]} for name in plan.given]
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it tells of libraries that nobody asked for
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.onnx.export(
            plan.module.eval(),
            tuple(torch.from_numpy(array) for array in plan.given.values()),
            input_names=list(plan.given),
            output_names=list(plan.wanted),
            dynamic_shapes=(*shapes[:3], tuple(shapes[3:])) if plan.options is not None else tuple(shapes),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )


def _compared(plan: _Plan, file: Path, decisions: int) -> tuple[set[str], float]:
    """The inputs that a file asks for, and how far its answers to the first decisions are from the network's."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    asked = {node.name for node in session.get_inputs()}  # a mask that changes nothing is left out of the file
    given = {name: array[: plan.rows(name, decisions)] for name, array in plan.given.items() if name in asked}
    found = session.run(list(plan.wanted), given)
    wanted = [array[: plan.rows(name, decisions)] for name, array in plan.wanted.items()]
    # np.max, not max: it does not lose what is not a number
    return asked, float(np.max([np.abs(one - right).max() for one, right in zip(found, wanted, strict=True)]))
