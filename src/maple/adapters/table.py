"""One table of a native game, played a decision at a time.

The other standards ask for one action at a time, so this is where batches end. The buffers are made once and the
kernels are called directly: no arena, no threads, nothing allocated to play a decision.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.errors import ActionError, GameError
from maple.core.step import Keys, Outcome
from maple.games.contract import Game, Tables

__all__ = ["OneTable"]

_PLAYING, _TRUNCATED = int(Outcome.PLAYING), int(Outcome.TRUNCATED)


class OneTable:
    """A table with one decision waiting. `keys`, `view`, `reward` are rewritten by every `advance`."""

    def __init__(self, game: Game, seed: int) -> None:
        spec = game.spec
        self.game = game
        self.keys = Keys(np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int8), np.zeros(1, np.int32))
        self.view = np.zeros((1, spec.view), np.uint64)
        self.reward = np.zeros((1, len(spec.signals)), np.float32)
        self.action = np.zeros(1, np.int32)  # what advance() plays
        self._filler = game.bot("random")
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Deal the first game of `seed`."""
        if not 0 <= seed < 2**64:
            raise GameError(f"seed {seed} cannot be used; give a whole number from 0 to 2**64 - 1")
        self.seed = seed
        self._tables: Tables = self.game.tables(1, seed)
        self._how = self._tables.ended["how"]
        self._tables.start(0, 1)
        self._tables.decisions(self.keys, self.reward, self.view, 0, 1)

    @property
    def seat(self) -> int:
        """Who has to act."""
        return self.keys.seat.item()

    @property
    def decision(self) -> int:
        """How many decisions that seat made before in this game."""
        return self.keys.decision.item()

    @property
    def game_number(self) -> int:
        """How many games of this seed came before this one."""
        return self.keys.game.item()

    def advance(self) -> bool:
        """Play `action`. False when that ended the game: the next one then waits for its first decision."""
        self._tables.play(self.action, 0, 1)
        self._tables.decisions(self.keys, self.reward, self.view, 0, 1)
        return self._how.item() == _PLAYING  # type: ignore[no-any-return]

    def abandon(self) -> None:
        """Go on to the next game: what is left of this one is played at random."""
        going_on = True
        while going_on:
            self._filler(self.view, self.seed, self.keys, self.action, 0, 1)
            going_on = self.advance()

    @property
    def truncated(self) -> bool:
        """Whether the game that ended was cut off."""
        return self._how.item() == _TRUNCATED  # type: ignore[no-any-return]

    def last_reward(self, seat: int) -> float:
        """What a seat earned between its last decision and the end of the game that ended."""
        return float(self._tables.ended["reward"][0, seat, 0])

    def last_view(self, seat: int) -> NDArray[np.uint64]:
        """The decision that the cut left a seat with; zeros if it had none."""
        view: NDArray[np.uint64] = self._tables.last_view[0, seat]
        return view

    def figures(self) -> dict[str, Any]:
        """The figures of the game that ended; those that every seat has are lists."""
        record, seats = self._tables.ended[0], self.game.spec.seats
        figures = {name: record[name].tolist() for name in record.dtype.names if name not in ("how", "reward")}
        return {name: value[:seats] if isinstance(value, list) else value for name, value in figures.items()}

    def encode(self, view: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Observation and mask of one view, in new arrays; all zeros for a view that is."""
        spec = self.game.spec
        observation, mask = np.zeros((1, spec.observation), np.uint8), np.zeros((1, spec.actions), np.bool_)
        if view.any():
            self.game.observe(view.reshape(1, -1), observation, mask, 0, 1)
        return observation[0], mask[0]

    def observed(self) -> dict[str, NDArray[Any]]:
        """The waiting decision as `aec_env(...).observe` gives it."""
        observation, mask = self.encode(self.view)
        key = np.array([self.seat, self.decision], np.int64)
        return {"observation": observation, "action_mask": mask.view(np.int8), "view": self.view[0].copy(), "key": key}

    def legal(self, action: Any, mask: NDArray[Any]) -> int:
        """The action as a number, or a sentence that helps."""
        try:
            chosen = index(action)
        except TypeError:
            raise ActionError(f"{action!r} is not an action; give a whole number where the mask is 1") from None
        if not (0 <= chosen < len(mask) and mask[chosen]):
            some = np.flatnonzero(mask)
            raise ActionError(
                f"action {chosen} is not legal for seat {self.seat} of {self.game.spec.name}; choose one of the "
                f"{len(some)} where the mask is 1, such as {some[0]}"
            )
        return chosen
