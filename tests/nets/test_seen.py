"""What networks read: the same in pieces as whole, and where a GPU reads it by itself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.sources import load_config
from maple.core.step import Options
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.learn import dqn
from maple.learn.dqn import DqnRecipe, Pupil, dqn_round
from maple.learn.replay import Replay
from maple.nets.seen import Seen
from maple.nets.sparse import SparseLayer
from maple.training.build import build_trainer
from maple.training.learners import DqnLearner, make_policy
from tests.conftest import Decisions


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where arrays begin that were put where a GPU reads them: pinning needs one, so here it is but a copy."""
    begin: list[int] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        copy = tensor.clone()
        begin.append(copy.data_ptr())
        return copy

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    return begin


def _begin(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("name", ["ofc", "wargame"])  # options of several parts, and of one
def test_options_in_pieces_are_those_of_the_whole(name: str, decisions: Decisions, team: Team) -> None:
    game, view = (decisions.game, decisions.view) if name == "ofc" else _skirmishes(team)
    seen = Seen(game, team)
    whole = seen.described(view, with_state=True, keep=True)
    layer = SparseLayer(seen.spec.features, 8)
    expected = layer.of_options(whole.options, seen.spec.max_parts).detach()
    for lo, hi in ((0, 1), (3, 40), (40, len(view))):
        part, alone = whole.of(lo, hi), seen.options(view[lo:hi], keep=True)
        assert np.array_equal(part.options.offset, alone.offset)
        assert np.array_equal(part.options.action, alone.action)
        assert np.array_equal(part.options.option_part, alone.option_part)
        assert len(part.options.part) == len(alone.part)
        found = layer.of_options(part.options, seen.spec.max_parts).detach()
        assert torch.equal(found, expected[whole.options.offset[lo] : whole.options.offset[hi]])
        assert torch.allclose(found, layer.of_options_in_torch(part.options), atol=1e-5)
        assert np.array_equal(part.state.length, seen.state(view[lo:hi]).length)


@pytest.mark.parametrize("name", ["ofc", "wargame"])  # one whose options share but a part of it, one where it is all
def test_what_comes_with_options_is_the_decision_as_it_stands(name: str, decisions: Decisions, team: Team) -> None:
    game, view = (decisions.game, decisions.view) if name == "ofc" else _skirmishes(team)
    seen = Seen(game, team)
    found, expected = seen.state_with(seen.options(view), view), seen.state(view)
    assert seen.spec.shares_all == (name == "wargame")
    assert np.array_equal(found.length, expected.length)
    there = np.arange(found.feature.shape[1]) < found.length[:, None]
    assert np.array_equal(found.feature[there], expected.feature[:, : there.shape[1]][there])


@pytest.mark.parametrize("name", ["ofc", "wargame"])
def test_options_that_were_kept_are_those_described_anew(name: str, decisions: Decisions, team: Team) -> None:
    game, view = (decisions.game, decisions.view) if name == "ofc" else _skirmishes(team)
    seen, other = Seen(game, team), Seen(game, team)
    kept = seen.all_options(view, 2**30)
    assert kept is not None
    assert seen.all_options(view, 1000) is None
    layer = SparseLayer(seen.spec.features, 8)
    for rows in (np.arange(len(view))[::-1], np.array([7, 3, 3, 41]), np.array([0])):
        found, anew = seen.of_kept(kept, rows), other.options(view[rows])
        assert np.array_equal(found.offset, anew.offset)
        assert np.array_equal(found.action, anew.action)
        assert np.array_equal(found.option_part, anew.option_part)
        first, second = (layer.of_options(each, seen.spec.max_parts).detach() for each in (found, anew))
        assert torch.equal(first, second)


def _skirmishes(team: Team) -> tuple[Game, NDArray[np.uint64]]:
    """The wargame, and decisions of some of its tables."""
    game = make_game("wargame")
    arena = NativeArena(game, 60, 5, team, observations=False, check=False)
    action = np.zeros(60, np.int32)
    for _ in range(20):
        step = arena.recv()
        game.bot("random")(step.view, 1, step.keys, action, 0, 60)
        arena.send(action)
    return game, arena.recv().view.copy()


def test_all_that_networks_read_is_where_a_gpu_reads_it(decisions: Decisions, team: Team, pinned: list[int]) -> None:
    seen, view = Seen(decisions.game, team, pinned=True), decisions.view[:20]
    action = seen.options(view, keep=True).action[seen.options(view, keep=True).offset[:-1]]
    for keep in (True, False):
        options = seen.options(view, keep)
        read = [getattr(options, field.name) for field in fields(Options) if field.name != "offset"]
        assert {_begin(array) for array in read} <= set(pinned)
    rows = (seen.state(view), seen.choice(view, action), seen.all_choices(view, action))
    read = [*seen.observation(view), *(array for row in rows for array in (row.feature, row.length))]
    assert {_begin(array) for array in read} <= set(pinned)
    before = len(pinned)
    Seen(decisions.game, team).described(view, with_state=True, keep=True)
    assert len(pinned) == before


def test_batches_of_replay_are_handed_over_where_a_gpu_reads_them(
    team: Team, pinned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [
        "algo=dqn",
        "tables=64",
        "net.hidden=[8]",
        "dqn.warmup=100000",
        "game.fantasyland=off",
        "dqn.prefetch=true",
    ]
    config = load_config("ofc", settings=[*settings, "dqn.policy=options", "dqn.dueling=true"], flags={"steps": 9999})
    game = make_game("ofc", config.game)
    trainer = build_trainer(config, game, team)
    for _ in range(20):
        trainer.round()
    replay, net = trainer.learner.memory, make_policy(config, Seen(game, team, pinned=True), torch.device("cpu"))
    assert isinstance(replay, Replay)
    learner = DqnLearner(net, config, replay, prefetch=True)  # type: ignore[arg-type]
    lessons: list[Any] = []
    loss = dqn._loss

    def kept(pupil: Any, recipe: Any, lesson: Any, *args: Any) -> Any:
        lessons.append(lesson)
        return loss(pupil, recipe, lesson, *args)

    monkeypatch.setattr(dqn, "_loss", kept)
    monkeypatch.setattr(Pupil, "by_kernel", False)
    recipe = DqnRecipe(1, 64, 1, 0.5, True, 0.1, 1, 1.0, 0.0, 0.1)
    dqn_round(learner._pupil, replay, learner._ahead, recipe, 0, 0)
    learner.close()
    trainer.learner.close()
    drawn, here, beyond = lessons[0]
    told = [drawn.weight, drawn.action, drawn.reward, drawn.discount]
    for look in (here, beyond):
        told += [*look.options.lists()[1:], look.options.action, look.state.feature, look.state.length]
    assert {_begin(array) for array in told} <= set(pinned)
