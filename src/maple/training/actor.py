"""Every waiting row to its player: one batch for each policy in play, one kernel call for each bot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maple.core.step import Ended, Keys, Step
from maple.core.threads import Team
from maple.games.contract import Bot
from maple.nets.memory import Memory
from maple.nets.policy import Choice
from maple.perf.spans import observe, span
from maple.training.learners import Net
from maple.training.seating import LEARNER, RIVAL, SNAPSHOT

__all__ = ["Acted", "Actor"]


@dataclass(frozen=True, slots=True)
class Acted:
    """An action for every row; for the learner's rows also what it thought."""

    action: NDArray[np.int32]  # (B,)
    rows: NDArray[np.int64]  # (L,) the learner's
    choice: Choice  # of those


class Actor:
    """Plays the rows of a Step."""

    def __init__(self, policy: Net, bots: list[Bot], team: Team, seed: int, rivals: Sequence[Net] = ()) -> None:
        self.policy = policy
        self.bots = bots
        self.rivals = rivals
        self.snapshots: dict[int, Net] = {}
        self.team = team
        self.memory = Memory()  # of every policy in play
        self.guide: Bot | None = None  # plays in the learner's place, who looks on …
        self.guided = 1.0  # … at this share of the tables
        self._seed = seed

    def act(self, step: Step, player: NDArray[np.int32] | None, greedy: bool = False) -> Acted:
        """An action for every row; `player` (B,) says who plays it, None that all rows are the learner's."""
        n = len(step.keys)
        if player is None:
            observe("inference_batch", n)
            choice = self._learner(step.view, step.keys, greedy)
            return Acted(choice.action.astype(np.int32), np.arange(n), choice)
        action = np.empty(n, np.int32)
        order = np.argsort(player, kind="stable")  # the rows of a player side by side, the learner's first
        codes, first = np.unique(player[order], return_index=True)
        groups = dict(zip(codes.tolist(), np.split(order, first[1:]), strict=True))
        rows = groups.pop(LEARNER, order[:0])
        observe("inference_batch", len(rows))
        choice = self._learner(step.view[rows], step.keys.take(rows), greedy)
        action[rows] = choice.action
        for code, theirs in groups.items():
            with span("enemy_turn"):
                action[theirs] = self._others(code, step.view[theirs], step.keys.take(theirs))
        return Acted(action, rows, choice)

    def beyond(self, ended: Ended) -> NDArray[np.float32]:
        """What each seat of a truncated game could still expect, by the policy's own judgement."""
        views = ended.last_view  # (K, seats, V)
        flat = views.reshape(-1, views.shape[2])
        rows = np.flatnonzero(flat.any(axis=1))
        if not len(rows):
            return np.zeros((*views.shape[:2], 1), np.float32)
        game, seat = np.divmod(rows, views.shape[1])
        at = ended.cut[game]
        later = np.ones(len(rows), np.int32)  # not a game's first decision: what was remembered counts
        keys = Keys(ended.table[at], ended.game[at], seat.astype(np.int8), later)
        with span("agent_value_calculation"):
            judged = self.policy.choose(flat[rows], keys, self._seed, True, self.memory).value
        value = np.zeros((len(flat), judged.shape[1]), np.float32)
        value[rows] = judged
        return value.reshape(*views.shape[:2], -1)

    def _learner(self, view: NDArray[np.uint64], keys: Keys, greedy: bool) -> Choice:
        """What the learner does, or is shown."""
        choice = self.policy.choose(view, keys, self._seed, greedy, self.memory)
        if self.guide is None:
            return choice
        shown = self.guides(keys.table)
        rows, action = np.flatnonzero(shown), choice.action.copy()
        action[rows] = self._by_bot(self.guide, view[rows], keys.take(rows))
        return replace(choice, action=action, explored=choice.explored | shown, shown=shown)

    def guides(self, table: NDArray[np.int32]) -> NDArray[np.bool_]:
        """At which of these tables somebody else plays in the learner's place."""
        if self.guide is None:
            return np.zeros(len(table), np.bool_)
        shown: NDArray[np.bool_] = np.floor((table + 1) * self.guided) > np.floor(table * self.guided)
        return shown  # spread evenly, however many tables there are

    def _others(self, code: int, view: NDArray[np.uint64], keys: Keys) -> NDArray[np.int32]:
        if code >= RIVAL:
            observe("inference_batch", len(view))
            net = self.snapshots[code - SNAPSHOT] if code >= SNAPSHOT else self.rivals[code - RIVAL]
            return net.choose(view, keys, self._seed, False, self.memory).action.astype(np.int32)
        return self._by_bot(self.bots[code - 1], view, keys)

    def _by_bot(self, bot: Bot, view: NDArray[np.uint64], keys: Keys) -> NDArray[np.int32]:
        action = np.empty(len(view), np.int32)
        self.team.run(bot, len(view), view, self._seed, keys, action, grain=4)
        return action
