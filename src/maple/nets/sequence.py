"""A policy over indices that may attend to entities and remember: a trunk, a recurrent core, two towers.

Acting takes one decision a row; learning unrolls segments of a seat's decisions. Both run the same layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose
from maple.core.step import Keys
from maple.nets.entities import Attention, EntityTrunk, PointerHead, Tokens
from maple.nets.memory import Core, Memory
from maple.nets.policy import Choice, draw, layers, shrunk
from maple.nets.sampling import sample_mask
from maple.nets.seen import ROWS, Seen
from maple.nets.sparse import SparseLayer

__all__ = ["SequencePolicy", "Unrolled"]


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Segments side by side: where each of m rows stands among `steps` × n places, and what came before."""

    place: Tensor  # (m,) step × n + segment
    steps: int
    state: Tensor  # (n, S) before each segment's first decision


class SequencePolicy(nn.Module):
    """Logits over indices and a value, from what a seat sees now and what it remembers."""

    def __init__(
        self,
        seen: Seen,
        hidden: list[int],
        activation: str,
        core: Literal["none", "lstm", "gru"] = "none",
        core_width: int = 0,
        attention: Attention | None = None,
    ) -> None:
        super().__init__()
        spec = seen.encoder.spec
        kind = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
        self.seen, self.activate = seen, {"relu": torch.relu, "tanh": torch.tanh}[activation]
        self.first: SparseLayer | EntityTrunk
        if attention is None:
            self.first = SparseLayer(spec.observation, hidden[0], spec.energy)
        else:
            self.first = EntityTrunk(spec, hidden[0], attention)
        self.core = None if core == "none" else Core(core, hidden[0], core_width)
        width = hidden[0] if self.core is None else core_width
        self.pointer: PointerHead | None = None
        if attention is not None and any(group.actions for group in spec.entities):
            tower = [*layers([width, *hidden[1:]], kind), kind()] if hidden[1:] else [nn.Identity()]
            self.actor = nn.Sequential(*tower)
            self.pointer = PointerHead(spec, hidden[-1] if hidden[1:] else width, attention.width)
        else:
            self.actor = shrunk(layers([width, *hidden[1:], spec.actions], kind), 0.01)
        self.critic = layers([width, *hidden[1:], 1], kind)

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return 0 if self.core is None else self.core.state_width

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def trunk(self, observation: NDArray[Any]) -> tuple[Tensor, Tokens | None]:
        """(m, E) what is seen, before anything is remembered, and what became of each entity."""
        if isinstance(self.first, SparseLayer):
            return self.activate(self.first.of_bytes(observation, relu=False)), None
        seen, tokens = self.first(torch.from_numpy(observation).to(self.device, non_blocking=True).float())
        return self.activate(seen), tokens

    def heads(self, x: Tensor, tokens: Tokens | None) -> tuple[Tensor, Tensor]:
        """Logits (m, A) and value (m,)."""
        logits = self.actor(x)
        if self.pointer is not None:
            logits = self.pointer(logits, tokens)
        return logits.float(), self.critic(x)[:, 0].float()

    def forward(self, observation: NDArray[Any], state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One decision a row: logits (n, A), value (n,) and the state (n, S) after it."""
        return self.decide(*self.trunk(observation), state)

    def decide(self, x: Tensor, tokens: Tokens | None, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same from what trunk() gave."""
        if self.core is not None:
            out, state = self.core(x[None], state)
            x = out[0]
        return *self.heads(x, tokens), state

    def unroll(self, observation: NDArray[Any], segments: Unrolled) -> tuple[Tensor, Tensor]:
        """Logits (m, A) and value (m,) of the rows of segments."""
        x, tokens = self.trunk(observation)
        if self.core is not None:
            out, _ = self.core(_spread(x, segments), segments.state)
            x = out.flatten(0, 1)[segments.place]
        return self.heads(x, tokens)

    @torch.no_grad()
    def advance(self, observation: NDArray[Any], segments: Unrolled, length: NDArray[np.int64]) -> Tensor:
        """The state (n, S) after segments of these lengths."""
        if self.core is None:
            return segments.state
        return self.core.advance(_spread(self.trunk(observation)[0], segments), segments.state, length)

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """An action for every row; without a memory, as if each were a game's first decision."""
        choice, uniform = Choice.allocate(len(view), 1, self.state_width), draw(seed, keys, Purpose.ACT, 0)
        if memory is not None:
            choice.state[:] = memory.recall(keys, self.state_width)
        after = np.empty_like(choice.state)

        @torch.no_grad()
        def piece(lo: int, hi: int) -> None:
            observation, mask = self.seen.observation(view[lo:hi])
            logits, value, state = self(observation, torch.from_numpy(choice.state[lo:hi]).to(self.device))
            out = choice.action[lo:hi], choice.log_prob[lo:hi]
            sample_mask(logits.cpu().numpy(), mask, uniform[lo:hi], greedy, *out)
            choice.value[lo:hi, 0], after[lo:hi] = value.cpu().numpy(), state.cpu().numpy()

        self.seen.in_pieces(piece, np.ones(len(view), np.int64), ROWS)
        if memory is not None:
            memory.keep(keys, after)
        return choice


def _spread(x: Tensor, segments: Unrolled) -> Tensor:
    """(steps, n, E) the rows x (m, E) at their places, zeros between."""
    n = len(segments.state)
    room = x.new_zeros(segments.steps * n, x.shape[1])
    return room.index_copy(0, segments.place, x).view(segments.steps, n, x.shape[1])
