"""Kills of Node processes, a few of them."""

from __future__ import annotations

import numpy as np
import pytest

from maple.bench import battle_kills
from maple.core.step import Ended, Keys, Outcome


def test_kills_cost_the_battles_of_the_killed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battle_kills, "PAUSE_S", 0.3)
    told: list[str] = []
    found = battle_kills.bench_battle_kills({}, 3, 2, 4, 5, told.append)
    assert found["crashes"] == found["kills"] == len(told) == 3
    assert found["battles_lost"] == found["battles_of_the_killed"] == 12
    assert found["hangs"] == found["corrupted_rows"] == found["leaked_processes"] == found["leaked_descriptors"] == 0
    assert found["node_starts"] >= 2 + 3


def test_rows_of_another_game_are_seen() -> None:
    class _Step:
        ended = Ended(
            table=np.array([1], np.int32),
            game=np.array([0], np.int64),
            outcome=np.array([Outcome.LOST], np.int8),
            reward=np.zeros((1, 2)),
            figures=np.zeros(1),
            cut=np.zeros(0, np.intp),
            last_view=np.zeros((0, 2, 1), np.uint64),
        )

        def __init__(self, games: list[int]) -> None:
            count = len(games)
            self.keys = Keys(
                np.arange(count, dtype=np.int32), np.array(games), np.zeros(count, np.int8), np.zeros(count, np.int32)
            )

    rows = battle_kills._Rows(2)
    rows.check(_Step([0, 1]))  # type: ignore[arg-type]
    assert (rows.corrupted, rows.lost, rows.finished) == (0, 1, 0)
    stale = battle_kills._Rows(2)
    stale.check(_Step([0, 0]))  # type: ignore[arg-type]
    assert stale.corrupted == 1
