"""What a seat sees and remembers as one row of numbers: a first layer or attention, then perhaps a recurrent core.

Acting takes one decision a row; learning unrolls segments of a seat's decisions. Both run the same layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.nets.entities import Attention, EntityTrunk, Tokens
from maple.nets.memory import Core
from maple.nets.seen import Seen
from maple.nets.sparse import Rows, SparseLayer

__all__ = ["Body", "Shape", "Sight", "Unrolled", "side_by_side"]

# Weights of a core × decisions that are as much work as a row of a plain network. With less for each, threads mostly
# wait for each other's Python: two took 1.7 times as long as one at 256 decisions and a width of 64.
A_ROWS_WORK = 2**19

Sight = NDArray[Any] | Rows  # observations (n, O), or the features of decisions


@dataclass(frozen=True, slots=True)
class Shape:
    """What a network that attends or remembers is made of, before its heads."""

    width: int  # of what goes into the core, or on to the heads
    activation: Literal["relu", "tanh"] = "relu"
    core: Literal["none", "lstm", "gru"] = "none"
    core_width: int = 0
    attention: Attention | None = None


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Segments side by side: where each of m rows stands among `steps` × n places, and what came before."""

    place: Tensor  # (m,) step × n + segment
    steps: int
    state: Tensor  # (n, S) before each segment's first decision

    def spread(self, x: Tensor) -> Tensor:
        """(steps, n, E) the rows x (m, E) at their places, zeros between."""
        n = len(self.state)
        room = x.new_zeros(self.steps * n, x.shape[1])
        return room.index_copy(0, self.place, x).view(self.steps, n, x.shape[1])


def side_by_side(rows: NDArray[np.int64], state: Tensor) -> tuple[NDArray[np.int64], Unrolled]:
    """The rows of some segments (n, length), step by step, and where they stand; below 0 there is no row."""
    steps = int((rows >= 0).sum(1).max(initial=0))
    turned = rows[:, :steps].T.reshape(-1)  # (steps × n,)
    place = np.flatnonzero(turned >= 0)
    return turned[place], Unrolled(torch.from_numpy(place).to(state.device), steps, state)


class Body(nn.Module):
    """From sights to (m, width), with what became of each entity where it attends.

    `described` networks score options and read the features of the decision; all others read its observation, and so
    do those that attend.
    """

    def __init__(self, seen: Seen, shape: Shape, described: bool = False) -> None:
        super().__init__()
        spec = seen.encoder.spec
        self.seen, self.activate = seen, {"relu": torch.relu, "tanh": torch.tanh}[shape.activation]
        self.first: SparseLayer | EntityTrunk
        if shape.attention is not None:
            self.first = EntityTrunk(spec, shape.width, shape.attention)
        elif described:
            self.first = SparseLayer(seen.spec.features, shape.width)
        else:
            self.first = SparseLayer(spec.observation, shape.width, spec.energy)
        self.reads_features = described and shape.attention is None
        self.core = None if shape.core == "none" else Core(shape.core, shape.width, shape.core_width)
        self.width = shape.width if self.core is None else shape.core_width

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return 0 if self.core is None else self.core.state_width

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def worth(self, decisions: int) -> int:
        """How many rows' work it is to learn from so many decisions, for the threads that share it."""
        if self.core is None or isinstance(self.first, EntityTrunk) or self.reads_features:
            return decisions
        return max(1, decisions * sum(weight.numel() for weight in self.core.parameters()) // A_ROWS_WORK)

    def sight(self, view: NDArray[np.uint64]) -> Sight:
        """What it reads of decisions."""
        return self.seen.state(view) if self.reads_features else self.seen.observation(view)[0]

    def trunk(self, sight: Sight) -> tuple[Tensor, Tokens | None]:
        """(m, E) what is seen, before anything is remembered, and what became of each entity."""
        if isinstance(self.first, EntityTrunk):
            assert isinstance(sight, np.ndarray)
            seen, tokens = self.first(torch.from_numpy(sight).to(self.device, non_blocking=True).float())
            return self.activate(seen), tokens
        if isinstance(sight, Rows):
            return self.activate(self.first.of_features(sight, relu=False)), None
        return self.activate(self.first.of_bytes(sight, relu=False)), None

    def remember(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """From what trunk() gave for one decision a row, (n, width) and the state (n, S) after it."""
        if self.core is None:
            return x, state
        out, state = self.core(x[None], state)
        return out[0], state

    def forward(self, sight: Sight, state: Tensor) -> tuple[Tensor, Tokens | None, Tensor]:
        """One decision a row: (n, width), tokens, and the state (n, S) after it."""
        x, tokens = self.trunk(sight)
        x, state = self.remember(x, state)
        return x, tokens, state

    def unroll(self, sight: Sight, segments: Unrolled) -> tuple[Tensor, Tokens | None]:
        """(m, width) and tokens of the rows of segments."""
        x, tokens = self.trunk(sight)
        if self.core is not None:
            out, _ = self.core(segments.spread(x), segments.state)
            x = out.flatten(0, 1).index_select(0, segments.place)
        return x, tokens

    @torch.no_grad()
    def advance(self, sight: Sight, segments: Unrolled, length: NDArray[np.int64]) -> Tensor:
        """The state (n, S) after segments of these lengths."""
        if self.core is None:
            return segments.state
        return self.core.advance(segments.spread(self.trunk(sight)[0]), segments.state, length)
