"""The arena that fits a game: its own kernels, or another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maple.arena.base import Arena
from maple.arena.native import NativeArena
from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.core.config import WorkerConfig
from maple.core.threads import Team
from maple.games.bridged import Bridged
from maple.games.contract import Game

__all__ = ["open_arena"]


def open_arena(
    game: Game,
    tables: int,
    seed: int,
    team: Team,
    *,
    tables_per_deal: int = 1,
    variants: Sequence[tuple[Game, int]] = (),
    limits: WorkerConfig | None = None,
    log: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    keep: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> Arena:
    """Tables that hand out views alone.

    Where games play in processes, `limits` say when one is replaced and how many stand by, `log` is told what happens
    to them, `note` what a user should know, and `keep` is given every anomaly.
    """
    if isinstance(game, Bridged):
        return NodeArena(
            game,
            tables,
            seed,
            processes=team.threads,
            observations=False,
            check=False,
            tables_per_deal=tables_per_deal,
            limits=_pool_limits(limits or WorkerConfig(spares=0)),
            in_turn=limits is not None and limits.in_turn,
            log=log,
            note=note,
            keep=keep,
        )
    return NativeArena(
        game,
        tables,
        seed,
        team,
        observations=False,
        check=False,
        tables_per_deal=tables_per_deal,
        variants=variants,
    )


def _pool_limits(limits: WorkerConfig) -> PoolLimits:
    return PoolLimits(limits.step_limit_s, limits.memory_mb, limits.max_deaths, limits.spares)
