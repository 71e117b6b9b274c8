"""Q networks: what a seat will earn by each action, in one number or as a distribution.

- `IndexQ` scores a fixed set of indices; only legal ones are ever looked at.
- `OptionQ` scores described options.

With a dueling head, an action's value is the decision's own value plus the action's advantage over the mean of the
legal ones. A distribution is given by its quantiles at equal steps, whose mean is the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose
from maple.core.step import Keys, Options
from maple.nets.dense import RELU, TANH
from maple.nets.memory import Memory
from maple.nets.noisy import NoisyLinear
from maple.nets.policy import Choice, draw, layers
from maple.nets.sampling import best_options, explore_mask, explore_options
from maple.nets.seen import CHUNK, ROWS, Described, Seen
from maple.nets.small import choose_value, is_small, tower_arrays
from maple.nets.sparse import SparseLayer

__all__ = ["IndexQ", "OptionQ", "dueled"]


def dueled(advantage: Tensor, value: Tensor | None, legal: Tensor) -> Tensor:
    """(n, A, atoms) the advantages over the mean of the legal ones, on top of the value (n, atoms); alone without."""
    if value is None:
        return advantage
    share = (legal.float() / legal.sum(1, keepdim=True)).unsqueeze(2)
    return value.unsqueeze(1) + advantage - (advantage * share).sum(1, keepdim=True)


class IndexQ(nn.Module):
    """Values of indices, from one pass over the observation and a tower for each stream."""

    def __init__(
        self, seen: Seen, hidden: list[int], activation: str, *, dueling: bool, quantiles: int, noisy: bool
    ) -> None:
        super().__init__()
        spec = seen.encoder.spec
        kind = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
        linear = NoisyLinear if noisy else nn.Linear
        self.seen, self.actions, self.atoms = seen, spec.actions, max(1, quantiles)
        self.kind = {"relu": RELU, "tanh": TANH}[activation]
        self.epsilon = 0.0
        self.first = SparseLayer(spec.observation, hidden[0], spec.energy)
        self.advantage = layers([*hidden, spec.actions * self.atoms], kind, linear)
        self.value = layers([*hidden, self.atoms], kind, linear) if dueling else None
        self.small = not noisy and is_small(self.advantage, self.value or nn.Sequential())

    def forward(self, observation: NDArray[Any], mask: NDArray[np.bool_]) -> Tensor:
        """(n, A, atoms); what is not legal has no meaning."""
        x = self.first.of_bytes(observation, relu=self.kind == RELU)
        x = x if self.kind == RELU else torch.tanh(x)
        return self.head(x, torch.from_numpy(mask).to(x.device))

    def head(self, x: Tensor, legal: Tensor) -> Tensor:
        """(n, A, atoms) from the first layer's (n, H)."""
        advantage = self.advantage(x).float().view(-1, self.actions, self.atoms)
        return dueled(advantage, None if self.value is None else self.value(x).float(), legal)

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """The best legal action for every row, or now and then another one if not `greedy`."""
        choice, epsilon = Choice.allocate(len(view), 1), 0.0 if greedy else self.epsilon
        first, second = draw(seed, keys, Purpose.EXPLORE, 0), draw(seed, keys, Purpose.EXPLORE, 1)
        explore = self._by_kernel() if self.small and self.first.weight.device.type == "cpu" else self._by_torch

        def piece(lo: int, hi: int) -> None:
            observation, mask = self.seen.observation(view[lo:hi])
            score, best = np.empty((hi - lo, self.actions), np.float32), np.empty(hi - lo, np.int64)
            draws = first[lo:hi], second[lo:hi]
            explore(observation, mask, draws, epsilon, choice.action[lo:hi], best, score)
            choice.explored[lo:hi] = choice.action[lo:hi] != best
            choice.value[lo:hi, 0] = score[np.arange(hi - lo), best]

        self.seen.in_pieces(piece, np.ones(len(view), np.int64), ROWS)
        return choice

    def _by_kernel(self) -> Callable[..., None]:
        """Chooses with the weights as they are now."""
        first = self.first.weight.detach().numpy(), self.first.bias.detach().numpy()
        towers = tower_arrays(self.advantage), tower_arrays(self.value or self.advantage)
        return partial(choose_value, first, *towers, self.value is not None, self.kind, self.atoms)

    @torch.no_grad()
    def _by_torch(
        self, observation: NDArray[Any], mask: NDArray[np.bool_], draws: tuple[Any, Any], epsilon: float, *out: Any
    ) -> None:
        """The same on any device, with noise, and for wide layers. Writes out: action, the best one, scores."""
        action, best, score = out
        score[:] = self(observation, mask).mean(2).cpu().numpy()
        explore_mask(score, mask, *draws, epsilon, action, best)


class OptionQ(nn.Module):
    """Values of described options; the dueling value reads the decision before any option is taken."""

    def __init__(self, seen: Seen, hidden: list[int], *, dueling: bool, quantiles: int, noisy: bool) -> None:
        super().__init__()
        linear = NoisyLinear if noisy else nn.Linear
        self.seen, self.max_parts, self.atoms = seen, seen.spec.max_parts, max(1, quantiles)
        self.epsilon = 0.0
        self.first = SparseLayer(seen.spec.features, hidden[0])
        self.advantage = layers([*hidden, self.atoms], nn.ReLU, linear)
        self.value_first = SparseLayer(seen.spec.features, hidden[0]) if dueling else None
        self.value = layers([*hidden, self.atoms], nn.ReLU, linear) if dueling else None

    @property
    def dueling(self) -> bool:
        """Whether an option's value depends on the other options."""
        return self.value is not None

    def described(self, view: NDArray[np.uint64], keep: bool = False) -> Described:
        """What it reads of decisions; `keep` as in Seen.options()."""
        return self.seen.described(view, self.dueling, keep)

    def scores(self, options: Options) -> Tensor:
        """(N, atoms) by which options are compared: their values, or advantages if it is dueling."""
        return self.advantage(self.first.of_options(options, self.max_parts)).float()  # type: ignore[no-any-return]

    def values(self, described: Described, at: NDArray[np.int64], scores: Tensor) -> Tensor:
        """(n, atoms) the values of option at[i] of each decision, from the scores of all."""
        chosen = scores[torch.from_numpy(at).to(scores.device)]
        if self.value is None or self.value_first is None:
            return chosen
        count = np.diff(described.options.offset)
        decision = torch.from_numpy(np.repeat(np.arange(len(count)), count)).to(scores.device)
        mean = torch.zeros_like(chosen).index_add(0, decision, scores)
        mean = mean / torch.from_numpy(count.astype(np.float32)).to(scores.device)[:, None]
        state = self.value(self.value_first.of_features(described.state)).float()
        return state + chosen - mean  # type: ignore[no-any-return]

    def of_choices(self, view: NDArray[np.uint64], action: NDArray[np.int16]) -> Tensor:
        """(n, atoms) the values of options already taken, without a look at the others: not for a dueling head."""
        return self.advantage(self.first.of_features(self.seen.choice(view, action))).float()  # type: ignore[no-any-return]

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """The best option for every row, or now and then another one if not `greedy`."""
        choice, epsilon = Choice.allocate(len(view), 1), 0.0 if greedy else self.epsilon
        first, second = draw(seed, keys, Purpose.EXPLORE, 0), draw(seed, keys, Purpose.EXPLORE, 1)

        @torch.no_grad()
        def piece(lo: int, hi: int) -> None:
            described = self.described(view[lo:hi])
            options, chosen, best = described.options, np.empty(hi - lo, np.int64), np.empty(hi - lo, np.int64)
            scores = self.scores(options)
            draws = (first[lo:hi], second[lo:hi])
            explore_options(options.offset, scores.mean(1).cpu().numpy(), *draws, epsilon, np.inf, chosen, best)
            choice.action[lo:hi], choice.explored[lo:hi] = options.action[chosen], chosen != best
            choice.value[lo:hi, 0] = self.values(described, best, scores).mean(1).cpu().numpy()

        self.seen.in_pieces(piece, self.seen.count(view), CHUNK)
        return choice

    def best(self, options: Options, scores: Tensor) -> NDArray[np.int64]:
        """(n,) the best option of each decision, as a row of `options`."""
        best = np.empty(len(options.offset) - 1, np.int64)
        best_options(options.offset, scores.mean(1).cpu().numpy(), best)
        return best
