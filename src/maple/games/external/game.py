"""An environment of the user's own as a game: its spec, and the encoder that unpacks its views."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from maple.core.errors import GameError
from maple.core.rng import Purpose, uniforms
from maple.core.spec import GameSpec
from maple.core.step import Keys, Options, Outcome
from maple.games.contract import Bot, Tables
from maple.games.external.locate import make_env
from maple.games.external.plan import Plan, examine
from maple.games.external.spaces import FAILURES
from maple.games.external.spec import spec_of

__all__ = ["DEFAULTS", "EnvArguments", "ExternalGame"]

DEFAULTS: Mapping[str, Any] = {
    "algo": "ppo",
    "tables": 32,
    "probe_every_s": 120,
    "probe_hands": 32,
    "net": {"hidden": [64, 64], "activation": "tanh"},
    "optimizer": {"learning_rate": 1e-3, "eps": 1e-5},
    "ppo": {"policy": "index", "horizon": 4096, "epochs": 8, "minibatch": 256, "gamma": 0.99, "entropy": 0.005},
    "dqn": {"policy": "index"},
}


class EnvArguments(BaseModel):
    """What the env is made with, `--set env.NAME=VALUE`; which names there are is the env's own affair."""

    model_config = ConfigDict(frozen=True, extra="allow")


def _look_at(name: str, arguments: EnvArguments) -> Plan:
    env = make_env(name, arguments.model_dump())
    plan = examine(env, name)
    try:
        env.close()
    except FAILURES as error:
        warnings.warn(f"{name} cannot be closed: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)
    return plan


class ExternalGame:
    """A Gymnasium or PettingZoo env; its tables are played by arenas, one env a table."""

    def __init__(self, name: str, arguments: EnvArguments) -> None:
        self.settings = arguments
        with redirect_stdout(sys.stderr):  # stdout is for results, and what an env prints is not one
            self.plan: Plan = _look_at(name, arguments)
        self.spec: GameSpec = spec_of(self.plan)

    def tables(self, count: int, seed: int, first_table: int = 0, tables_per_deal: int = 1) -> Tables:
        """An env is no kernel: arenas for external games play it."""
        raise GameError(f"{self.spec.name} is no native game; play it in a SerialArena or a WorkerArena")

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[Any], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None:
        """Unpack rows [lo, hi). Writes observation, mask."""
        rows = np.ascontiguousarray(view[lo:hi])
        observation[lo:hi] = self.plan.layout.observation_of(rows)
        mask[lo:hi] = self.plan.layout.mask_of(rows)

    def count_options(self, view: NDArray[np.uint64], count: NDArray[np.int64], lo: int, hi: int) -> None:
        """How many actions are open. Writes count."""
        count[lo:hi] = self.plan.layout.mask_of(np.ascontiguousarray(view[lo:hi])).sum(axis=-1)

    def describe(self, view: NDArray[np.uint64], options: Options, lo: int, hi: int) -> None:
        """Not known of an env."""
        raise self._undescribed()

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None:
        """Not known of an env."""
        raise self._undescribed()

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None:
        """Not known of an env."""
        raise self._undescribed()

    def permute(
        self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64], lo: int, hi: int
    ) -> None:
        """No two views of an env are known to mean the same: rows stay as they are."""

    def show(self, view: NDArray[np.uint64]) -> str:
        """One view as text: the observation as the network gets it, and the actions that are open."""
        row = np.ascontiguousarray(view)
        shown = np.array2string(self.plan.layout.observation_of(row), precision=4, suppress_small=True, threshold=100)
        if not self.plan.layout.masked:
            return f"observation {shown}"
        return f"observation {shown}\nopen {' '.join(map(str, np.flatnonzero(self.plan.layout.mask_of(row))))}"

    def _undescribed(self) -> GameError:
        return GameError(f"{self.spec.name} does not describe its options; train it with policy index")

    def bot(self, name: str) -> Bot:
        """`random` is all that can play any env."""
        if name != "random":
            raise GameError(f"{self.spec.name} has no opponent {name!r}; an env of your own has 'random' alone")
        return self._play_random

    def _play_random(
        self, view: NDArray[np.uint64], seed: int, keys: Keys, action: NDArray[np.int32], lo: int, hi: int
    ) -> None:
        """One of each row's open actions, all alike. Writes action."""
        draw = np.empty(hi - lo, np.float64)
        part = slice(lo, hi)
        key = (keys.table[part], keys.game[part], keys.seat[part], keys.decision[part])
        uniforms(np.uint64(seed), int(Purpose.BOT), *key, 0, draw)
        if not self.plan.layout.masked:
            action[part] = (draw * self.spec.actions).astype(np.int32)
            return
        before = np.cumsum(self.plan.layout.mask_of(np.ascontiguousarray(view[part])), axis=1)
        action[part] = (before > (draw * before[:, -1]).astype(np.int64)[:, None]).argmax(axis=1)

    def summarize(self, figures: NDArray[Any], seat: NDArray[np.int64]) -> dict[str, float]:
        """Mean return (points, where there are several seats), length and how games ended; lost games are left out."""
        kept = figures["how"] != Outcome.LOST
        games, seat = figures[kept], seat[kept]
        if not len(games):
            return {}
        score = games["score"][np.arange(len(games)), seat]
        return {
            self.spec.metric.name: float(score.mean()),
            "length": float(games["length"].mean()),
            "truncated": float((games["how"] == Outcome.TRUNCATED).mean()),
        }
