"""Golden records: whole games with every card and action, as they were played when the record was made.

`python -m tests.games.ofc.record` writes them anew, into tests/golden/ofc. Do that only when the rules, the order of
dealing or the random numbers change on purpose: the records say that games of today are those of yesterday.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from maple.arena.native import NativeArena
from maple.core.step import Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.ofc.cards import card_name, cards_of

__all__ = ["FOLDER", "RECORDED", "end_of", "record", "seen"]

FOLDER = Path(__file__).parents[2] / "golden" / "ofc"
SEED = 2024
GAMES = 2
# Which game, and which table of it: tables whose first games reach fantasyland, where there is one.
RECORDED: dict[str, tuple[dict[str, Any], str]] = {
    "pineapple": ({"fantasyland": "off"}, "safe"),
    "progressive": ({}, "safe"),
    "two-seats-fixed": ({"seats": 2, "fantasyland": "fixed", "stay_full_house": True}, "safe"),
    "regular": ({"variant": "regular"}, "safe"),
    "jokers": ({"jokers": 2, "hand_cap": 3}, "safe"),
    "random": ({"fantasyland": "off"}, "random"),
}


def seen(step: Step) -> dict[str, Any]:
    """The one waiting decision."""
    return {
        "game": int(step.keys.game[0]),
        "seat": int(step.keys.seat[0]),
        "decision": int(step.keys.decision[0]),
        "rows": [" ".join(card_name(card) for card in cards_of(word)) for word in step.view[0, :9]],
        "hand": " ".join(card_name(card) for card in cards_of(step.view[0, 9])),
    }


def end_of(step: Step) -> dict[str, Any]:
    """The one game that has just ended."""
    names = ("how", "hands", "winner", "length", "score", "fouls", "royalty", "entries", "stays", "fantasy_hands")
    return {name: np.asarray(step.ended.figures[name][0]).tolist() for name in names}


def record(settings: dict[str, Any], bot: str, table: int) -> dict[str, Any]:
    """Play the first games of a table."""
    game = make_game("ofc", settings)
    decisions: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    with Team(1) as team:
        arena = NativeArena(game, 1, SEED, team, first_table=table)
        while True:
            step, action = arena.recv(), np.zeros(1, np.int32)
            ends += [end_of(step)] if len(step.ended.table) else []
            if len(ends) == GAMES:
                return {"settings": settings, "seed": SEED, "table": table, "decisions": decisions, "ends": ends}
            game.bot(bot)(step.view, SEED, step.keys, action, 0, 1)
            decisions.append({**seen(step), "action": int(action[0])})
            arena.send(action)


def _interesting(settings: dict[str, Any], bot: str) -> dict[str, Any]:
    """The first table whose games include fantasyland, if the game has it."""
    for table in range(1000):
        found = record(settings, bot, table)
        if settings.get("fantasyland") == "off" or any(end["hands"] > 1 for end in found["ends"]):
            return found
    raise LookupError(f"no table of {settings} reaches fantasyland")


def main() -> None:
    """Write all records."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (settings, bot) in RECORDED.items():
        found = _interesting(settings, bot)
        lines = ",\n  ".join(json.dumps(decision) for decision in found.pop("decisions"))
        head = json.dumps(found)[:-1]
        (FOLDER / f"{name}.json").write_text(f'{head}, "decisions": [\n  {lines}\n]}}\n')


if __name__ == "__main__":
    main()
