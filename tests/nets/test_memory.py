"""What seats remember: batches of any cut against one row at a time, written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.step import Keys
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.learn.descent import MIN_SHARE
from maple.nets.body import Body, Shape
from maple.nets.entities import Attention
from maple.nets.memory import Core, Memory
from maple.nets.seen import Seen
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy


def _keys(table: list[int], seat: list[int], decision: list[int]) -> Keys:
    n = len(table)
    return Keys(np.array(table, np.int32), np.zeros(n, np.int64), np.array(seat, np.int8), np.array(decision, np.int32))


def test_a_seat_remembers_until_its_next_game() -> None:
    memory = Memory()
    first = _keys([5, 0], [1, 0], [0, 0])
    assert not memory.recall(first, 2).any()
    memory.keep(first, np.array([[1, 2], [3, 4]], np.float32))
    assert memory.recall(_keys([0, 5], [0, 1], [1, 1]), 2).tolist() == [[3, 4], [1, 2]]
    assert memory.recall(_keys([0, 5], [0, 1], [0, 7]), 2).tolist() == [[0, 0], [1, 2]]
    assert memory.recall(_keys([5, 9], [0, 3], [1, 1]), 2).tolist() == [[0, 0], [0, 0]]  # never met before


def test_policies_of_different_widths_share_a_memory() -> None:
    memory = Memory()
    narrow, wide = _keys([0], [0], [0]), _keys([1], [0], [0])
    memory.recall(narrow, 1)
    memory.keep(narrow, np.array([[7]], np.float32))
    memory.recall(wide, 3)
    memory.keep(wide, np.array([[1, 2, 3]], np.float32))
    assert memory.recall(_keys([0], [0], [1]), 1).tolist() == [[7]]
    assert memory.recall(_keys([1], [0], [1]), 3).tolist() == [[1, 2, 3]]


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def _by_hand(core: Core, x: NDArray[np.float64], state: NDArray[np.float64]) -> NDArray[np.float64]:
    """The state after one decision, as the papers have it; its first numbers are the output."""
    weights = (core.layer.weight_ih_l0, core.layer.weight_hh_l0, core.layer.bias_ih_l0, core.layer.bias_hh_l0)
    to_x, to_h, bias_x, bias_h = (tensor.detach().double().numpy() for tensor in weights)
    h = state[: core.width]
    seen, had = to_x @ x + bias_x, to_h @ h + bias_h
    if core.is_lstm:
        into, forget, new, out = np.split(seen + had, 4)
        cell = _sigmoid(forget) * state[core.width :] + _sigmoid(into) * np.tanh(new)
        return np.concatenate([_sigmoid(out) * np.tanh(cell), cell])
    (reset_x, update_x, new_x), (reset_h, update_h, new_h) = np.split(seen, 3), np.split(had, 3)
    update = _sigmoid(update_x + update_h)
    return (1 - update) * np.tanh(new_x + _sigmoid(reset_x + reset_h) * new_h) + update * h


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_acting_in_batches_is_acting_one_by_one(kind: str, team: Team) -> None:
    """OFC: seats take turns, games end and begin; every row against a plain loop with a dict of states."""
    game = make_game("ofc", {"fantasyland": "off"})
    torch.manual_seed(1)
    policy = SequencePolicy(Seen(game, team), [12, 10], Shape(12, "tanh", kind, 9))  # type: ignore[arg-type]
    torch.nn.init.normal_(policy.actor[-1].weight)  # type: ignore[arg-type]
    assert policy.body.core is not None
    memory, states, games = Memory(), dict[tuple[int, int, int], NDArray[np.float64]](), set[int]()
    arena = NativeArena(game, 7, 3, team, check=False)
    for _ in range(40):
        step = arena.recv()
        choice = policy.choose(step.view, step.keys, 5, False, memory)
        for row, key in enumerate(zip(step.keys.table, step.keys.game, step.keys.seat, strict=True)):
            state = states.get(key, np.zeros(policy.state_width))
            np.testing.assert_allclose(choice.state[row], state, atol=2e-6)
            with torch.no_grad():
                x = policy.body.trunk(step.observation[row : row + 1])[0][0].double().numpy()
            states[key] = state = _by_hand(policy.body.core, x, state)
            with torch.no_grad():
                out = torch.from_numpy(state[None, :9]).float()
                value, logits = policy.critic(out)[0, 0], policy.actor(out)[0].double().numpy()
            legal = np.where(step.mask[row], logits, -np.inf)
            top = legal.max()
            expected = legal - top - np.log(np.exp(legal - top).sum())
            np.testing.assert_allclose(choice.value[row, 0], value, atol=2e-6)
            np.testing.assert_allclose(choice.log_prob[row], expected[choice.action[row]], atol=1e-5)
            games.add(int(key[1]))
        arena.send(choice.action.astype(np.int32))
    assert len(games) >= 3


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ofc", Shape(12, "relu", "lstm", 9)),
        ("wargame", Shape(12, "relu", "gru", 9, Attention(8, 2, 1))),
        ("wargame", Shape(12, "relu", attention=Attention(8, 2, 1))),
    ],
)
def test_options_are_scored_one_by_one_in_what_is_remembered(name: str, shape: Shape, team: Team) -> None:
    """Every option by itself, from the features of the one choice, in a plain loop with a dict of states."""
    game = make_game(name)
    torch.manual_seed(1)
    policy = OptionSequencePolicy(Seen(game, team), [12, 10], shape).requires_grad_(False)
    for module in policy.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, std=0.5)
    memory, states = Memory(), dict[tuple[int, int, int], NDArray[np.float64]]()
    arena, again = NativeArena(game, 5, 3, team, check=False, observations=True), 0
    for _ in range(12):
        step = arena.recv()
        choice = policy.choose(step.view, step.keys, 5, False, memory)
        for row, key in enumerate(zip(step.keys.table, step.keys.game, step.keys.seat, strict=True)):
            view, again = step.view[row : row + 1], again + (key in states)
            state = states.get(key, np.zeros(policy.state_width))
            np.testing.assert_allclose(choice.state[row], state, atol=2e-6)
            seen, tokens = policy.body.trunk(policy.body.sight(view))
            x = seen[0].double().numpy()
            if policy.body.core is not None:
                states[key] = _by_hand(policy.body.core, x, state)
                x = states[key][: policy.body.width]
            out = torch.from_numpy(x).float()
            legal, logits = np.flatnonzero(step.mask[row]), []
            for action in legal:
                rows = policy.seen.choice(view, np.array([action], np.int16))
                described = torch.relu(policy.first.of_features(rows)[0] + policy.context(out))
                logits.append(float(policy.actor(described)))
                for group, place in zip(game.spec.entities, _places(game), strict=True):
                    if policy.pointer is not None and action in group.pointing:
                        block, entity = divmod(group.pointing.index(action), group.count)
                        asked = policy.pointer.query[group.name](out).view(-1, 8)[block]
                        logits[-1] += float(asked @ tokens.of[0, place + entity]) / 8**0.5
            expected = torch.log_softmax(torch.tensor(logits).double(), 0)
            taken = legal.tolist().index(choice.action[row])
            np.testing.assert_allclose(choice.log_prob[row], expected[taken], atol=2e-5)
            np.testing.assert_allclose(choice.value[row, 0], policy.critic(out)[0], atol=2e-5)
        arena.send(choice.action.astype(np.int32))
    assert again > 10 or policy.body.core is None


def _places(game: Game) -> list[int]:
    """Where each group's tokens begin."""
    return [sum(group.count for group in game.spec.entities[:i]) for i in range(len(game.spec.entities))]


def test_little_work_is_not_shared_among_threads(team: Team) -> None:
    seen = Seen(make_game("ofc"), team)
    small, large = (Body(seen, Shape(width, "relu", "lstm", width)) for width in (64, 512))
    assert small.worth(256) < 2 * MIN_SHARE <= small.worth(4096)
    assert large.worth(256) >= 4 * MIN_SHARE
    assert Body(seen, Shape(64, "relu", "lstm", 64), described=True).worth(256) == 256


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_state_advances_by_each_columns_own_length(kind: str) -> None:
    torch.manual_seed(0)
    core = Core(kind, 4, 3)  # type: ignore[arg-type]
    x, state, length = torch.randn(5, 6, 4), torch.randn(6, core.state_width), np.array([0, 5, 2, 1, 0, 3])
    with torch.no_grad():
        found = core.advance(x, state, length).numpy()
    for column, steps in enumerate(length):
        expected = state[column].double().numpy()
        for step in range(steps):
            expected = _by_hand(core, x[step, column].double().numpy(), expected)
        np.testing.assert_allclose(found[column], expected, atol=1e-6)
