"""The memory that a trainer shares with its actors: weights by version, who is drawn for a seat, and blocks of play.

A block is what an actor played at its tables with one version of the weights: round by round the games that ended and
the learner's decisions, in the order in which a trainer would have met them itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maple.arena.board import Board
from maple.core.errors import MapleError
from maple.core.spec import GameSpec
from maple.core.step import Ended, Outcome
from maple.nets.policy import Choice
from maple.training.seating import SNAPSHOT, Shares

__all__ = ["AT", "DONE", "GIVEN", "ROUNDS", "STOP", "Blocks", "Played", "Sizes"]

# Columns of `control`, a line for each actor: blocks asked for, blocks done, rounds played, the table that it is at,
# whether it is to leave off.
GIVEN, DONE, ROUNDS, AT, STOP = range(5)
LINE = 8  # columns: a cache line
_ALIGN = 64
_TRUNCATED = int(Outcome.TRUNCATED)
_COMMON = (
    *("control", "boards", "version", "weights", "drawn", "share", "frozen", "frozen_weights"),
    *("number", "played_with", "rounds"),
)
_NONE = -1  # a place of `drawn` that nobody has
_ABOUT = ("table", "seat", "reward", "view")
_CHOICE = ("action", "log_prob", "value", "explored", "state")
_ENDED = ("table", "game", "outcome", "reward", "figures")


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of everything in that memory."""

    actors: int
    tables: int  # of an actor, at most
    kept: int  # versions and blocks that are there at a time
    weights: int
    rows: int  # of a block, at most
    ended: int
    value: int  # what the network predicts for a decision
    state: int  # what a seat remembers
    players: int  # that are drawn from, at most
    frozen: int  # snapshots that are there at a time


# Table, seat, reward and view of each of the learner's decisions.
Decisions = tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.float32], NDArray[np.uint64]]


@dataclass(frozen=True, slots=True)
class Played:
    """A round of an actor's: games that ended, then the learner's decisions."""

    ended: Ended
    beyond: NDArray[np.float32]  # (K, seats, C) what lay beyond where games were cut off
    table: NDArray[np.int32]
    seat: NDArray[np.int8]
    reward: NDArray[np.float32]
    view: NDArray[np.uint64]
    choice: Choice

    @property
    def bytes(self) -> int:
        """Of what was decided, which is nearly all that came over."""
        known = (self.table, self.seat, self.reward, self.view, self.choice.action, self.choice.value)
        return sum(column.nbytes for column in known)

    def judged(self, _: Ended) -> NDArray[np.float32]:
        """What lay beyond, for a rollout that asks."""
        return self.beyond


def _shapes(spec: GameSpec, f: Sizes) -> dict[str, tuple[tuple[int, ...], Any]]:
    block = (f.actors, f.kept)
    row, ended, signals, seats = (*block, f.rows), (*block, f.ended), len(spec.signals), spec.seats
    return {
        "control": ((f.actors, LINE), np.int64),
        "boards": ((f.actors, Board.size(spec, f.tables, 1)), np.uint8),
        "version": ((f.kept,), np.int64),
        "weights": ((f.kept, f.weights), np.float32),
        "drawn": ((f.kept, f.players), np.int64),  # who is drawn for seats of games that begin with a version …
        "share": ((f.kept, f.players), np.float64),  # … and how often
        "frozen": ((f.frozen,), np.int64),  # the snapshots that are there, as seats know them; 0 for none
        "frozen_weights": ((f.frozen, f.weights), np.float32),
        "number": (block, np.int64),
        "played_with": (block, np.int64),
        "rounds": (block, np.int64),
        "round": ((*row, 2), np.int32),  # ended games and rows of each
        "table": (row, np.int32),
        "seat": (row, np.int8),
        "reward": ((*row, signals), np.float32),
        "view": ((*row, spec.view), np.uint64),
        "action": (row, np.int16),
        "log_prob": (row, np.float32),
        "value": ((*row, f.value), np.float32),
        "explored": (row, np.bool_),
        "state": ((*row, f.state), np.float32),
        "ended_table": (ended, np.int32),
        "ended_game": (ended, np.int64),
        "ended_outcome": (ended, np.int8),
        "ended_reward": ((*ended, seats, signals), np.float32),
        "ended_figures": (ended, spec.figures),
        "ended_beyond": ((*ended, seats, f.value), np.float32),
    }


def _bytes(shape: tuple[int, ...], dtype: Any) -> int:
    size = int(np.prod(shape)) * int(np.dtype(dtype).itemsize)
    return -(-size // _ALIGN) * _ALIGN


class Blocks:
    """Arrays over a buffer of `Blocks.size(...)` bytes."""

    def __init__(self, buffer: Any, spec: GameSpec, sizes: Sizes) -> None:
        self._sizes, self._spec = sizes, spec
        self._arrays: dict[str, NDArray[Any]] = {}
        begin = 0
        for name, (shape, dtype) in _shapes(spec, sizes).items():
            count = int(np.prod(shape))
            self._arrays[name] = np.frombuffer(buffer, dtype, count, begin).reshape(shape)
            begin += _bytes(shape, dtype)
        self.control: NDArray[np.int64] = self._arrays["control"]

    def board_of(self, actor: int) -> NDArray[np.uint8]:
        """Where an actor's tables lie, of which somebody has to tell when it dies."""
        board: NDArray[np.uint8] = self._arrays["boards"][actor]
        return board

    @staticmethod
    def size(spec: GameSpec, sizes: Sizes) -> int:
        """Bytes of all that."""
        return sum(_bytes(*about) for about in _shapes(spec, sizes).values())

    def publish(self, net: nn.Module, version: int, shares: Shares, snapshots: Mapping[int, nn.Module]) -> None:
        """Put weights where actors find them, and who is drawn for a seat; the oldest version is overwritten.

        A snapshot that a version which is still there draws from stays where it is.
        """
        at, drawn = version % self._sizes.kept, self._arrays["drawn"]
        _write(net, self._arrays["weights"][at])
        drawn[at] = _NONE
        drawn[at, : len(shares.player)], self._arrays["share"][at, : len(shares.player)] = shares.player, shares.share
        frozen = self._arrays["frozen"]
        for code in shares.player[shares.player >= SNAPSHOT].tolist():
            if code not in frozen:
                place = int(np.flatnonzero(~np.isin(frozen, drawn) | (frozen == 0))[0])
                _write(snapshots[code - SNAPSHOT], self._arrays["frozen_weights"][place])
                frozen[place] = code
        self._arrays["version"][at] = version

    def fetch(self, net: nn.Module, version: int) -> Shares:
        """Take a version of the weights over into a network; returns who is drawn for a seat meanwhile."""
        at = version % self._sizes.kept
        if self._arrays["version"][at] != version:
            raise MapleError(f"weights of version {version} are not there any more")
        _read(net, self._arrays["weights"][at])
        return self.shares(version)

    def shares(self, version: int) -> Shares:
        """Who is drawn for seats of games that begin with a version of the weights."""
        at = version % self._sizes.kept
        known = self._arrays["drawn"][at] != _NONE
        return Shares(self._arrays["drawn"][at][known], self._arrays["share"][at][known])

    def fetch_snapshot(self, net: nn.Module, code: int) -> None:
        """Take a snapshot's weights over into a network, by its code at a seat."""
        _read(net, self._arrays["frozen_weights"][int(np.flatnonzero(self._arrays["frozen"] == code)[0])])

    def writer(self, actor: int, number: int, version: int) -> Writer:
        """Where an actor writes a block; one that an actor before it left unfinished goes on where that died."""
        at = (actor, number % self._sizes.kept)
        if self._arrays["number"][at] != number:
            self._arrays["rounds"][at] = 0
        self._arrays["number"][at], self._arrays["played_with"][at] = number, version
        return Writer(self._block(at), self._arrays["rounds"][at[0], at[1] : at[1] + 1])

    def played_with(self, actor: int, number: int) -> int:
        """The version of the weights that a block was played with."""
        return int(self._arrays["played_with"][self._place(actor, number)])

    def rounds(self, actor: int, number: int) -> Iterator[Played]:
        """A block so far, round by round."""
        at = self._place(actor, number)
        block = self._block(at)
        first_row = first_game = 0
        for games, rows in block["round"][: self._arrays["rounds"][at]].tolist():
            row, game = slice(first_row, first_row + rows), slice(first_game, first_game + games)
            first_row, first_game = row.stop, game.stop
            ended, beyond = self._ended(block, game)
            action, log_prob, value, explored, state = (block[name][row] for name in _CHOICE)
            choice = Choice(action, log_prob, value, explored, state)
            decisions = (block["table"][row], block["seat"][row], block["reward"][row], block["view"][row])
            yield Played(ended, beyond, *decisions, choice)

    def games(self, actor: int, number: int) -> tuple[NDArray[np.int32], NDArray[np.int64], int]:
        """Tables and numbers of the games that ended in a block so far, and how many of them were not lost."""
        at = (actor, number % self._sizes.kept)
        block = self._block(at)
        begun = self._arrays["number"][at] == number
        count = int(block["round"][: self._arrays["rounds"][at], 0].sum()) if begun else 0
        finished = int((block["ended_outcome"][:count] != Outcome.LOST).sum())
        return block["ended_table"][:count], block["ended_game"][:count], finished

    def _place(self, actor: int, number: int) -> tuple[int, int]:
        at = (actor, number % self._sizes.kept)
        if self._arrays["number"][at] != number:
            raise MapleError(f"block {number} of actor {actor} is not there")
        return at

    def _block(self, at: tuple[int, int]) -> dict[str, NDArray[Any]]:
        return {name: array[at] for name, array in self._arrays.items() if name not in _COMMON}

    def _ended(self, block: dict[str, NDArray[Any]], game: slice) -> tuple[Ended, NDArray[np.float32]]:
        """Games that ended, and what lay beyond those that were cut off, which was judged where they were played."""
        about = {name: block[f"ended_{name}"][game] for name in _ENDED}
        cut = np.flatnonzero(about["outcome"] == _TRUNCATED)
        nothing = np.zeros((len(cut), self._spec.seats, self._spec.view), np.uint64)
        return Ended(**about, cut=cut, last_view=nothing), block["ended_beyond"][game][cut]


def _write(net: nn.Module, room: NDArray[np.float32]) -> None:
    """A network's weights one after the other. Writes room."""
    begin = 0
    for weight in net.state_dict().values():
        flat = weight.detach().reshape(-1).to(torch.float32).cpu().numpy()
        room[begin : begin + len(flat)] = flat
        begin += len(flat)


def _read(net: nn.Module, room: NDArray[np.float32]) -> None:
    """Take over what _write() wrote. Writes net."""
    begin, vector = 0, torch.from_numpy(room)
    for weight in net.state_dict().values():
        weight.copy_(vector[begin : begin + weight.numel()].view_as(weight))
        begin += weight.numel()


class Writer:
    """Fills a block."""

    def __init__(self, block: dict[str, NDArray[Any]], rounds: NDArray[np.int64]) -> None:
        self._block, self._rounds = block, rounds
        self._games, self.rows = (int(count) for count in block["round"][: rounds[0]].sum(axis=0))

    def add(self, ended: Ended, beyond: NDArray[np.float32], decisions: Decisions, choice: Choice) -> None:
        """Append a round; `beyond` (K, seats, C) is what lay beyond where games were cut off."""
        block, games = self._block, len(ended.table)
        row, game = slice(self.rows, self.rows + len(choice.action)), slice(self._games, self._games + games)
        for name, column in zip(_ABOUT, decisions, strict=True):
            block[name][row] = column
        for name in _CHOICE:
            block[name][row] = getattr(choice, name)
        if games:
            for name in _ENDED:
                block[f"ended_{name}"][game] = getattr(ended, name)
            block["ended_beyond"][game] = 0.0
            block["ended_beyond"][game][ended.cut] = beyond
        block["round"][self._rounds[0]] = games, len(choice.action)
        self.rows, self._games = row.stop, game.stop
        self._rounds[0] += 1

    def has_room(self, tables: int, seats: int) -> bool:
        """Whether another round fits, whatever it brings."""
        block = self._block
        return bool(
            self._rounds[0] < len(block["round"])
            and self.rows + tables * seats <= len(block["table"])
            and self._games + 2 * tables <= len(block["ended_table"])
        )
