"""Policies that may attend to entities and remember: a body, then two towers.

- `SequencePolicy` scores a fixed set of indices under a mask, those about an entity by its token.
- `OptionSequencePolicy` scores described options: what the body made of the decision is added to every option before
  the layers that score it, and an option about an entity is also scored by its token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose
from maple.core.step import Keys, Options
from maple.nets.body import Body, Shape, Sight, Unrolled
from maple.nets.entities import PointerHead, Tokens
from maple.nets.memory import Memory, carried
from maple.nets.policy import Choice, draw, layers, shrunk
from maple.nets.sampling import sample_mask, sample_options
from maple.nets.seen import CHUNK, ROWS, Seen
from maple.nets.sparse import SparseLayer

__all__ = ["OptionSequencePolicy", "SequencePolicy"]


class SequencePolicy(nn.Module):
    """Logits over indices and a value, from what a seat sees now and what it remembers."""

    def __init__(self, seen: Seen, hidden: list[int], shape: Shape) -> None:
        super().__init__()
        spec = seen.encoder.spec
        kind = {"relu": nn.ReLU, "tanh": nn.Tanh}[shape.activation]
        self.seen, self.body = seen, Body(seen, shape)
        width = self.body.width
        self.pointer: PointerHead | None = None
        if shape.attention is not None and any(group.actions for group in spec.entities):
            tower = [*layers([width, *hidden[1:]], kind), kind()] if hidden[1:] else [nn.Identity()]
            self.actor = nn.Sequential(*tower)
            self.pointer = PointerHead(spec, hidden[-1] if hidden[1:] else width, shape.attention.width)
        else:
            self.actor = shrunk(layers([width, *hidden[1:], spec.actions], kind), 0.01)
        self.critic = layers([width, *hidden[1:], 1], kind)

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return self.body.state_width

    def heads(self, x: Tensor, tokens: Tokens | None) -> tuple[Tensor, Tensor]:
        """Logits (m, A) and value (m,)."""
        logits = self.actor(x)
        if self.pointer is not None:
            logits = self.pointer(logits, tokens)
        return logits.float(), self.critic(x)[:, 0].float()

    def forward(self, observation: NDArray[Any], state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One decision a row: logits (n, A), value (n,) and the state (n, S) after it."""
        x, tokens, state = self.body(observation, state)
        return *self.heads(x, tokens), state

    def unroll(self, observation: NDArray[Any], segments: Unrolled) -> tuple[Tensor, Tensor]:
        """Logits (m, A) and value (m,) of the rows of segments."""
        return self.heads(*self.body.unroll(observation, segments))

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """An action for every row; without a memory, as if each were a game's first decision."""
        choice, uniform = Choice.allocate(len(view), 1, self.state_width), draw(seed, keys, Purpose.ACT, 0)
        with carried(memory, keys, choice.state) as after:

            @torch.no_grad()
            def piece(lo: int, hi: int) -> None:
                observation, mask = self.seen.observation(view[lo:hi])
                before = torch.from_numpy(choice.state[lo:hi]).to(self.body.device)
                logits, value, state = self(observation, before)
                out = choice.action[lo:hi], choice.log_prob[lo:hi]
                sample_mask(logits.cpu().numpy(), mask, uniform[lo:hi], greedy, *out)
                choice.value[lo:hi, 0], after[lo:hi] = value.cpu().numpy(), state.cpu().numpy()

            self.seen.in_pieces(piece, np.ones(len(view), np.int64), ROWS)
        return choice


class OptionSequencePolicy(nn.Module):
    """A logit for each described option and a value, from what a seat sees now and what it remembers."""

    def __init__(self, seen: Seen, hidden: list[int], shape: Shape) -> None:
        super().__init__()
        self.seen, self.max_parts = seen, seen.spec.max_parts
        self.body = Body(seen, shape, described=True)
        self.first = SparseLayer(seen.spec.features, hidden[0])
        self.context = nn.Linear(self.body.width, hidden[0])
        self.actor = shrunk(layers([*hidden, 1], nn.ReLU), 0.1)
        self.critic = layers([self.body.width, *hidden[1:], 1], nn.ReLU)
        self.pointer: PointerHead | None = None
        if shape.attention is not None and any(group.actions for group in seen.encoder.spec.entities):
            self.pointer = PointerHead(seen.encoder.spec, self.body.width, shape.attention.width, plain=False)

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return self.body.state_width

    def heads(self, options: Options, x: Tensor, tokens: Tokens | None) -> tuple[Tensor, Tensor]:
        """Logits (N,) of the options and values (m,) of the decisions, from what the body made of those."""
        count = np.diff(options.offset)
        decision = torch.from_numpy(np.repeat(np.arange(len(count)), count)).to(x.device)
        described = self.first.of_options(options, self.max_parts)
        logits = self.score(described, self.context(x).index_select(0, decision))
        if self.pointer is not None:
            action = torch.from_numpy(options.action.astype(np.int64)).to(x.device)
            logits = logits + self.pointer(x, tokens).flatten().index_select(
                0, decision * self.pointer.actions + action
            )
        return logits.float(), self.critic(x)[:, 0].float()

    def score(self, described: Tensor, context: Tensor) -> Tensor:
        """(N,) by descriptions alone, from the options' first layer (N, H) and their decisions' context."""
        return self.actor(torch.relu(described + context))[:, 0]  # type: ignore[no-any-return]

    def forward(self, sight: Sight, options: Options, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One decision a row: logits (N,), value (n,) and the state (n, S) after it."""
        x, tokens, state = self.body(sight, state)
        return *self.heads(options, x, tokens), state

    def unroll(self, sight: Sight, options: Options, segments: Unrolled) -> tuple[Tensor, Tensor]:
        """Logits (N,) and values (m,) of the rows of segments."""
        return self.heads(options, *self.body.unroll(sight, segments))

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """An action for every row; without a memory, as if each were a game's first decision."""
        choice, uniform = Choice.allocate(len(view), 1, self.state_width), draw(seed, keys, Purpose.ACT, 0)
        with carried(memory, keys, choice.state) as after:

            @torch.no_grad()
            def piece(lo: int, hi: int) -> None:
                sight, options = self.body.sight(view[lo:hi]), self.seen.options(view[lo:hi])
                before = torch.from_numpy(choice.state[lo:hi]).to(self.body.device)
                logits, value, state = self(sight, options, before)
                scores, chosen = logits.cpu().numpy(), np.empty(hi - lo, np.int64)
                sample_options(options.offset, scores, uniform[lo:hi], greedy, chosen, choice.log_prob[lo:hi])
                choice.action[lo:hi] = options.action[chosen]
                choice.value[lo:hi, 0], after[lo:hi] = value.cpu().numpy(), state.cpu().numpy()

            self.seen.in_pieces(piece, self.seen.count(view), CHUNK)
        return choice
