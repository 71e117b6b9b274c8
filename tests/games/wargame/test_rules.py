"""Kernels against the slow rules, decision for decision."""

from __future__ import annotations

import pytest

from maple.core.threads import Team
from tests.games.wargame.match import SideBySide, wargame


@pytest.mark.parametrize(
    ("options", "bot", "tables", "steps"),
    [
        ({}, "random", 10, 200),
        ({"armies": "drawn", "rewards": {"luck": 1}}, "tactician", 8, 200),
        ({"armies": "assault", "maps": ["ruins", "courtyard"]}, "greedy", 8, 200),
        ({"armies": "gunline,raiders", "missions": ["hunt"], "rounds": 3, "step_cap": 60}, "charger", 10, 160),
    ],
)
def test_games_match_the_slow_rules(options: dict[str, object], bot: str, tables: int, steps: int, team: Team) -> None:
    both = SideBySide(wargame(**options), tables, 11, team)
    for _ in range(steps):
        both.step(bot)
    assert both.finished >= tables
