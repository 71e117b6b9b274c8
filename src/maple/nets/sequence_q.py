"""Values of indices from a network that may attend to entities and remember: a body, then a tower for each stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose
from maple.core.step import Keys
from maple.nets.body import Body, Shape, Unrolled
from maple.nets.entities import PointerHead, Tokens
from maple.nets.memory import Memory, carried
from maple.nets.noisy import NoisyLinear
from maple.nets.policy import Choice, draw, layers
from maple.nets.q import dueled
from maple.nets.sampling import explore_mask
from maple.nets.seen import ROWS, Seen

__all__ = ["SequenceQ"]


class SequenceQ(nn.Module):
    """Values of indices, from what a seat sees now and what it remembers.

    Actions about an entity are valued by its token, unless values are distributions.
    """

    def __init__(
        self, seen: Seen, hidden: list[int], shape: Shape, *, dueling: bool, quantiles: int, noisy: bool
    ) -> None:
        super().__init__()
        spec = seen.encoder.spec
        kind = {"relu": nn.ReLU, "tanh": nn.Tanh}[shape.activation]
        linear = NoisyLinear if noisy else nn.Linear
        self.seen, self.body = seen, Body(seen, shape)
        self.actions, self.atoms, self.epsilon = spec.actions, max(1, quantiles), 0.0
        width = self.body.width
        points = shape.attention is not None and any(group.actions for group in spec.entities) and not quantiles
        self.pointer: PointerHead | None = None
        if points and shape.attention is not None:
            tower = [*layers([width, *hidden[1:]], kind, linear), kind()] if hidden[1:] else [nn.Identity()]
            self.advantage = nn.Sequential(*tower)
            self.pointer = PointerHead(spec, hidden[-1] if hidden[1:] else width, shape.attention.width)
        else:
            self.advantage = layers([width, *hidden[1:], spec.actions * self.atoms], kind, linear)
        self.value = layers([width, *hidden[1:], self.atoms], kind, linear) if dueling else None

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return self.body.state_width

    def heads(self, x: Tensor, tokens: Tokens | None, legal: Tensor) -> Tensor:
        """(m, A, atoms) from what the body gave; what is not legal has no meaning."""
        advantage = self.advantage(x)
        if self.pointer is not None:
            advantage = self.pointer(advantage, tokens)
        advantage = advantage.float().view(-1, self.actions, self.atoms)
        return dueled(advantage, None if self.value is None else self.value(x).float(), legal)

    def forward(self, observation: NDArray[Any], mask: NDArray[np.bool_], state: Tensor) -> tuple[Tensor, Tensor]:
        """One decision a row: values (n, A, atoms) and the state (n, S) after it."""
        x, tokens, state = self.body(observation, state)
        return self.heads(x, tokens, torch.from_numpy(mask).to(x.device)), state

    def unroll(self, observation: NDArray[Any], mask: NDArray[np.bool_], segments: Unrolled) -> Tensor:
        """(m, A, atoms) of the rows of segments."""
        x, tokens = self.body.unroll(observation, segments)
        return self.heads(x, tokens, torch.from_numpy(mask).to(x.device))

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """The best legal action for every row, or now and then another one if not `greedy`."""
        choice, epsilon = Choice.allocate(len(view), 1, self.state_width), 0.0 if greedy else self.epsilon
        first, second = draw(seed, keys, Purpose.EXPLORE, 0), draw(seed, keys, Purpose.EXPLORE, 1)
        with carried(memory, keys, choice.state) as after:

            @torch.no_grad()
            def piece(lo: int, hi: int) -> None:
                observation, mask = self.seen.observation(view[lo:hi])
                values, state = self(observation, mask, torch.from_numpy(choice.state[lo:hi]).to(self.body.device))
                score, best = values.mean(2).cpu().numpy(), np.empty(hi - lo, np.int64)
                explore_mask(score, mask, first[lo:hi], second[lo:hi], epsilon, choice.action[lo:hi], best)
                choice.explored[lo:hi] = choice.action[lo:hi] != best
                choice.value[lo:hi, 0], after[lo:hi] = score[np.arange(hi - lo), best], state.cpu().numpy()

            self.seen.in_pieces(piece, np.ones(len(view), np.int64), ROWS)
        return choice
