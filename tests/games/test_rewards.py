"""One composer of rewards: weights, intervals, sub-totals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games.rewards import Component, Ledger, pay, subtotals
from tests.games.wargame.match import wargame


def test_a_number_is_a_weight() -> None:
    assert Component.model_validate(2) == Component(weight=2.0, every=1)
    assert Component.model_validate({"weight": 0.5, "every": 8}) == Component(weight=0.5, every=8)
    with pytest.raises(ValidationError):
        Component.model_validate({"weight": 1, "every": 0})


@settings(deadline=None)
@given(
    earned=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=40),
    weight=st.tuples(st.integers(-4, 4), st.integers(-4, 4)),
    every=st.tuples(st.integers(1, 7), st.integers(1, 7)),
)
def test_nothing_is_lost_and_the_parts_add_up(
    earned: list[tuple[int, int]], weight: tuple[int, int], every: tuple[int, int]
) -> None:
    pending, parts = np.zeros(2, np.float32), np.zeros(2, np.float32)
    weights, intervals, total = np.array(weight, np.float32), np.array(every, np.int64), 0.0
    for decision, amounts in enumerate(earned, 1):
        pending += np.array(amounts, np.float32)
        last = decision == len(earned)
        total += float(pay(pending, weights, intervals, decision, last, parts))
    sums = np.array(earned).sum(axis=0)
    assert parts.tolist() == (sums * np.array(weight)).tolist()
    assert total == parts.sum()


def test_the_total_stands_beside_its_parts() -> None:
    parts = np.array([[[1, 0.5], [9, 9]], [[9, 9], [3, -0.5]]], np.float32)
    found = subtotals(("win", "hold"), parts, np.array([0, 1]))
    assert found == {"reward": 2.0, "reward_win": 2.0, "reward_hold": 0.0}
    game = wargame()
    figures = np.zeros(2, game.spec.figures)
    figures["parts"][:, 0, 0], figures["parts"][:, 0, 1] = [1.0, 0.5], [0.25, 0.25]
    summary = game.summarize(figures, np.zeros(2, np.int64))
    assert summary["reward"] == 1.0 == sum(value for name, value in summary.items() if name.startswith("reward_"))


def test_a_secondary_component_waits_for_its_decision() -> None:
    pending, parts = np.array([1, 1], np.float32), np.zeros(2, np.float32)
    weight, every = np.array([1, 10], np.float32), np.array([1, 4], np.int64)
    assert pay(pending, weight, every, 3, False, parts) == 1
    assert pending.tolist() == [0, 1]
    assert pay(pending, weight, every, 4, False, parts) == 10


def test_a_ledger_pays_as_every_seat_alone_would_be() -> None:
    rng, seats = np.random.default_rng(1), 2
    components = {"often": Component(weight=2.0), "rarely": Component(weight=-0.5, every=3)}
    weight, every = np.array([2, -0.5], np.float32), np.array([1, 3], np.int64)
    ledger, decision = Ledger(components, 4, seats), np.zeros((4, seats), np.int64)
    alone = {(t, s): (np.zeros(2, np.float32), np.zeros(2, np.float32)) for t in range(4) for s in range(seats)}
    for _ in range(200):
        table = rng.permutation(4)[: rng.integers(0, 5)]
        seat = rng.integers(0, seats, len(table))
        earned = rng.integers(-4, 5, (len(table), 2)).astype(np.float32)
        found = ledger.pay(table, seat, decision[table, seat], earned)
        for i, (t, s) in enumerate(zip(table, seat, strict=True)):
            pending, parts = alone[t, s]
            pending += earned[i]
            assert found[i] == pay(pending, weight, every, decision[t, s], False, parts)
        decision[table, seat] += 1
        over = rng.permutation(4)[: rng.integers(0, 2)]
        last = rng.integers(-4, 5, (len(over), seats, 2)).astype(np.float32)
        found, paid = ledger.close(over, last)
        for i, t in enumerate(over):
            for s in range(seats):
                pending, parts = alone.pop((t, s))
                pending += last[i, s]
                assert found[i, s] == pay(pending, weight, every, 0, True, parts)
                assert paid[i, s].tolist() == parts.tolist()
                alone[t, s] = (np.zeros(2, np.float32), np.zeros(2, np.float32))
        decision[over] = 0


@pytest.mark.parametrize(
    "rewards",
    [
        {},
        {"win": 0, "margin": 0, "damage": 1.5, "hold": {"weight": 0.2, "every": 5}, "vp": {"weight": 0.1, "every": 9}},
    ],
)
def test_rewards_of_a_game_add_up_to_its_parts(rewards: dict[str, object], team: Team) -> None:
    game = wargame(rewards=rewards, step_cap=150)
    arena = NativeArena(game, 24, 8, team, observations=False, check=False)
    earned, games, action = np.zeros((24, 2)), 0, np.zeros(24, np.int32)
    for _ in range(400):
        step = arena.recv()
        for row, table in enumerate(step.ended.table.tolist()):
            figures = step.ended.figures[row]
            total = earned[table] + step.ended.reward[row, :, 0]
            assert figures["parts"].sum(axis=1) == pytest.approx(total, abs=1e-4)
            if not rewards and step.ended.outcome[row] == 1:
                assert figures["parts"][:, 1] == pytest.approx([0, 0], abs=1e-4)  # a potential pays nothing in the end
                assert figures["parts"][:, 0].tolist() == {0: [1, -1], 1: [-1, 1], -1: [0, 0]}[int(figures["winner"])]
            earned[table] = 0
            games += 1
        rows = np.arange(24)
        earned[rows, step.keys.seat] += step.reward[:, 0]
        game.bot("greedy")(step.view, 8, step.keys, action, 0, 24)
        arena.send(action)
    assert games > 24
