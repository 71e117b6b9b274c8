"""What tests of memories feed them with: decisions and ended games by hand."""

from __future__ import annotations

import numpy as np

from maple.core.step import Ended, Outcome
from maple.learn.replay import Replay
from maple.learn.rollout import Rollout
from maple.nets.policy import Choice


def add(memory: Rollout | Replay, table: list[int], seat: list[int], reward: list[float], tag: list[int]) -> None:
    """Decisions whose view, action, value and state are their tag."""
    n = len(table)
    chains = memory.chains if isinstance(memory, Replay) else None
    choice = Choice.allocate(n, 1, chains.state.shape[1] if chains is not None else 0)
    choice.action[:], choice.value[:, 0], choice.state[:] = tag, tag, np.array(tag)[:, None]
    keys = np.array(table, np.int32), np.array(seat, np.int8)
    memory.add(*keys, np.array(reward, np.float32)[:, None], np.array(tag, np.uint64)[:, None], choice)


def end(
    memory: Rollout | Replay,
    table: int,
    outcome: Outcome,
    reward: list[float],
    beyond: float = 0.0,
    last_view: list[int] | None = None,
) -> None:
    """A game that ends; `beyond` is the value, `last_view` the sight of each seat where it was cut off."""
    cut = np.flatnonzero([outcome == Outcome.TRUNCATED])
    seats = len(reward)
    ended = Ended(
        table=np.array([table], np.int32),
        game=np.zeros(1, np.int64),
        outcome=np.array([outcome], np.int8),
        reward=np.array([reward], np.float32)[:, :, None],
        figures=np.zeros(1),
        cut=cut,
        last_view=np.array(last_view or [0] * seats, np.uint64).reshape(1, seats, 1)[: len(cut)],
    )
    memory.finish(ended, lambda _: np.full((1, seats, 1), beyond, np.float32))
