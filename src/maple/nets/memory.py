"""What seats remember from one decision to the next, and the recurrent layer that it is the state of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from maple.core.step import Keys

__all__ = ["Core", "Memory", "carried"]


class Memory:
    """A row of numbers for each (table, seat), for whoever plays it: zeros before its first decision in a game.

    It grows with the tables and seats that it meets; policies of different widths use as much of a row as they have.
    """

    def __init__(self) -> None:
        self.state = np.zeros((0, 0, 0), np.float32)  # (tables, seats, width)

    def recall(self, keys: Keys, width: int) -> NDArray[np.float32]:
        """(B, width) what each row's seat remembers of the game that it is in."""
        self._make_room(keys, width)
        state = self.state[keys.table, keys.seat, :width]
        state[keys.decision == 0] = 0.0
        return state

    def keep(self, keys: Keys, state: NDArray[np.float32]) -> None:
        """Remember this (B, width) until the seats' next decisions."""
        self.state[keys.table, keys.seat, : state.shape[1]] = state

    def _make_room(self, keys: Keys, width: int) -> None:
        met = (int(keys.table.max(initial=-1)) + 1, int(keys.seat.max(initial=-1)) + 1, width)
        have = self.state.shape
        if any(new > old for new, old in zip(met, have, strict=True)):
            tables = max(2 * have[0], met[0]) if met[0] > have[0] else have[0]
            room = np.zeros((tables, max(have[1], met[1]), max(have[2], met[2])), np.float32)
            room[: have[0], : have[1], : have[2]] = self.state
            self.state = room


@contextmanager
def carried(memory: Memory | None, keys: Keys, state: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """Room (B, S) for what seats remember afterwards, which is kept at the end. Writes state, what they do now.

    Without a memory, `state` is left as it is and nothing is kept.
    """
    after = np.empty_like(state)
    if memory is not None:
        state[:] = memory.recall(keys, state.shape[1])
    yield after
    if memory is not None:
        memory.keep(keys, after)


def _in_plain_floats(device: torch.device) -> AbstractContextManager[Any]:
    """Keep a recurrent layer out of 16 bits on a CPU: torch has none there for LSTMs on many of them, and raises."""
    return torch.autocast("cpu", enabled=False) if device.type == "cpu" else nullcontext()


class Core(nn.Module):
    """An LSTM or a GRU over a seat's decisions. Its state is one row: an LSTM's output, then its cell."""

    def __init__(self, kind: Literal["lstm", "gru"], inputs: int, width: int) -> None:
        super().__init__()
        self.width, self.is_lstm = width, kind == "lstm"
        self.state_width = 2 * width if self.is_lstm else width
        self.layer: nn.LSTM | nn.GRU = nn.LSTM(inputs, width) if self.is_lstm else nn.GRU(inputs, width)
        weights = dict(self.layer.named_parameters())
        nn.init.orthogonal_(weights["weight_hh_l0"])
        if self.is_lstm:
            nn.init.ones_(weights["bias_ih_l0"][width : 2 * width])  # a cell that is kept at first

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """From x (T, n, inputs) and the state (n, S) before: the outputs (T, n, width) and the state after."""
        with _in_plain_floats(x.device):
            out, last = self.layer(x.float(), self._split(state))
        return out, self._joined(last)

    def advance(self, x: Tensor, state: Tensor, length: NDArray[np.int64]) -> Tensor:
        """The state (n, S) after each column's first `length` (n,) rows of x (T, n, inputs)."""
        some = torch.from_numpy(np.flatnonzero(length > 0)).to(x.device)
        if not len(some):
            return state
        packed = pack_padded_sequence(x[:, some].float(), torch.from_numpy(length[length > 0]), enforce_sorted=False)
        with _in_plain_floats(x.device):
            _, last = self.layer(packed, self._split(state[some]))
        return state.index_copy(0, some, self._joined(last).float())

    def _split(self, state: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        if not self.is_lstm:
            return state[None].contiguous()
        out, cell = state.split(self.width, dim=1)
        return out[None].contiguous(), cell[None].contiguous()

    def _joined(self, last: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        return torch.cat([part[0] for part in last], dim=1) if isinstance(last, tuple) else last[0]
