"""Playing an arena by a rule that looks at one row only, and what was seen doing it, in an order of its own."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from maple.arena.base import Arena
from maple.core.step import Outcome
from maple.games.external.game import ExternalGame

Trace = dict[int, list[tuple[Any, ...]]]


def play(arena: Arena, game: ExternalGame, decisions: int, seed: int = 5) -> Trace:
    """Random play until every table has made this many decisions; what each table saw, in its own order."""
    seen: Trace = defaultdict(list)
    bot, least = game.bot("random"), 0
    while least < decisions:
        step = arena.recv()
        for k in range(len(step.ended.table)):
            table = int(step.ended.table[k])
            last = [v.tobytes() for i, v in zip(step.ended.cut, step.ended.last_view, strict=True) if i == k]
            outcome = Outcome(step.ended.outcome[k])
            figures = step.ended.figures[k]
            record = (figures["length"], figures["score"].tolist(), step.ended.reward[k].tolist())
            seen[table].append(("ended", int(step.ended.game[k]), outcome, *record, last))
        action = np.empty(len(step.keys), np.int32)
        bot(step.view, seed, step.keys, action, 0, len(action))
        keys = step.keys
        for i, table in enumerate(keys.table.tolist()):
            key = (int(keys.game[i]), int(keys.seat[i]), int(keys.decision[i]))
            row = (step.view[i].tobytes(), step.reward[i].tolist(), step.mask[i].tolist(), int(action[i]))
            seen[table].append(("decision", *key, *row))
        arena.send(action)
        least = min((len(rows) for rows in seen.values()), default=0) if len(seen) == arena.tables else 0
    return {table: rows[:decisions] for table, rows in seen.items()}
