"""Plays kernels and the slow rules side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.step import Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.wargame.game import WargameGame
from maple.games.wargame.state import COMPONENTS
from tests.games.wargame.slow_pieces import Squad, turned
from tests.games.wargame.slow_table import SlowGame

END_REASONS = {1: "wipe_out", 2: "round_limit", 3: "step_cap"}


def wargame(**options: Any) -> WargameGame:
    game = make_game("wargame", options)
    assert isinstance(game, WargameGame)
    return game


def flags_of(squad: Squad) -> int:
    marks = (squad.shaken, squad.rushed, squad.charged, squad.braced, squad.done or not squad.alive, squad.deferred)
    return sum(1 << bit for bit, mark in enumerate(marks) if mark)


def check_squads(record: Any, slow: SlowGame) -> None:
    """Every squad of a table as the slow rules have it, also what is cached of whom it sees and touches."""
    for side in range(2):
        for slot, squad in enumerate(slow.sides[side]):
            cell = squad.cell[1] * 22 + squad.cell[0] if squad.alive else -1
            assert record["cell"][side, slot] == cell
            assert record["unit"][side, slot] == squad.number
            assert record["models"][side, slot] == squad.models
            assert record["engaged"][side, slot] == sum(1 << i for i in slow.engaged(side, squad))
            assert record["targets"][side, slot] == sum(1 << i for i in slow.in_sight(side, squad))
            if squad.alive:
                assert record["wounds"][side, slot] == squad.wounds
                assert record["flags"][side, slot] == flags_of(squad)
    assert record["vp"].tolist() == slow.vp
    assert record["destroyed"].tolist() == slow.destroyed
    assert record["command"].tolist() == slow.command
    assert (int(record["round"]), int(record["phase"]), int(record["turn"])) == (slow.round, slow.phase, slow.turn)
    if slow.decisions:
        assert record["rolls"][: record["rolled"]].tolist() == slow.rolls
    assert int(record["slot"]) == (255 if slow.slot is None else slow.slot)


class SideBySide:
    """Tables that both sets of rules play."""

    def __init__(self, game: WargameGame, tables: int, seed: int, team: Team) -> None:
        self.game, self.seed, self.tables = game, seed, tables
        self.arena = NativeArena(game, tables, seed, team)
        self.slow = [SlowGame(game, seed, table << 32) for table in range(tables)]
        self.finished = 0
        self.action = np.zeros(tables, np.int32)

    def step(self, bot: str) -> Step:
        """Compare every waiting decision, then play one action at each table."""
        step = self.arena.recv()
        ended = set(step.ended.table.tolist())
        for row, table in enumerate(step.ended.table.tolist()):
            self._check_end(step.ended.figures[row], self.slow[table])
            self.slow[table] = SlowGame(self.game, self.seed, (table << 32) + int(step.keys.game[table]))
        self.finished += len(ended)
        state = self.arena.state()["tables"].view(self.arena._blocks[0].tables.state.dtype).reshape(-1)
        for table, slow in enumerate(self.slow):
            check_squads(state[table], slow)
            assert step.keys.seat[table] == slow.side
            assert np.flatnonzero(step.mask[table]).tolist() == slow.legal()
        self.game.bot(bot)(step.view, self.seed, step.keys, self.action, 0, self.tables)
        self.arena.send(self.action)
        for table, slow in enumerate(self.slow):
            slow.play(int(self.action[table]))
        return step

    def _check_end(self, figures: Any, slow: SlowGame) -> None:
        assert END_REASONS[int(figures["end_reason"])] == slow.over
        assert figures["winner"] == slow.winner()
        assert figures["vp"].tolist() == slow.vp
        assert figures["kills"].tolist() == slow.kills
        assert figures["charges"].tolist() == slow.charges
        assert figures["length"] == slow.decisions
        assert figures["destroyed"].tolist() == slow.destroyed
        luck = self.game.settings.rewards.luck.weight * (slow.luck[0] - slow.luck[1])
        assert figures["parts"][:, COMPONENTS.index("luck")].tolist() == pytest.approx([luck, -luck], abs=1e-4)


def seen_cell(seat: int, squad: Squad) -> tuple[int, int]:
    """Where a seat sees a squad."""
    return turned(squad.cell) if seat else squad.cell


def play(game: WargameGame, bots: tuple[str, str], games: int, seed: int, team: Team) -> NDArray[Any]:
    """Figures of games between two scripted players, the first at seat 0."""
    arena = NativeArena(game, games, seed, team, observations=False, check=False)
    figures, done, action = np.zeros(games, game.spec.figures), np.zeros(games, np.bool_), np.zeros(games, np.int32)
    while True:
        step = arena.recv()
        fresh = step.ended.table[~done[step.ended.table]]
        figures[fresh] = step.ended.figures[~done[step.ended.table]]
        done[fresh] = True
        if done.all():
            return figures
        for seat, name in enumerate(bots):
            rows = np.flatnonzero(step.keys.seat == seat)
            chosen = np.zeros(len(rows), np.int32)
            game.bot(name)(step.view[rows], seed, step.keys.take(rows), chosen, 0, len(rows))
            action[rows] = chosen
        arena.send(action)
