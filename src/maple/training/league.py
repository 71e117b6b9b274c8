"""The league of a run: its frozen snapshots, who they beat, and how often each is met.

Everything here depends on counts and results alone, never on the clock, and is part of the run's checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.config import LeagueConfig, SnapshotConfig
from maple.core.errors import CheckpointError
from maple.training.league_records import Records
from maple.training.seating import LEARNER, PAST, RIVAL, RUN, SNAPSHOT, OpponentMix, Shares

__all__ = ["CAUSES", "League", "Snapshot"]

EXPLOITER = "exploiter"
CAUSES = ("schedule", "gate", EXPLOITER)  # why a snapshot was taken


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A frozen learner, or an exploiter of one."""

    steps: int  # of the run when it was taken
    cause: str

    @property
    def own(self) -> bool:
        """Whether the run's learner was like this once."""
        return self.cause != EXPLOITER

    @property
    def name(self) -> str:
        """What tables and matrices call it."""
        return f"@{self.steps}" if self.own else f"exploiter@{self.steps}"


class League:
    """Says who is drawn for a seat, when a snapshot is due and which are still in the pool."""

    def __init__(self, mix: OpponentMix, snapshots: SnapshotConfig, league: LeagueConfig) -> None:
        self.mix, self._snapshots, self._config = mix, snapshots, league
        self.fixed = ["learner", *mix.bots, *(RUN + name for name in mix.runs)]  # who is there from the beginning
        self.records = Records(len(self.fixed), league.window)
        self.taken: list[Snapshot] = []  # all that there ever were, by number
        self._noted: list[tuple[NDArray[np.int32], NDArray[Any]]] = []
        self.shares = self._drawn()

    @property
    def pool(self) -> list[int]:
        """The numbers of the snapshots that new games draw from: the learner's newest and the newest exploiters."""
        own, exploiters = self._numbers(own=True), self._numbers(own=False)
        return sorted([*own[-self._snapshots.keep :], *exploiters[-self._snapshots.keep :]])

    @property
    def exploiter_is_due(self) -> bool:
        """Whether it is time for an exploiter of the newest of the learner's snapshots."""
        every, newest = self._config.exploiter_every, self.taken[-1:]
        return every > 0 and any(snapshot.own for snapshot in newest) and len(self._numbers(own=True)) % every == 0

    @property
    def names(self) -> list[str]:
        """The players by their rows in the records."""
        return [*self.fixed, *(snapshot.name for snapshot in self.taken)]

    def note(self, player: NDArray[np.int32], score: NDArray[Any]) -> None:
        """Remember how games ended: who had each seat (G, S), and its score (G, S)."""
        if len(player) and not self.mix.only_learner:
            self._noted.append((self._row(player), score.astype(np.float64)))

    def settle(self, steps: int) -> str | None:
        """Count what was noted, after an update; says why a snapshot is due, if one is."""
        if self._noted:
            self.records.add(*(np.concatenate(column) for column in zip(*self._noted, strict=True)))
            self._noted.clear()
            self.shares = self._drawn()
        since = steps - max((snapshot.steps for snapshot in self.taken if snapshot.own), default=0)
        if not self.mix.uses_past:
            return None
        if since >= self._snapshots.every_steps:
            return "schedule"
        gated = self._config.gate > 0 and since >= self._config.gate_steps
        return "gate" if gated and self._gate_is_open() else None

    def freeze(self, steps: int, cause: str) -> int:
        """Add what the learner is now; returns its number."""
        self.taken.append(Snapshot(steps, cause))
        self.records.freeze()
        self.shares = self._drawn()
        return len(self.taken) - 1

    def admit(self, steps: int, games: float, wins: float) -> int:
        """Add an exploiter of the newest of the learner's snapshots, with its results against that; its number."""
        target = len(self.fixed) + self._numbers(own=True)[-1]
        self.taken.append(Snapshot(steps, EXPLOITER))
        self.records.admit(target, games, wins)
        self.shares = self._drawn()
        return len(self.taken) - 1

    def _numbers(self, own: bool) -> list[int]:
        return [number for number, snapshot in enumerate(self.taken) if snapshot.own == own]

    def pool_win_rate(self) -> float | None:
        """The learner's win rate, the mean over the pool; None while some of them were met too little to tell."""
        rows = self._row(SNAPSHOT + np.array(self.pool, np.int64))
        rows = rows[np.isin(rows, self._row(self.shares.player[self.shares.share > 0]))]
        games = self.records.games[0, rows]
        if not len(rows) or (games < self._config.window / len(rows)).any():
            return None
        return float(np.mean(self.records.wins[0, rows] / games))

    def _gate_is_open(self) -> bool:
        """With nobody to beat yet it is: what the learner is after `gate_steps` is the first of the pool."""
        rate = self.pool_win_rate()
        return not self.taken or (rate is not None and rate >= self._config.gate)

    def _row(self, player: NDArray[Any]) -> NDArray[Any]:
        """The rows of players in the records."""
        rival = 1 + len(self.mix.bots) + player - RIVAL
        return np.where(
            player >= SNAPSHOT, len(self.fixed) + player - SNAPSHOT, np.where(player >= RIVAL, rival, player)
        )

    def _drawn(self) -> Shares:
        """Who is drawn, and how often; where there is no past yet, the learner stands in for it."""
        share: dict[int, float] = {}
        bots, rivals = self.mix.bots, self.mix.runs
        for name, weight in zip(self.mix.names, self.mix.weights, strict=True):
            if name in PAST and self.pool:
                each = self._preference(name)
                drawn = {SNAPSHOT + number: weight * part for number, part in zip(self.pool, each, strict=True)}
            elif name == "self" or name in PAST:
                drawn = {LEARNER: weight}
            elif name.startswith(RUN):
                drawn = {RIVAL + rivals.index(name.removeprefix(RUN)): weight}
            else:
                drawn = {1 + bots.index(name): weight}
            for player, part in drawn.items():
                share[player] = share.get(player, 0.0) + part
        players = sorted(share)
        return Shares(np.array(players, np.int64), np.array([share[player] for player in players]))

    def _preference(self, name: str) -> NDArray[np.float64]:
        """How often each of the pool is drawn, by one of the ways of PAST; adds up to 1."""
        age = np.arange(len(self.pool))[::-1]
        newest = self._numbers(own=True)[-1]
        won = self.records.win_rate(self._row(SNAPSHOT + np.array(self.pool, np.int64)))
        weight: NDArray[np.float64] = {
            "latest": (np.array(self.pool) == newest).astype(np.float64),
            "past": np.ones(len(age)),
            "recent": 0.5 ** (age / self._config.half_life),
            "hard": (1.0 - won) ** self._config.hardness,
            "even": won * (1.0 - won),
        }[name]
        return np.asarray(weight / weight.sum())

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint needs, right after settle()."""
        return {
            "games": self.records.games,
            "wins": self.records.wins,
            "steps": np.array([snapshot.steps for snapshot in self.taken], np.int64),
            "cause": np.array([CAUSES.index(snapshot.cause) for snapshot in self.taken], np.int8),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what state() gave."""
        if not state and self.mix.only_learner:
            return
        if not state:
            raise CheckpointError("this run's checkpoint has no league; go on with the Maple that wrote it")
        self.records.games, self.records.wins = state["games"].copy(), state["wins"].copy()
        pairs = zip(state["steps"], state["cause"], strict=True)
        self.taken = [Snapshot(int(steps), CAUSES[cause]) for steps, cause in pairs]
        self.shares = self._drawn()
