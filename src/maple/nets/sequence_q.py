"""Values from networks that may attend to entities and remember: a body, then a tower for each stream.

- `SequenceQ` values a fixed set of indices, those about an entity by its token.
- `OptionSequenceQ` values described options: what the body made of the decision is added to every option before the
  layers that value it, and an option about an entity is also valued by its token.

Both give their values by index, so that acting and learning need not know the difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose
from maple.core.step import Keys, Options
from maple.nets.body import Body, Shape, Unrolled
from maple.nets.entities import PointerHead, Tokens
from maple.nets.memory import Memory, carried
from maple.nets.noisy import NoisyLinear
from maple.nets.policy import Choice, draw, layers
from maple.nets.q import dueled
from maple.nets.sampling import explore_mask
from maple.nets.seen import CHUNK, ROWS, Seen
from maple.nets.sparse import SparseLayer

__all__ = ["OptionSequenceQ", "RecurrentQ", "SequenceQ"]


class SequenceQ(nn.Module):
    """Values of indices, from what a seat sees now and what it remembers; those about an entity by its token."""

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
        self.pointer: PointerHead | None = None
        if shape.attention is not None and any(group.actions for group in spec.entities):
            tower = [*layers([width, *hidden[1:]], kind, linear), kind()] if hidden[1:] else [nn.Identity()]
            self.advantage = nn.Sequential(*tower)
            inputs = hidden[-1] if hidden[1:] else width
            self.pointer = PointerHead(spec, inputs, shape.attention.width, atoms=self.atoms, linear=linear)
        else:
            self.advantage = layers([width, *hidden[1:], spec.actions * self.atoms], kind, linear)
        self.value = layers([width, *hidden[1:], self.atoms], kind, linear) if dueling else None

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return self.body.state_width

    def read(self, view: NDArray[np.uint64], by_all: bool = False) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """What forward() and unroll() take of decisions, their mask beside it; of many, by all threads."""
        return self.seen.all_observations(view) if by_all else self.seen.observation(view)

    def advance(self, sight: NDArray[Any], segments: Unrolled, length: NDArray[np.int64]) -> Tensor:
        """The state (n, S) after segments of these lengths."""
        return self.body.advance(sight, segments, length)

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
        return _choose(self, np.ones(len(view), np.int64), ROWS, view, keys, seed, greedy, memory)


class OptionSequenceQ(nn.Module):
    """Values of described options, from what a seat sees now and what it remembers.

    Options about an entity are also valued by its token.
    """

    def __init__(
        self, seen: Seen, hidden: list[int], shape: Shape, *, dueling: bool, quantiles: int, noisy: bool
    ) -> None:
        super().__init__()
        spec = seen.encoder.spec
        linear = NoisyLinear if noisy else nn.Linear
        self.seen, self.max_parts, self.body = seen, seen.spec.max_parts, Body(seen, shape, described=True)
        self.actions, self.atoms, self.epsilon = spec.actions, max(1, quantiles), 0.0
        self.first = SparseLayer(seen.spec.features, hidden[0])
        self.context = nn.Linear(self.body.width, hidden[0])
        self.advantage = layers([*hidden, self.atoms], nn.ReLU, linear)
        self.value = layers([self.body.width, *hidden[1:], self.atoms], nn.ReLU, linear) if dueling else None
        self.pointer: PointerHead | None = None
        if shape.attention is not None and any(group.actions for group in spec.entities):
            sizes = (self.body.width, shape.attention.width)
            self.pointer = PointerHead(spec, *sizes, plain=False, atoms=self.atoms, linear=linear)

    @property
    def state_width(self) -> int:
        """Numbers that a seat remembers."""
        return self.body.state_width

    def read(self, view: NDArray[np.uint64], by_all: bool = False) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """What forward() and unroll() take of decisions, which is their views, the mask beside it."""
        return view, (self.seen.all_observations(view) if by_all else self.seen.observation(view))[1]

    def advance(self, sight: NDArray[Any], segments: Unrolled, length: NDArray[np.int64]) -> Tensor:
        """The state (n, S) after segments of these lengths."""
        return self.body.advance(self.body.sight(sight), segments, length)

    def score(self, described: Tensor, context: Tensor) -> Tensor:
        """(N, atoms) by descriptions alone, from the options' first layer (N, H) and their decisions' context."""
        return self.advantage(torch.relu(described + context)).float()  # type: ignore[no-any-return]

    def scores(self, options: Options, x: Tensor, tokens: Tokens | None) -> tuple[Tensor, Tensor]:
        """(N, atoms) by which options are compared, and each one's place (N,) among all decisions' indices."""
        count = np.diff(options.offset)
        decision = torch.from_numpy(np.repeat(np.arange(len(count)), count)).to(x.device)
        place = decision * self.actions + torch.from_numpy(options.action.astype(np.int64)).to(x.device)
        described = self.first.of_options(options, self.max_parts)
        scores = self.score(described, self.context(x).index_select(0, decision))
        if self.pointer is not None:
            scores = scores + self.pointer(x, tokens).view(-1, self.atoms).index_select(0, place).float()
        return scores, place

    def heads(self, view: NDArray[np.uint64], x: Tensor, tokens: Tokens | None, legal: Tensor) -> Tensor:
        """(m, A, atoms) from what the body gave; what is not legal has no meaning."""
        scores, place = self.scores(self.seen.options(view, keep=True), x, tokens)
        room = scores.new_zeros(len(x) * self.actions, self.atoms)
        advantage = room.index_copy(0, place, scores).view(len(x), self.actions, self.atoms)
        return dueled(advantage, None if self.value is None else self.value(x).float(), legal)

    def forward(self, view: NDArray[Any], mask: NDArray[np.bool_], state: Tensor) -> tuple[Tensor, Tensor]:
        """One decision a row: values (n, A, atoms) and the state (n, S) after it."""
        x, tokens, state = self.body(self.body.sight(view), state)
        return self.heads(view, x, tokens, torch.from_numpy(mask).to(x.device)), state

    def unroll(self, view: NDArray[Any], mask: NDArray[np.bool_], segments: Unrolled) -> Tensor:
        """(m, A, atoms) of the rows of segments."""
        x, tokens = self.body.unroll(self.body.sight(view), segments)
        return self.heads(view, x, tokens, torch.from_numpy(mask).to(x.device))

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """The best option for every row, or now and then another one if not `greedy`."""
        return _choose(self, self.seen.count(view), CHUNK, view, keys, seed, greedy, memory)


RecurrentQ = SequenceQ | OptionSequenceQ


def _choose(
    net: RecurrentQ,
    cost: NDArray[np.int64],
    piece_cost: int,
    view: NDArray[np.uint64],
    keys: Keys,
    seed: int,
    greedy: bool,
    memory: Memory | None,
) -> Choice:
    """An action for every row, in pieces of about `piece_cost`."""
    choice, epsilon = Choice.allocate(len(view), 1, net.state_width), 0.0 if greedy else net.epsilon
    first, second = draw(seed, keys, Purpose.EXPLORE, 0), draw(seed, keys, Purpose.EXPLORE, 1)
    with carried(memory, keys, choice.state) as after:

        @torch.no_grad()
        def piece(lo: int, hi: int) -> None:
            sight, mask = net.read(view[lo:hi])
            values, state = net(sight, mask, torch.from_numpy(choice.state[lo:hi]).to(net.body.device))
            score, best = values.mean(2).cpu().numpy(), np.empty(hi - lo, np.int64)
            explore_mask(score, mask, first[lo:hi], second[lo:hi], epsilon, choice.action[lo:hi], best)
            choice.explored[lo:hi] = choice.action[lo:hi] != best
            choice.value[lo:hi, 0], after[lo:hi] = score[np.arange(hi - lo), best], state.cpu().numpy()

        net.seen.in_pieces(piece, cost, piece_cost)
    return choice
