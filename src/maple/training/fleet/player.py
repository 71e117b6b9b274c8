"""What an actor process does: play its tables with a version of the weights, and write down the learner's part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from maple.arena.host import Host
from maple.arena.serial import SerialArena
from maple.core.config import Config
from maple.core.errors import UserError
from maple.core.step import Keys
from maple.core.threads import Team
from maple.games import make_game
from maple.games.external.game import ExternalGame
from maple.nets.memory import Memory
from maple.nets.seen import Seen
from maple.perf.spans import span
from maple.training.actor import Actor
from maple.training.fleet.blocks import AT, DONE, ROUNDS, STOP, Blocks, Sizes
from maple.training.league import League
from maple.training.learners import frozen_copy, make_policy
from maple.training.seating import SNAPSHOT, OpponentMix, Seating, Shares

__all__ = ["Player"]


class Player:
    """Made ahead of need, it has its envs and its network ready before it is given tables."""

    def __init__(self, task: dict[str, Any], log: Callable[[str], None]) -> None:
        self._config = config = Config.model_validate(task["config"])
        self._sizes, self._tables, self._log = Sizes(**task["sizes"]), task["tables"], log
        game = make_game(config.name, config.game)
        assert isinstance(game, ExternalGame)
        if game.spec.view != task["view"]:
            raise UserError(
                f"{config.name} has other spaces in an actor than in the trainer; make it the same each time"
            )
        self._game = game
        arguments = game.settings.model_dump()
        self._host = Host(config.name, arguments, task["count"], config.seed, config.workers.max_deaths, log)
        self._team = Team(1)
        mix = OpponentMix.parse(config.opponents, game.spec.opponents)
        self._league = League(mix, config.snapshots, config.league)
        self._seating = Seating(self._tables, game.spec.seats, config.seed)
        self._net = make_policy(config, Seen(game, self._team), torch.device("cpu"))
        self._actor = Actor(self._net, [game.bot(name) for name in mix.bots], self._team, config.seed)

        self._warm_up()

    def _warm_up(self) -> None:
        """Load all that the first decision needs, so that it takes no longer than others."""
        view, row = np.zeros((2, self._game.spec.view), np.uint64), np.zeros(2, np.int32)
        layout = self._game.plan.layout
        if layout.masked:
            layout.mask_of(view)[:] = True
        self._net.choose(view, Keys(row, row.astype(np.int64), row.astype(np.int8), row), 0, False, Memory())
        self._seating.seat(row, row.astype(np.int64), self._league.shares)

    def take(self, buffer: Any, slot: dict[str, Any]) -> None:
        """Play the tables of a slot from now on; where games were lost there, the next ones begin."""
        self._number, (lo, hi) = slot["number"], slot["tables"]
        self._blocks = Blocks(buffer, self._game.spec, self._sizes)
        self._control = self._blocks.control[self._number]
        at, memory = self._control[AT : AT + 1].data, self._blocks.board_of(self._number).data
        known = {"host": self._host, "at": at, "memory": memory}
        self._arena = SerialArena(self._game, hi - lo, self._config.seed, first_table=lo, log=self._log, **known)
        self._horizon = slot["horizon"]
        tables = np.arange(lo, hi, dtype=np.int32)
        self._seating.seat(tables, np.zeros(hi - lo, np.int64), self._league.shares)
        if slot["lost"] is not None:
            self._arena.restore({"game": np.array(slot["lost"], np.int64)})

    def _meet(self, shares: Shares) -> None:
        """Have those snapshots at hand that games are in with or may begin with, and no others."""
        snapshots, drawn = self._actor.snapshots, shares.player[shares.player >= SNAPSHOT]
        needed = {int(code) - SNAPSHOT for code in (*drawn, *np.unique(self._seating.player))}
        for old in set(snapshots) - needed:
            del snapshots[old]
        for code in drawn.tolist():
            if code - SNAPSHOT not in snapshots:
                snapshots[code - SNAPSHOT] = frozen_copy(self._net)
                self._blocks.fetch_snapshot(snapshots[code - SNAPSHOT], code)

    def play(self, number: int, version: int) -> None:
        """Write a block."""
        arena, spec, control = self._arena, self._game.spec, self._control
        with span("weights_fetch"):
            shares = self._blocks.fetch(self._net, version)
            self._meet(shares)
        block = self._blocks.writer(self._number, number, version)
        while block.rows < self._horizon and block.has_room(arena.tables, spec.seats) and not control[STOP]:
            with span("env_observe"):
                step = arena.recv()
            ended = step.ended
            beyond = self._actor.beyond(ended)
            with span("rollout_store"):
                self._seating.seat(ended.table, ended.game + 1, shares)
                alone = self._league.mix.only_learner
                player = None if alone else self._seating.player[step.keys.table, step.keys.seat]
            with span("agent_action_selection"):
                acted = self._actor.act(step, player)
            rows = acted.rows
            with span("rollout_store"):
                about = (step.keys.table[rows], step.keys.seat[rows], step.reward[rows], step.view[rows])
                block.add(ended, beyond, about, acted.choice)
            with span("env_step"):
                arena.send(acted.action)
            control[ROUNDS] += 1
        control[DONE] += 1

    def close(self) -> None:
        """Close the envs."""
        self._host.close()
        self._team.close()
