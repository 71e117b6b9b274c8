"""Games recorded once and replayed exactly; `tests.games.ofc.record` tells how they are made."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games import make_game
from tests.games.ofc.record import FOLDER, RECORDED, end_of, seen


def _golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_games_replay_exactly(name: str) -> None:
    golden = _golden(name)
    ends = []
    with Team(1) as team:
        arena = NativeArena(make_game("ofc", golden["settings"]), 1, golden["seed"], team, first_table=golden["table"])
        for decision in golden["decisions"]:
            step = arena.recv()
            ends += [end_of(step)] if len(step.ended.table) else []
            assert {**seen(step), "action": decision["action"]} == decision
            arena.send(np.array([decision["action"]]))
        ends.append(end_of(arena.recv()))
    assert ends == golden["ends"]


def test_the_records_reach_fantasyland() -> None:
    reached = {name for name in RECORDED if any(end["hands"] > 1 for end in _golden(name)["ends"])}
    assert reached == {name for name, (settings, _) in RECORDED.items() if settings.get("fantasyland") != "off"}
