"""Policies: from what a seat sees to what it does, in batches.

- `IndexPolicy` scores a fixed set of indices under a mask.
- `OptionPolicy` scores described options; its critic reads the decision before any option is taken.
- `OptionValue` predicts, for each option, what the seat will earn after it (after-state values).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose, uniforms
from maple.core.spec import GameSpec, OptionSpec
from maple.core.step import Keys, Options
from maple.core.threads import Team
from maple.nets.sampling import explore_options, sample_mask, sample_options
from maple.nets.sparse import Rows, SparseLayer

__all__ = ["Choice", "Encoder", "IndexPolicy", "OptionPolicy", "OptionValue", "Policy", "Seen"]

CHUNK = 16384  # options that go through the network at once: the hidden layer then stays in the cache

Activation = Callable[[Tensor], Tensor]


class Encoder(Protocol):
    """The part of a game that policies need: encoders over views."""

    @property
    def spec(self) -> GameSpec: ...

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[np.uint8], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None: ...

    def count_options(self, view: NDArray[np.uint64], count: NDArray[np.int64], lo: int, hi: int) -> None: ...

    def describe(self, view: NDArray[np.uint64], options: Options, lo: int, hi: int) -> None: ...

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None: ...

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None: ...

    def permute(
        self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64], lo: int, hi: int
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for each row, and what learning needs to know of it."""

    action: NDArray[np.int16]  # (B,)
    log_prob: NDArray[np.float32]  # (B,)
    value: NDArray[np.float32]  # (B, signals) what the seat expects to earn from here on
    explored: NDArray[np.bool_]  # (B,) chosen against the policy's own judgement


class Policy(Protocol):
    """A network that plays."""

    def choose(self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool) -> Choice:
        """An action for every row, in one batch."""


class Seen:
    """Encodes views into reused buffers: observations and masks, options in chunks, feature lists."""

    def __init__(self, encoder: Encoder, team: Team) -> None:
        self.encoder = encoder
        self.team = team
        self._options: Options | None = None

    def observation(self, view: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Observation and mask of each row."""
        spec = self.encoder.spec
        observation = np.empty((len(view), spec.observation), np.uint8)
        mask = np.empty((len(view), spec.actions), np.bool_)
        self.team.run(self.encoder.observe, len(view), view, observation, mask)
        return observation, mask

    def state(self, view: NDArray[np.uint64]) -> Rows:
        """Features of each decision before an option is taken."""
        rows = self._rows(len(view))
        self.team.run(self.encoder.describe_state, len(view), view, rows.feature, rows.length)
        return rows

    def choice(self, view: NDArray[np.uint64], action: NDArray[np.int16]) -> Rows:
        """Features of each decision's chosen option."""
        rows = self._rows(len(view))
        self.team.run(self.encoder.describe_choice, len(view), view, action, rows.feature, rows.length)
        return rows

    def chunks(self, view: NDArray[np.uint64], keep: bool = False) -> Iterator[tuple[int, int, Options]]:
        """The options of rows [i, j), a chunk at a time; the next chunk reuses the buffers unless they are to `keep`."""
        count = np.empty(len(view), np.int64)
        self.team.run(self.encoder.count_options, len(view), view, count)
        end = np.cumsum(count)
        i, before = 0, 0
        while i < len(view):
            j = max(i + 1, int(np.searchsorted(end, before + CHUNK, side="right")))
            yield i, j, self._describe(view[i:j], count[i:j], keep)
            i, before = j, int(end[j - 1])

    def permute(self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64]) -> None:
        """Replace rows by equivalent ones, in place."""
        self.team.run(self.encoder.permute, len(view), view, action, random)

    def _rows(self, n: int) -> Rows:
        spec = self.spec
        return Rows(np.empty((n, spec.state_width), np.int16), np.empty(n, np.int16))

    @property
    def spec(self) -> OptionSpec:
        """The sizes of described options."""
        spec = self.encoder.spec.options
        if spec is None:
            raise ValueError(f"{self.encoder.spec.name} does not describe its options")
        return spec

    def _describe(self, view: NDArray[np.uint64], count: NDArray[np.int64], keep: bool) -> Options:
        n, total = len(view), int(count.sum())
        buffer = None if keep else self._options
        if buffer is None or len(buffer.shared) < n or len(buffer.action) < total:
            buffer = Options.allocate(self.spec, n if keep else max(n, 1024), total if keep else max(total, CHUNK))
            self._options = self._options if keep else buffer
        buffer.offset[0] = 0
        np.cumsum(count, out=buffer.offset[1 : n + 1])
        options = replace(
            buffer,
            offset=buffer.offset[: n + 1],
            action=buffer.action[:total],
            shared=buffer.shared[:n],
            shared_length=buffer.shared_length[:n],
            part=buffer.part[: n * self.spec.max_parts],
            part_length=buffer.part_length[: n * self.spec.max_parts],
            option_part=buffer.option_part[:total],
        )
        self.team.run(self.encoder.describe, n, view, options, grain=8)
        return options


def draw(seed: int, keys: Keys, purpose: Purpose, number: int) -> NDArray[np.float64]:
    """One uniform number a row, a function of the row's key alone."""
    out = np.empty(len(keys), np.float64)
    uniforms(np.uint64(seed), int(purpose), keys.table, keys.game, keys.seat, keys.decision, number, out)
    return out


def layers(widths: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers with an activation after each but the last."""
    parts: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(widths)):
        parts.append(nn.Linear(a, b))
        if i < len(widths) - 2:
            parts.append(activation())
    return nn.Sequential(*parts)


def _shrink(tower: nn.Sequential, factor: float) -> None:
    """Make a tower's last layer small, so that it starts without opinions."""
    last = tower[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(factor)


class IndexPolicy(nn.Module):
    """Logits over indices and a value, from two towers that share nothing but the pass over the observation."""

    def __init__(self, seen: Seen, hidden: list[int], activation: str = "relu") -> None:
        super().__init__()
        spec = seen.encoder.spec
        kind = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
        self.seen, self.width = seen, hidden[0]
        self.rectify = activation == "relu"
        self.first = SparseLayer(spec.observation, 2 * hidden[0], seen.team)
        self.actor = layers([*hidden, spec.actions], kind)
        self.critic = layers([*hidden, 1], kind)
        _shrink(self.actor, 0.01)

    def forward(self, observation: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
        """Logits (n, A) and value (n,)."""
        first = self.first.of_bytes(observation, relu=self.rectify)
        first = first if self.rectify else torch.tanh(first)
        actor, critic = first.split(self.width, dim=1)
        return self.actor(actor), self.critic(critic)[:, 0]

    @torch.no_grad()
    def choose(self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool) -> Choice:
        """An action for every row."""
        observation, mask = self.seen.observation(view)
        logits, value = self(observation)
        n = len(view)
        action, log_prob = np.empty(n, np.int16), np.empty(n, np.float32)
        args = (logits.cpu().numpy(), mask, draw(seed, keys, Purpose.ACT, 0), greedy, action, log_prob)
        self.seen.team.run(sample_mask, n, *args)
        return Choice(action, log_prob, value.cpu().numpy()[:, None], np.zeros(n, np.bool_))


class OptionPolicy(nn.Module):
    """A logit for each described option, and a value from the decision as it stands."""

    def __init__(self, seen: Seen, hidden: list[int]) -> None:
        super().__init__()
        self.seen, self.max_parts = seen, seen.spec.max_parts
        self.first = SparseLayer(seen.spec.features, hidden[0], seen.team)
        self.actor = layers([*hidden, 1], nn.ReLU)
        self.critic_first = SparseLayer(seen.spec.features, hidden[0], seen.team)
        self.critic = layers([*hidden, 1], nn.ReLU)
        _shrink(self.actor, 0.1)

    def logits(self, options: Options) -> Tensor:
        """(N,) for the options of a chunk."""
        return self.actor(self.first.of_options(options, self.max_parts))[:, 0]  # type: ignore[no-any-return]

    def value(self, view: NDArray[np.uint64]) -> Tensor:
        """(n,) for decisions."""
        return self.critic(self.critic_first.of_features(self.seen.state(view)))[:, 0]  # type: ignore[no-any-return]

    @torch.no_grad()
    def choose(self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool) -> Choice:
        """An action for every row."""
        n = len(view)
        action, log_prob, uniform = np.empty(n, np.int16), np.empty(n, np.float32), draw(seed, keys, Purpose.ACT, 0)
        for i, j, options in self.seen.chunks(view):
            chosen = np.empty(j - i, np.int64)
            args = (options.offset, self.logits(options).cpu().numpy(), uniform[i:j], greedy, chosen, log_prob[i:j])
            self.seen.team.run(sample_options, j - i, *args)
            action[i:j] = options.action[chosen]
        return Choice(action, log_prob, self.value(view).cpu().numpy()[:, None], np.zeros(n, np.bool_))


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
        self.first = SparseLayer(seen.spec.features, hidden[0], seen.team)
        self.rest = layers([*hidden, signals], nn.ReLU)
        taste = torch.zeros(signals)
        taste[0] = 1.0
        if signals > 1:
            taste[1] = -caution
        self.register_buffer("taste", taste)
        self.taste: Tensor
        _shrink(self.rest, 0.1)

    def forward(self, rows: Rows) -> Tensor:
        """(n, signals) for chosen options."""
        return self.rest(self.first.of_features(rows))  # type: ignore[no-any-return]

    @torch.no_grad()
    def choose(self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool) -> Choice:
        """The best option for every row, or now and then another one if not `greedy`."""
        n, epsilon = len(view), 0.0 if greedy else self.epsilon
        action, explored = np.empty(n, np.int16), np.empty(n, np.bool_)
        value = np.empty((n, len(self.taste)), np.float32)
        uniform, second = draw(seed, keys, Purpose.EXPLORE, 0), draw(seed, keys, Purpose.EXPLORE, 1)
        for i, j, options in self.seen.chunks(view):
            earned = self.rest(self.first.of_options(options, self.max_parts))  # (N, signals)
            score = (earned @ self.taste).cpu().numpy()
            chosen, best = np.empty(j - i, np.int64), np.empty(j - i, np.int64)
            args = (options.offset, score, uniform[i:j], second[i:j], epsilon, self.temperature, chosen, best)
            self.seen.team.run(explore_options, j - i, *args)
            action[i:j], explored[i:j] = options.action[chosen], chosen != best
            value[i:j] = earned.cpu().numpy()[best]
        return Choice(action, np.zeros(n, np.float32), value, explored)
