"""Strength on duplicate deals: every deal is played once with the agent in each seat.

The rotations of a deal are one observation for the interval, since they share their cards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.arena.choose import evaluation_arena
from maple.arena.native import NativeArena
from maple.core.config import WorkerConfig
from maple.core.step import Keys, Outcome, Step
from maple.core.threads import Team
from maple.games.bridged import Bridged
from maple.games.contract import Game
from maple.games.external.game import ExternalGame
from maple.nets.memory import Memory
from maple.nets.policy import Policy

__all__ = [
    "Opener",
    "Player",
    "Result",
    "bot_player",
    "evaluate",
    "greedy_player",
    "mean_interval",
    "play_all",
    "share_interval",
]

BLOCK = 1024  # deals at a time
FEW = 32  # the same of envs and of games in another program, where more at a time only cost memory

Progressed = Callable[[int, int], None]  # is told how many games of how many have been played
Opener = Callable[[Game, int, int, int], Arena]  # tables in other processes: how many, seed, how many share a deal
Watch = Callable[[Arena], Arena]  # looks on while an arena plays

USUAL: Opener = partial(evaluation_arena, limits=WorkerConfig())
Z = 1.96  # standard errors to either side of a 95 % interval


class Player(Protocol):
    """Anything that can choose for rows: an agent's policy or a bot."""

    def __call__(self, view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.integer[Any]]:
        """An action for every row."""


def greedy_player(policy: Policy) -> Player:
    """A network's own choice, with a memory of its own."""
    memory = Memory()

    def choose(view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int16]:
        return policy.choose(view, keys, seed, True, memory).action

    return choose


def bot_player(game: Game, name: str, team: Team) -> Player:
    """A scripted opponent as a Player."""
    bot = game.bot(name)

    def choose(view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int32]:
        action = np.empty(len(view), np.int32)
        team.run(bot, len(view), view, seed, keys, action, grain=4)
        return action

    return choose


@dataclass(frozen=True, slots=True)
class Result:
    """What a player made of the deals."""

    figures: dict[str, float]
    metric: str
    ci95: tuple[float, float]
    hands: int
    games: int
    win_rate: float | None  # share of games that earned most, a tie shared; None where nobody sits opposite
    win_rate_ci95: tuple[float, float] | None
    per_seat: tuple[float, ...]  # the metric by seat: who sits there acts in another order
    deal_score: NDArray[np.float64]  # (D,) by deal, summed over rotations; the metric is the sum of this ...
    deal_hands: NDArray[np.float64]  # (D,) ... over the sum of this
    lost: int = 0  # games that were lost with their env or process, and others played in their stead


def mean_interval(total: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """A 95 % interval for sum(total) / sum(weight), each entry one independent observation (delta method)."""
    ratio, spread = _ratio(total, weight)
    return ratio - Z * spread, ratio + Z * spread


def share_interval(total: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """The same for a share between 0 and 1, such as a win rate: Wilson's, right for few and for nearly all or none.

    Entries count as many independent games as their spread says; where all are won or all are lost, as one each.
    """
    rate, spread = _ratio(total, weight)
    if spread == 0.0 and 0.0 < rate < 1.0 and len(total) > 1:
        return rate, rate  # every entry is the same part of a win: nothing varies
    n = rate * (1 - rate) / spread**2 if spread > 0 else float(len(total))
    middle, half = rate + Z * Z / (2 * n), Z * (rate * (1 - rate) / n + Z * Z / (4 * n * n)) ** 0.5
    low, high = (middle - half) / (1 + Z * Z / n), (middle + half) / (1 + Z * Z / n)
    return max(0.0, low), min(1.0, high)


def _ratio(total: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """sum(total) / sum(weight), and its standard error."""
    ratio = float(total.sum() / weight.sum())
    if len(total) < 2:
        return ratio, 0.0
    return ratio, float(np.std(total - ratio * weight, ddof=1)) / float(weight.mean()) / len(total) ** 0.5


def _unwatched(arena: Arena) -> Arena:
    return arena


def _play_block(
    game: Game, players: list[Player], deals: int, seed: int, first_table: int, team: Team, watch: Watch
) -> NDArray[Any]:
    """One game at each of deals × seats tables; player (seat - rotation) sits at each seat. Returns their figures."""
    seats = game.spec.seats
    tables = deals * seats
    figures = np.zeros(tables, game.spec.figures)
    done = np.zeros(tables, np.bool_)
    choose = _chooser(game, players, seed, team)
    opened = NativeArena(
        game, tables, seed, team, observations=False, check=False, first_table=first_table, tables_per_deal=seats
    )
    with closing(watch(opened)) as arena:
        while True:
            step = arena.recv()
            ended = step.ended.table - first_table
            fresh = ~done[ended]
            figures[ended[fresh]] = step.ended.figures[fresh]
            done[ended] = True
            if done.all():
                return figures
            arena.send(choose(step, ~done[step.keys.table - first_table]))


def _chooser(
    game: Game, players: list[Player], seed: int, team: Team
) -> Callable[[Step, NDArray[np.bool_]], NDArray[np.int32]]:
    """Everybody's actions: neighbours, as many as there are seats, play one deal, each with the agent at another seat.

    Rows that do not count any more are played at random.
    """
    seats, filler = game.spec.seats, game.bot("random")

    def choose(step: Step, counts: NDArray[np.bool_]) -> NDArray[np.int32]:
        who = (step.keys.seat - step.keys.table) % seats  # rotation r of a deal has the agent at seat r
        action = np.zeros(len(step.keys), np.int32)
        team.run(filler, len(action), step.view, seed, step.keys, action)
        for number, player in enumerate(players):
            rows = np.flatnonzero((who == number) & counts)
            if len(rows):
                action[rows] = player(step.view[rows], step.keys.take(rows), seed)
        return action

    return choose


def play_all(
    game: Game,
    players: list[Player],
    deals: int,
    seed: int,
    team: Team,
    progress: Progressed | None = None,
    watch: Watch = _unwatched,
) -> NDArray[Any]:
    """Every deal of a native game in every rotation, a block of deals at a time."""
    seats, blocks = game.spec.seats, []
    for first in range(0, deals, BLOCK):
        count = min(BLOCK, deals - first)
        blocks.append(_play_block(game, players, count, seed, first * seats, team, watch))
        if progress is not None:
            progress(min(deals, first + count) * seats, deals * seats)
    return np.concatenate(blocks)


def _play_on(
    game: Game,
    players: list[Player],
    deals: int,
    seed: int,
    team: Team,
    progress: Progressed | None,
    envs: Opener,
    watch: Watch,
) -> tuple[NDArray[Any], int]:
    """The same at a few tables that play game after game, in other processes; and how many games were lost.

    A lost game says nothing: the next one at its table counts.
    """
    seats = game.spec.seats
    rounds = -(-deals // FEW)
    together = -(-deals // rounds)  # deals at a time
    tables = together * seats
    wanted = np.repeat(-(-(deals - np.arange(together)) // together), seats)  # games of each table
    figures, done, lost = np.zeros((rounds, tables), game.spec.figures), np.zeros(tables, np.int64), 0
    choose = _chooser(game, players, seed, team)
    with closing(watch(envs(game, tables, seed, seats))) as arena:
        while True:
            step = arena.recv()
            for table, how, figure in zip(step.ended.table, step.ended.outcome, step.ended.figures, strict=True):
                if done[table] == wanted[table]:
                    continue
                if how == Outcome.LOST:
                    lost += 1
                else:
                    figures[done[table], table] = figure
                    done[table] += 1
            if progress is not None:
                progress(int(done.sum()), deals * seats)
            if (done == wanted).all():
                return figures.reshape(-1)[: deals * seats], lost
            arena.send(choose(step, done[step.keys.table] < wanted[step.keys.table]))


def _won(score: NDArray[Any], seat: NDArray[np.intp]) -> NDArray[np.float64]:
    """(G,) 1 where the seat's score (G, S) is the highest of its game, a part of it where others have the same."""
    own = score[np.arange(len(score)), seat]
    best = score == score.max(axis=1, keepdims=True)
    return np.where(own == score.max(axis=1), 1.0 / best.sum(axis=1), 0.0)


def evaluate(
    game: Game,
    agent: Player,
    others: list[Player],
    hands: int,
    seed: int,
    team: Team,
    progress: Progressed | None = None,
    envs: Opener = USUAL,
    watch: Watch = _unwatched,
) -> Result:
    """Play `agent` against `others` (one for each other seat) on at least `hands` hands, all rotations counted.

    `envs` opens the tables of games that are played in other processes, envs of the user's own and battles. `watch`
    may look on: player n sits at seat n of table 0.
    """
    seats = game.spec.seats
    deals, lost = max(1, -(-hands // seats)), 0
    if isinstance(game, Bridged | ExternalGame):
        figures, lost = _play_on(game, [agent, *others], deals, seed, team, progress, envs, watch)
    else:
        figures = play_all(game, [agent, *others], deals, seed, team, progress, watch)
    seat = np.arange(len(figures)) % seats
    score = figures["score"][np.arange(len(figures)), seat].astype(np.float64)
    played = figures["hands"].astype(np.float64)
    deal_score, deal_hands = score.reshape(-1, seats).sum(1), played.reshape(-1, seats).sum(1)
    won = _won(figures["score"][:, :seats], seat).reshape(-1, seats).sum(1) if seats > 1 else None
    metric = game.spec.metric.name
    return Result(
        figures=game.summarize(figures, seat),
        metric=metric,
        ci95=(share_interval if metric == "win_rate" else mean_interval)(deal_score, deal_hands),
        hands=int(played.sum()),
        games=len(figures),
        win_rate=None if won is None else float(won.sum() / len(figures)),
        win_rate_ci95=None if won is None else share_interval(won, np.full(len(won), float(seats))),
        per_seat=tuple(float(score[seat == s].sum() / played[seat == s].sum()) for s in range(seats)),
        deal_score=deal_score,
        deal_hands=deal_hands,
        lost=lost,
    )
