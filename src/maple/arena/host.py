"""Plays a range of tables, one env each, into their rows: in a worker process, or in the trainer's own.

An exception in an env loses the game at that table alone: the env is made anew and the next game begins. An env that
breaks its contract ends the run, with a sentence that names what repeats it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from maple.arena.base import HOLD
from maple.arena.board import NOT_ASKED, REMEMBERED, Board
from maple.arena.rows import Range, finite
from maple.arena.seeds import deal_word, game_seed
from maple.core.errors import GameError
from maple.core.step import Outcome
from maple.games.external.locate import make_env
from maple.games.external.plan import Plan, examine
from maple.games.external.spaces import FAILURES, MASK, ContractError, reward_of
from maple.games.external.tables import SeveralSeats, SingleTable, Table, open_table

__all__ = ["Host"]

RETRY_S = 0.2  # after an env could not be made: twenty times that is far from the limit of a step
_LOST, _TERMINATED, _TRUNCATED = int(Outcome.LOST), int(Outcome.TERMINATED), int(Outcome.TRUNCATED)

_Last = tuple[int, Any, Any, bool, Any]  # table, observation, reward, terminated, info


class Host:
    """Envs for some tables. They are made at once and begin when told to `take` tables of a board."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        count: int,
        seed: int,
        max_deaths: int,
        tell: Callable[[str], None],
    ) -> None:
        self._name, self._arguments, self._seed = name, dict(arguments), seed
        self._max_deaths, self._tell = max_deaths, tell
        self._envs = [self._make() for _ in range(count)]
        self.plan: Plan = examine(self._envs[0], name)

    def take(self, board: Board, tables: list[int], first_table: int, tables_per_deal: int, at: Any) -> None:
        """Play these tables from now on; every one begins the game that the board says.

        `at`, of one number, tells whoever watches which table is being played, if anybody does.
        """
        self._board, self._first = board, first_table
        self._at, self._watched = [0] if at is None else at, at is not None
        self._deaths = dict.fromkeys(tables, 0)
        self._words = {table: deal_word(self._seed, (first_table + table) // tables_per_deal) for table in tables}
        self._place_of = {table: place for place, table in enumerate(tables)}
        self._singles: dict[int, SingleTable] = {}
        self._several: dict[int, SeveralSeats] = {}
        for table, env in zip(tables, self._envs, strict=False):
            self._open(table, env)
        self._score = np.zeros(board.tables)  # of single seats
        layout, views = self.plan.layout, board.view[:, 0]
        self._rows = layout.observation_of(views)
        self._mask_rows = layout.mask_of(views) if layout.masked else None
        self._wants_info = self.plan.mask_from == "info"
        self._quick = self.plan.kind == "gym" and self._singles[tables[0]].is_plain
        self._observation = None if self.plan.layout.is_bytes else self.plan.layout.observation_of(board.view)
        self._figures = tuple(board.ended[name] for name in ("how", "hands", "length", "reward", "score"))
        self._ended: set[int] = set()  # tables whose record in `ended` is of the last play
        board.plays[tables] = 0
        self._plays: dict[int, int] = {}  # of each range, by its first table
        self._under_way = 0  # the first table of the range that is being played

    def begin(self, lo: int, hi: int) -> bool:
        """Begin the first game at tables [lo, hi); whether one was lost already."""
        self._board.how[lo:hi] = Outcome.PLAYING
        self._under_way, self._plays[lo] = lo, 0
        for table in range(lo, hi):
            self._begin(table)
        self._check_finite(lo, hi)
        return bool(self._ended)

    def play(self, lo: int, hi: int) -> bool:
        """Play the actions on the board at tables [lo, hi); what ends is recorded and the next game begins.

        Returns whether anything ended.
        """
        if self._ended:
            self._board.how[lo:hi] = 0
            self._ended.difference_update(range(lo, hi))
        self._remember(lo, hi)
        if self._board.seats == 1:
            return self._play_single(lo, hi)
        any_ended = self._play_several(lo, hi)
        self._check_finite(lo, hi)
        return any_ended

    def _remember(self, lo: int, hi: int) -> None:
        """Note the actions on the board, once for all tables and before any is played, for whoever tells of a loss."""
        board, plays = self._board, self._plays[lo]
        past = board.past[plays % REMEMBERED, lo:hi]
        past[:] = board.action[lo:hi]
        if board.seats > 1:
            past[~board.waiting[lo:hi]] = NOT_ASKED
        self._under_way, self._plays[lo] = lo, plays + 1
        board.plays[lo] = plays + 1

    def _play_single(self, lo: int, hi: int) -> bool:
        """One seat a table: all that can wait until the batch is played does, for a step has about a microsecond."""
        own = self._range(lo, hi)
        seen, rewards, infos = list[Any](), list[float](), list[Any]()
        see, earn, note = seen.append, rewards.append, infos.append if self._wants_info else None
        last: list[_Last] = []
        over: set[int] = set()
        actions = self._named(lo, own.action.tolist()) if self._watched else own.action.tolist()
        for step, action in zip(own.steps, actions, strict=True):
            try:
                observation, reward, terminated, truncated, info = step(action)
                if terminated or truncated:
                    last.append((lo + len(seen), observation, reward, terminated, info))
                    reward = 0.0
            except FAILURES as error:
                table = lo + len(seen)
                self._lose_step(table, error)
                over.add(table)
                observation, reward, info = None, 0.0, None
            see(observation)
            earn(reward)
            if note is not None:
                note(info)
        earned = finite(rewards)
        if earned is None:
            earned = np.array([self._earned(table, reward) for table, reward in enumerate(rewards, lo)])
        if last and self._quick:
            self._end_together(lo, last, seen, infos, over)
        elif last:
            over.update(self._end_single(row) for row in last)
        if over:
            own = self._range(lo, hi)  # an env that raised has been replaced
        own.reward[:] = earned
        np.add(own.score, earned, own.score)
        if not (self._quick and self._write_together(own, lo, seen, infos, over)):
            self._write_each(lo, seen, infos or [None] * (hi - lo), over)
            self._check_finite(lo, hi)
        return bool(last or over)

    def _named(self, lo: int, actions: list[int]) -> Iterator[int]:
        """The actions; whoever watches is told at which table each is played."""
        at = self._at
        for table, action in enumerate(actions, lo):
            at[0] = table
            yield action

    def _range(self, lo: int, hi: int) -> Range:
        if (lo, hi) not in self._ranges:
            singles, board = [self._singles[table] for table in range(lo, hi)], self._board
            self._ranges[lo, hi] = Range(
                [one.step for one in singles],
                [one.masks for one in singles],
                board.action[lo:hi, 0],
                board.reward[lo:hi, 0],
                self._score[lo:hi],
                self._rows[lo:hi],
                None if self._mask_rows is None else self._mask_rows[lo:hi],
            )
        return self._ranges[lo, hi]

    def _write_together(self, own: Range, lo: int, seen: list[Any], infos: list[Any], over: set[int]) -> bool:
        """Write all rows at once; False where something is not as it should be."""
        try:
            for table in over:  # their next games began, and are written already
                seen[table - lo] = own.rows[table - lo].copy()
            return own.write(seen, () if own.mask_rows is None else self._masks_of(own, lo, infos, over))
        except FAILURES:  # whatever it was, the slow way meets it again and knows whose it is
            return False

    def _masks_of(self, own: Range, lo: int, infos: list[Any], over: set[int]) -> list[Any]:
        if self.plan.mask_from != "info":
            return [mask() for mask in own.masks]
        assert own.mask_rows is not None
        for table in over:
            infos[table - lo] = {MASK: own.mask_rows[table - lo].copy()}
        return [info[MASK] for info in infos]

    def _write_each(self, lo: int, seen: Sequence[Any], infos: Sequence[Any], over: set[int]) -> None:
        """Write the rows one by one; an env whose masks cannot be had loses its game."""
        for table, (observation, info) in enumerate(zip(seen, infos, strict=True), lo):
            if table in over:
                continue
            try:
                self._singles[table].write(observation, info)
            except ContractError as error:
                raise self._breach(table, error, self._step_under_way(table)) from None
            except FAILURES:
                over.add(table)
                self._lose(table, traceback.format_exc())

    def _end_together(self, lo: int, last: Sequence[_Last], seen: list[Any], infos: list[Any], over: set[int]) -> None:
        """Record games that ended and begin the next ones, with one write of each kind for all of them."""
        tables, _, given, terminated, _ = zip(*last, strict=True)
        earned = finite(given)
        if earned is None:
            earned = np.array([self._earned(table, reward) for table, reward in zip(tables, given, strict=True)])
        for row in [] if all(terminated) else last:
            self._end_of(row, 0.0)
        at, board, plays = np.array(tables), self._board, self._plays[self._under_way]
        how, hands, lengths, rewards, scores = self._figures
        board.last_reward[at, 0] = earned
        how[at], hands[at], lengths[at] = np.where(terminated, _TERMINATED, _TRUNCATED), 1, plays - board.since[at]
        rewards[at, 0, 0], scores[at, 0] = earned, self._score[at] + earned
        board.game[at] += 1
        board.since[at] = plays
        self._score[at] = 0.0
        self._ended.update(tables)
        self._deaths.update(dict.fromkeys(tables, 0))
        for table, game in zip(tables, board.game[at].tolist(), strict=True):
            self._at[0] = table
            try:
                seen[table - lo], info = self._singles[table].reset(game_seed(self._words[table], game))
            except ContractError as error:
                raise self._breach(table, error, self._step_under_way(table)) from None
            except FAILURES:
                over.add(table)
                self._lose(table, traceback.format_exc())
                continue
            if infos:
                infos[table - lo] = info

    def _end_of(self, last: _Last, reward: float) -> int:
        """How a game ended; its last reward and what was seen last are on the board."""
        table, observation, _, terminated, info = last
        self._at[0] = table
        try:
            return self._singles[table].end(reward, terminated, observation, info)
        except ContractError as error:
            raise self._breach(table, error, self._step_under_way(table)) from None

    def _end_single(self, last: _Last) -> int:
        """Record a game that ended and begin the next one; returns its table."""
        table = last[0]
        reward = self._earned(table, last[2])
        how, single = self._end_of(last, reward), self._singles[table]
        single.length = self._step_under_way(table)
        single.score[0] = float(self._score[table]) + reward
        self._finish(table, how)
        return table

    def _earned(self, table: int, given: Any) -> float:
        """A reward as a number, or a sentence."""
        try:
            return reward_of(given)
        except ContractError as error:
            raise self._breach(table, error, self._step_under_way(table)) from None

    def _step_under_way(self, table: int) -> int:
        """The step that a table is at, counted from 1; 0 while it begins."""
        if self._board.seats == 1:
            return self._plays[self._under_way] - int(self._board.since[table])
        return self._several[table].length

    def _play_several(self, lo: int, hi: int) -> bool:
        any_ended = False
        for table, action in enumerate(self._board.action[lo:hi].tolist(), lo):
            if HOLD in action and HOLD in self._board.action[table, self._board.waiting[table]]:
                continue
            self._at[0] = table
            try:
                how = self._several[table].play(action)
            except ContractError as error:
                raise self._breach(table, error, self._step_under_way(table)) from None
            except FAILURES:
                self._lose(table, traceback.format_exc())
                any_ended = True
                continue
            if how:
                self._finish(table, how)
                any_ended = True
        return any_ended

    def close(self) -> None:
        """Close the envs."""
        for env in self._envs:
            self._close(env)

    def _close(self, env: Any) -> None:
        """Close an env; one that cannot be closed is told of and left as it is."""
        try:
            env.close()
        except FAILURES:
            self._tell(f"{self._name} cannot be closed:\n{traceback.format_exc()}")

    def _make(self) -> Any:
        return make_env(self._name, self._arguments)

    def _open(self, table: int, env: Any) -> None:
        self._ranges: dict[tuple[int, int], Range] = {}
        opened = open_table(env, self.plan, self._board.place(table))
        if isinstance(opened, SingleTable):
            self._singles[table] = opened
        else:
            self._several[table] = opened

    def _at_table(self, table: int) -> Table:
        return self._singles[table] if self._board.seats == 1 else self._several[table]

    def _seed_of(self, table: int) -> int:
        return game_seed(self._words[table], int(self._board.game[table]))

    def _begin(self, table: int) -> None:
        self._score[table] = 0.0
        while True:
            self._board.since[table] = self._plays[self._under_way]
            self._at[0] = table
            try:
                self._at_table(table).begin(self._seed_of(table))
                return
            except ContractError as error:
                raise self._breach(table, error, self._step_under_way(table)) from None
            except FAILURES:
                self._record_loss(table, traceback.format_exc())

    def _finish(self, table: int, how: int) -> None:
        """Record the game that ended and begin the next one."""
        played = self._at_table(table)
        hows, hands, lengths, rewards, scores = self._figures
        hows[table], hands[table], lengths[table] = how, 1, played.length
        rewards[table, :, 0] = self._board.last_reward[table]
        scores[table] = played.score
        self._ended.add(table)
        self._deaths[table] = 0
        self._board.game[table] += 1
        self._begin(table)

    def _lose_step(self, table: int, error: BaseException) -> None:
        """A step of an env with one seat failed: in the env, or because of what it gave."""
        trace = error.__traceback__
        if isinstance(error, TypeError | ValueError) and trace is not None and trace.tb_next is None:
            wanted = "observation, reward, terminated, truncated and info"
            breach = ContractError(f"gave something else than {wanted} from step(): {error}")
            raise self._breach(table, breach, self._step_under_way(table)) from None
        self._lose(table, traceback.format_exc())

    def _lose(self, table: int, trace: str) -> None:
        self._record_loss(table, trace)
        self._begin(table)

    def _record_loss(self, table: int, trace: str) -> None:
        """An env raised: its game is lost, a new env takes its place as soon as one can be made."""
        seed, step = self._seed_of(table), self._step_under_way(table)
        actions = self._board.last_actions(table, self._under_way, self.plan)
        repeats = f"reset(seed={seed}), last actions {actions}"
        self._tell(f"table {self._first + table} lost its game at step {step}: {repeats}\n{trace}")
        self._count_failure(table, f"with {repeats} at step {step}", trace)
        board = self._board
        board.ended[table] = 0
        board.how[table] = _LOST
        board.game[table] += 1
        self._ended.add(table)
        at = self._place_of[table]
        self._close(self._envs[at])
        self._envs[at] = self._make_again(table)
        self._open(table, self._envs[at])

    def _make_again(self, table: int) -> Any:
        while True:
            try:
                return self._make()
            except GameError as error:
                self._tell(f"table {self._first + table} has no env: {error}")
                self._count_failure(table, "while its env was made", str(error))
                time.sleep(RETRY_S)

    def _count_failure(self, table: int, when: str, trace: str) -> None:
        self._deaths[table] += 1
        if self._deaths[table] >= self._max_deaths:
            last = trace.strip().splitlines()[-1]
            raise GameError(
                f"{self._name} failed {self._deaths[table]} times at table {self._first + table} without finishing a "
                f"game, last {when}: {last}"
            )

    def _breach(self, table: int, error: ContractError, step: int) -> ContractError:
        return ContractError(
            f"{self._name} {error} at step {step} after reset(seed={self._seed_of(table)}); mend the env or wrap it"
        )

    def _check_finite(self, lo: int, hi: int) -> None:
        if self._observation is None or isfinite(np.add.reduce(self._observation[lo:hi], axis=None)):
            return
        for table in range(lo, hi):
            if not np.isfinite(self._observation[table][self._board.waiting[table]]).all():
                breach = ContractError("gave an observation that is not finite")
                raise self._breach(table, breach, self._step_under_way(table))
