"""From views to what networks read: observations and masks, feature lists, options in chunks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maple.core.encoder import Encoder
from maple.core.spec import OptionSpec
from maple.core.step import Options
from maple.core.threads import Team
from maple.nets.sparse import Rows, gather_options

__all__ = ["CHUNK", "ROWS", "Described", "Look", "Seen", "part_of"]

CHUNK = 3072  # options at a time: their hidden layer stays in a core's own cache
PIECES = 12  # pieces to aim for where there is little to do, so that all threads end at about the same time
SPARE = 1.25  # more room than was asked for, so that buffers soon stop growing
ROWS = 512  # decisions at a time, where options do not matter


@dataclass(frozen=True, slots=True)
class Described:
    """Decisions with their options, and the features of each before an option is taken where those are wanted."""

    options: Options
    state: Rows

    def of(self, lo: int, hi: int) -> Described:
        """Decisions [lo, hi)."""
        return Described(self.options.of(lo, hi), self.state.of(lo, hi))


Look = tuple[NDArray[Any], NDArray[np.bool_]] | Described  # observation and mask, or described options


def part_of(look: Look | None, lo: int, hi: int) -> Look | None:
    """Rows [lo, hi) of what was encoded, if it was."""
    if isinstance(look, tuple):
        return look[0][lo:hi], look[1][lo:hi]
    return None if look is None else look.of(lo, hi)


class Seen:
    """Encodes rows for the thread that asks; buffers that are reused belong to that thread.

    `pinned` puts all that networks read where a GPU reads it by itself.
    """

    def __init__(self, encoder: Encoder, team: Team, pinned: bool = False) -> None:
        self.encoder = encoder
        self.team = team
        self._pinned = pinned
        self._scratch = threading.local()

    @property
    def spec(self) -> OptionSpec:
        """The sizes of described options."""
        spec = self.encoder.spec.options
        if spec is None:
            raise ValueError(f"{self.encoder.spec.name} does not describe its options")
        return spec

    def in_pieces(self, work: Callable[[int, int], None], cost: NDArray[np.int64], piece: int) -> None:
        """Call work(lo, hi) over ranges of rows that cost `piece` or less each, on whichever thread is free.

        Where the ranges begin depends on the costs alone, so results do not depend on the number of threads.
        """
        bounds, total = [0], np.cumsum(cost)
        piece = min(piece, max(piece // 4, int(total[-1]) // PIECES)) if len(cost) else piece
        while bounds[-1] < len(cost):
            before = total[bounds[-1] - 1] if bounds[-1] else 0
            bounds.append(max(bounds[-1] + 1, int(np.searchsorted(total, before + piece, side="right"))))
        self.team.each(lambda part: work(bounds[part], bounds[part + 1]), len(bounds) - 1)

    def observation(self, view: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Observation and mask of a few rows."""
        observation, mask = self._room_for_observations(len(view))
        self.encoder.observe(view, observation, mask, 0, len(view))
        return observation, mask

    def all_observations(self, view: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Observation and mask of many rows, by all threads."""
        observation, mask = self._room_for_observations(len(view))
        self.team.run(self.encoder.observe, len(view), view, observation, mask)
        return observation, mask

    def _room_for_observations(self, n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        spec = self.encoder.spec
        observation, mask = np.empty((n, spec.observation), spec.dtype), np.empty((n, spec.actions), np.bool_)
        return self.pinned(observation), self.pinned(mask)

    def pinned(self, array: NDArray[Any]) -> NDArray[Any]:
        """The same where a GPU reads it by itself, if one does."""
        return torch.from_numpy(array).pin_memory().numpy() if self._pinned else array

    def state(self, view: NDArray[np.uint64]) -> Rows:
        """Features of each decision before an option is taken."""
        rows = self._rows(len(view))
        self.encoder.describe_state(view, rows.feature, rows.length, 0, len(view))
        return rows

    def state_with(self, options: Options, view: NDArray[np.uint64]) -> Rows:
        """The same where the options are described already; in games where they share all of it, it is there."""
        return Rows(options.shared, options.shared_length) if self.spec.shares_all else self.state(view)

    def choice(self, view: NDArray[np.uint64], action: NDArray[np.int16]) -> Rows:
        """Features of each decision's chosen option."""
        rows = self._rows(len(view))
        self.encoder.describe_choice(view, action, rows.feature, rows.length, 0, len(view))
        return rows

    def all_choices(self, view: NDArray[np.uint64], action: NDArray[np.int16]) -> Rows:
        """The same of many decisions, by all threads."""
        rows = self._rows(len(view))
        self.team.run(self.encoder.describe_choice, len(view), view, action, rows.feature, rows.length)
        return rows

    def permute(self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64]) -> None:
        """Replace rows by equivalent ones, in place."""
        self.encoder.permute(view, action, random, 0, len(view))

    def count(self, view: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many options each row has."""
        count = np.empty(len(view), np.int64)
        self.encoder.count_options(view, count, 0, len(view))
        return count

    def options(self, view: NDArray[np.uint64], keep: bool = False) -> Options:
        """The options of a few rows; this thread's next call reuses the buffers unless told to `keep` them."""
        count = self.count(view)
        n, total = len(view), int(count.sum())
        options = self._room_for_options(n, total) if keep else self._reused(n, total)
        options.offset[0] = 0
        np.cumsum(count, out=options.offset[1:])
        self.encoder.describe(view, options, 0, n)
        return options

    def all_options(self, view: NDArray[np.uint64], most_bytes: int) -> Options | None:
        """The options of many rows, by all threads; none if they took more than so many bytes."""
        n, count = len(view), np.empty(len(view), np.int64)
        self.team.run(self.encoder.count_options, n, view, count)
        total, spec = int(count.sum()), self.spec
        room = 2 * (spec.part_width + 1) * spec.part_rows(n, total) + (4 * spec.option_parts + 2) * total
        if room + 2 * spec.shared_width * n > most_bytes:
            return None
        options = Options.allocate(spec, n, total)
        np.cumsum(count, out=options.offset[1:])
        self.team.run(self.encoder.describe, n, view, options)
        return options

    def of_kept(self, kept: Options, rows: NDArray[np.int64]) -> Options:
        """Those of some rows, in this order; this thread's next call reuses the buffers."""
        count = kept.offset[rows + 1] - kept.offset[rows]
        options = self._reused(len(rows), int(count.sum()))
        options.offset[0] = 0
        np.cumsum(count, out=options.offset[1:])
        each = 0 if self.spec.option_parts == 1 else self.spec.max_parts
        source, out = ((one.action, *one.lists()[1:]) for one in (kept, options))
        gather_options(rows, each, kept.offset, source, out)
        return options

    def described(self, view: NDArray[np.uint64], with_state: bool, keep: bool = False) -> Described:
        """The options of a few rows, and their features before one is taken if wanted; `keep` as in options()."""
        options = self.options(view, keep)
        return Described(options, self.state_with(options, view) if with_state else self.state(view[:0]))

    def _rows(self, n: int) -> Rows:
        feature, length = np.empty((n, self.spec.state_width), np.int16), np.empty(n, np.int16)
        return Rows(self.pinned(feature), self.pinned(length))

    def _room_for_options(self, n: int, total: int) -> Options:
        room = Options.allocate(self.spec, n, total)
        return Options(room.offset, self.pinned(room.action), *(self.pinned(array) for array in room.lists()[1:]))

    def _reused(self, n: int, total: int) -> Options:
        """This thread's own buffers, cut to size."""
        buffer: Options | None = self._scratch.__dict__.get("options")
        if buffer is None or len(buffer.shared) < n or len(buffer.action) < total:
            buffer = self._room_for_options(max(n, 1024), max(int(total * SPARE), CHUNK))
            self._scratch.options = buffer
        parts = self.spec.part_rows(n, total)
        return replace(
            buffer,
            offset=buffer.offset[: n + 1],
            action=buffer.action[:total],
            shared=buffer.shared[:n],
            shared_length=buffer.shared_length[:n],
            part=buffer.part[:parts],
            part_length=buffer.part_length[:parts],
            option_part=buffer.option_part[:total],
        )
