"""Rewards made of components: what each is worth, how often it is paid, and where the total came from.

A game counts what a seat earns, component by component, before any weight. A *critical* component is paid at every
decision, a *secondary* one at every k-th of the seat's decisions and at the game's end, so that nothing is lost. What
was paid is kept by component: the sub-totals add up to the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from maple.core.kernels import kernel

__all__ = ["Component", "Ledger", "pay", "subtotals", "weights_and_intervals"]


class Component(BaseModel):
    """A part of the reward: a number alone is its weight, `{weight: 0.5, every: 8}` makes it a secondary one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(0.0, ge=-1000, le=1000, description="what one unit of it is worth; 0 switches it off")
    every: int = Field(1, ge=1, le=10_000, description="the seat's decisions between payments; 1 is critical")

    @model_validator(mode="before")
    @classmethod
    def _weight_alone(cls, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"weight": value}
        if not isinstance(value, dict | Component):
            raise ValueError("write a weight, or {weight: W, every: K}")
        return value


@kernel
def pay(pending, weight, every, decision, last, parts):
    """What is due at a seat's `decision`, or at the game's end: the sum over components. Writes pending, parts."""
    total = np.float32(0)
    for c in range(weight.shape[0]):
        if last or decision % every[c] == 0:
            amount = weight[c] * pending[c]
            pending[c] = np.float32(0)
            parts[c] += amount
            total += amount
    return total


@kernel
def _pay_rows(pending, parts, weight, every, table, seat, decision, earned, reward):
    """What is due at decisions, a row each. Writes pending, parts, reward."""
    for i in range(table.shape[0]):
        t, s = table[i], seat[i]
        for c in range(weight.shape[0]):
            pending[t, s, c] += earned[i, c]
        reward[i] = pay(pending[t, s], weight, every, decision[i], False, parts[t, s])


@kernel
def _pay_ends(pending, parts, weight, every, table, earned, reward, paid):
    """What is due at the ends of games, and a clean page for the next. Writes pending, parts, reward, paid."""
    for i in range(table.shape[0]):
        t = table[i]
        for s in range(pending.shape[1]):
            for c in range(weight.shape[0]):
                pending[t, s, c] += earned[i, s, c]
            reward[i, s] = pay(pending[t, s], weight, every, 0, True, parts[t, s])
            for c in range(weight.shape[0]):
                paid[i, s, c] = parts[t, s, c]
                parts[t, s, c] = 0


def weights_and_intervals(components: Mapping[str, Component]) -> tuple[list[float], list[int]]:
    """What `pay` reads, in the order of the components."""
    return [c.weight for c in components.values()], [c.every for c in components.values()]


def subtotals(names: Sequence[str], parts: NDArray[Any], seat: NDArray[np.int64]) -> dict[str, float]:
    """Mean reward of finished games (G, seats, components) for the player at `seat`, and its sub-totals, as figures."""
    mean = parts[np.arange(len(parts)), seat].sum(axis=0) / max(1, len(parts))
    named = {f"reward_{name}": float(value) for name, value in zip(names, mean, strict=True)}
    return {"reward": sum(named.values()), **named}


class Ledger:
    """What the seats of many tables have earned and were paid, for games that are counted elsewhere."""

    def __init__(self, components: Mapping[str, Component], tables: int, seats: int) -> None:
        weight, every = weights_and_intervals(components)
        self._rule = np.array(weight, np.float32), np.array(every, np.int64)
        self._pending = np.zeros((tables, seats, len(weight)), np.float32)
        self._parts = np.zeros_like(self._pending)

    def pay(
        self, table: NDArray[Any], seat: NDArray[Any], decision: NDArray[Any], earned: NDArray[Any]
    ) -> NDArray[np.float32]:
        """The reward (B,) of rows whose seats earned (B, components) since their last row."""
        reward, where = np.empty(len(table), np.float32), (table.astype(np.int64), seat.astype(np.int64))
        amounts = np.ascontiguousarray(earned, np.float32)
        _pay_rows(self._pending, self._parts, *self._rule, *where, decision.astype(np.int64), amounts, reward)
        return reward

    def close(self, table: NDArray[Any], earned: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The last rewards (G, seats) of games that ended, and their sub-totals (G, seats, components)."""
        reward, paid = np.empty(earned.shape[:2], np.float32), np.empty(earned.shape, np.float32)
        amounts = np.ascontiguousarray(earned, np.float32)
        _pay_ends(self._pending, self._parts, *self._rule, table.astype(np.int64), amounts, reward, paid)
        return reward, paid
