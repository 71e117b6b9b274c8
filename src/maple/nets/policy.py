"""Policies: from what a seat sees to what it does, in batches.

- `IndexPolicy` scores a fixed set of indices under a mask.
- `OptionPolicy` scores described options; its critic reads the decision before any option is taken.
- `OptionValue` predicts, for each option, what the seat will earn after it (after-state values).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose, uniforms
from maple.core.step import Keys, Options
from maple.nets.dense import RELU, TANH
from maple.nets.memory import Memory
from maple.nets.sampling import explore_options, sample_mask, sample_options
from maple.nets.seen import CHUNK, ROWS, Seen
from maple.nets.small import choose_index, is_small, tower_arrays
from maple.nets.sparse import Rows, SparseLayer
from maple.perf.spans import span

__all__ = ["Choice", "IndexPolicy", "OptionPolicy", "OptionValue", "Policy", "draw", "layers", "shrunk"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for each row, and what learning needs to know of it."""

    action: NDArray[np.int16]  # (B,)
    log_prob: NDArray[np.float32]  # (B,)
    value: NDArray[np.float32]  # (B, signals) what the seat expects to earn from here on
    explored: NDArray[np.bool_]  # (B,) chosen against the policy's own judgement
    state: NDArray[np.float32]  # (B, S) what the seat remembered before; S is 0 for those that do not
    shown: NDArray[np.bool_] | bool = False  # (B,) whether somebody else chose, for this seat to learn from

    @staticmethod
    def allocate(rows: int, values: int, state: int = 0) -> Choice:
        """Room for a choice a row."""
        return Choice(
            action=np.empty(rows, np.int16),
            log_prob=np.zeros(rows, np.float32),
            value=np.empty((rows, values), np.float32),
            explored=np.zeros(rows, np.bool_),
            state=np.zeros((rows, state), np.float32),
        )


class Policy(Protocol):
    """A network that plays."""

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """An action for every row, in one batch. Those that remember do so in `memory`; the others leave it alone."""


def draw(seed: int, keys: Keys, purpose: Purpose, number: int) -> NDArray[np.float64]:
    """One uniform number a row, a function of the row's key alone."""
    out = np.empty(len(keys), np.float64)
    uniforms(np.uint64(seed), int(purpose), keys.table, keys.game, keys.seat, keys.decision, number, out)
    return out


def layers(widths: list[int], activation: type[nn.Module], linear: type[nn.Linear] = nn.Linear) -> nn.Sequential:
    """Dense layers, `linear` each, with an activation after each but the last."""
    parts: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(widths)):
        parts.append(linear(a, b))
        if i < len(widths) - 2:
            parts.append(activation())
    return nn.Sequential(*parts)


def shrunk(tower: nn.Sequential, factor: float) -> nn.Sequential:
    """The tower with a small last layer, so that it starts without opinions."""
    last = tower[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(factor)
    return tower


class IndexPolicy(nn.Module):
    """Logits over indices and a value, from two towers that share nothing but the pass over the observation."""

    def __init__(self, seen: Seen, hidden: list[int], activation: str = "relu") -> None:
        super().__init__()
        spec = seen.encoder.spec
        kind = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
        self.seen, self.width = seen, hidden[0]
        self.kind = {"relu": RELU, "tanh": TANH}[activation]
        self.first = SparseLayer(spec.observation, 2 * hidden[0], spec.energy)
        self.actor = shrunk(layers([*hidden, spec.actions], kind), 0.01)
        self.critic = layers([*hidden, 1], kind)
        self.small = is_small(self.actor, self.critic)

    def forward(self, observation: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """Logits (n, A) and value (n,)."""
        first = self.first.of_bytes(observation, relu=self.kind == RELU)
        first = first if self.kind == RELU else torch.tanh(first)
        actor, critic = first.split(self.width, dim=1)
        return self.actor(actor).float(), self.critic(critic)[:, 0].float()

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """An action for every row."""
        choice, uniform = Choice.allocate(len(view), 1), draw(seed, keys, Purpose.ACT, 0)
        sample = self._by_kernel() if self.small and self.first.weight.device.type == "cpu" else self._by_torch

        def piece(lo: int, hi: int) -> None:
            seen = self.seen.observation(view[lo:hi])
            out = choice.action[lo:hi], choice.log_prob[lo:hi], choice.value[lo:hi, 0]
            sample(*seen, uniform[lo:hi], greedy, *out)

        self.seen.in_pieces(piece, np.ones(len(view), np.int64), ROWS)
        return choice

    def _by_kernel(self) -> Callable[..., None]:
        """Chooses with the weights as they are now."""
        first = self.first.weight.detach().numpy(), self.first.bias.detach().numpy()
        return partial(choose_index, first, (tower_arrays(self.actor), tower_arrays(self.critic)), self.kind)

    @torch.no_grad()
    def _by_torch(
        self, observation: NDArray[Any], mask: NDArray[np.bool_], uniform: NDArray[np.float64], greedy: bool, *out: Any
    ) -> None:
        """The same on any device, and for wide layers. Writes out: action, log-probability and value."""
        action, log_prob, value = out
        logits, found = self(observation)
        sample_mask(logits.cpu().numpy(), mask, uniform, greedy, action, log_prob)
        value[:] = found.cpu().numpy()


class OptionPolicy(nn.Module):
    """A logit for each described option, and a value from the decision as it stands."""

    def __init__(self, seen: Seen, hidden: list[int]) -> None:
        super().__init__()
        self.seen, self.max_parts = seen, seen.spec.max_parts
        self.first = SparseLayer(seen.spec.features, hidden[0])
        self.actor = shrunk(layers([*hidden, 1], nn.ReLU), 0.1)
        self.critic_first = SparseLayer(seen.spec.features, hidden[0])
        self.critic = layers([*hidden, 1], nn.ReLU)

    def logits(self, options: Options) -> Tensor:
        """(N,) for the options of a chunk."""
        return self.actor(self.first.of_options(options, self.max_parts))[:, 0].float()  # type: ignore[no-any-return]

    def value(self, state: Rows) -> Tensor:
        """(n,) for decisions before an option is taken."""
        return self.critic(self.critic_first.of_features(state))[:, 0].float()  # type: ignore[no-any-return]

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """An action for every row."""
        choice, uniform = Choice.allocate(len(view), 1), draw(seed, keys, Purpose.ACT, 0)

        @torch.no_grad()
        def piece(lo: int, hi: int) -> None:
            options, chosen = self.seen.options(view[lo:hi]), np.empty(hi - lo, np.int64)
            logits = self.logits(options).cpu().numpy()
            sample_options(options.offset, logits, uniform[lo:hi], greedy, chosen, choice.log_prob[lo:hi])
            choice.action[lo:hi] = options.action[chosen]
            with span("agent_value_calculation"):
                choice.value[lo:hi, 0] = self.value(self.seen.state_with(options, view[lo:hi])).cpu().numpy()

        self.seen.in_pieces(piece, self.seen.count(view), CHUNK)
        return choice


class OptionValue(nn.Module):
    """What a seat will earn after an option: the reward and the game's other signals.

    Play takes the option with the most expected reward less `caution` times the expected second signal (in OFC, the
    chance of a foul): a player's attitude to risk, kept out of the reward.
    """

    def __init__(self, seen: Seen, hidden: list[int], caution: float) -> None:
        super().__init__()
        signals = len(seen.encoder.spec.signals)
        self.seen, self.max_parts = seen, seen.spec.max_parts
        self.epsilon, self.temperature = 0.0, 1.0
        self.first = SparseLayer(seen.spec.features, hidden[0])
        self.rest = shrunk(layers([*hidden, signals], nn.ReLU), 0.1)
        self.register_buffer("taste", torch.zeros(signals))
        self.taste: Tensor
        self.set_caution(caution)

    def set_caution(self, caution: float) -> None:
        """How much reward to give up for the second signal."""
        self.taste[0] = 1.0
        self.taste[1:2] = -caution

    def forward(self, rows: Rows) -> Tensor:
        """(n, signals) for chosen options."""
        return self.rest(self.first.of_features(rows)).float()  # type: ignore[no-any-return]

    def choose(
        self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool, memory: Memory | None = None
    ) -> Choice:
        """The best option for every row, or now and then another one if not `greedy`."""
        choice, epsilon = Choice.allocate(len(view), len(self.taste)), 0.0 if greedy else self.epsilon
        first, second = draw(seed, keys, Purpose.EXPLORE, 0), draw(seed, keys, Purpose.EXPLORE, 1)

        @torch.no_grad()
        def piece(lo: int, hi: int) -> None:
            options = self.seen.options(view[lo:hi])
            chosen, best = np.empty(hi - lo, np.int64), np.empty(hi - lo, np.int64)
            earned = self.rest(self.first.of_options(options, self.max_parts))  # (N, signals)
            score, draws = (earned @ self.taste).cpu().numpy(), (first[lo:hi], second[lo:hi])
            explore_options(options.offset, score, *draws, epsilon, self.temperature, chosen, best)
            choice.action[lo:hi], choice.explored[lo:hi] = options.action[chosen], chosen != best
            choice.value[lo:hi] = earned.cpu().numpy()[best]

        self.seen.in_pieces(piece, self.seen.count(view), CHUNK)
        return choice
