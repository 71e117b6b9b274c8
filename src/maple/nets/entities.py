"""Attention over the entities of an observation, and actions that point at them.

A token for the globals, which are never absent, and one for each entity. Tokens have no positions: the order of a
group's rows changes nothing but the order of the actions that point at them, unless the game says that its rows are
ordered.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from maple.core.spec import EntityGroup, GameSpec

__all__ = ["Attention", "EntityTrunk", "PointerHead", "Tokens"]


@dataclass(frozen=True, slots=True)
class Attention:
    """How large it is."""

    width: int  # of a token
    heads: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """What became of each entity, in the order of the groups."""

    of: Tensor  # (n, E, D)
    present: Tensor  # (n, E)


class _Block(nn.Module):
    """Attention and a dense layer, each on normalised tokens and added to them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor, present: Tensor) -> Tensor:
        """tokens (n, T, D); absent ones (n, T) are attended to by none."""
        n, count, width = tokens.shape
        split = self.inward(self.before(tokens)).view(n, count, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)  # (n, heads, T, D / heads) each
        seen = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=present[:, None, None, :])
        tokens = tokens + self.outward(seen.transpose(1, 2).reshape(n, count, width))
        return tokens + self.dense(self.between(tokens))  # type: ignore[no-any-return]


class EntityTrunk(nn.Module):
    """From observations to one row of numbers each and a token for each entity.

    There are always two tokens or more. Where all entities are absent, the globals' token attends to itself, and zeros
    take the place of the entities' mean.
    """

    def __init__(self, spec: GameSpec, out: int, size: Attention) -> None:
        super().__init__()
        self.groups, width = spec.entities, size.width
        covered = {column for group in self.groups for column in range(group.begin, group.end)}
        rest = [column for column in range(spec.observation) if column not in covered]
        self.register_buffer("rest", torch.tensor(rest, dtype=torch.int64), persistent=False)
        self.rest: Tensor
        self.of_rest = nn.Linear(len(rest), width) if rest else None
        self.start = nn.Parameter(torch.zeros(width))  # the globals' token where there are none
        self.of_group = nn.ModuleList(nn.Linear(group.width, width) for group in self.groups)
        self.of_place = nn.ParameterDict(
            {group.name: nn.Parameter(0.1 * torch.randn(group.count, width)) for group in self.groups if group.ordered}
        )
        self.blocks = nn.ModuleList(_Block(width, size.heads) for _ in range(size.blocks))
        self.last = nn.LayerNorm(width)
        self.out = nn.Linear(2 * width, out)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tokens]:
        """(n, out) of observations (n, O), before an activation, and the tokens."""
        n = observation.shape[0]  # len() would be a plain number, to which an exported file would be bound
        rows = [observation[:, g.begin : g.end].reshape(n, g.count, g.width) for g in self.groups]
        present = torch.cat([_present(part, g) for part, g in zip(rows, self.groups, strict=True)], dim=1)
        made = [layer(part) for layer, part in zip(self.of_group, rows, strict=True)]
        made = [x + self.of_place[g.name] if g.ordered else x for x, g in zip(made, self.groups, strict=True)]
        entities = torch.cat(made, dim=1)
        start = self.start.expand(n, -1)
        if self.of_rest is not None:
            start = start + self.of_rest(observation[:, self.rest])
        tokens = torch.cat([start[:, None], entities], dim=1)
        there = torch.cat([present.new_ones(n, 1), present], dim=1)
        for block in self.blocks:
            tokens = block(tokens, there)
        tokens = self.last(tokens)
        entities = tokens[:, 1:]
        weight = present[:, :, None].to(tokens.dtype)
        mean = (entities * weight).sum(1) / weight.sum(1).clamp(min=1.0)
        return self.out(torch.cat([tokens[:, 0], mean], dim=1)), Tokens(entities, present)


class PointerHead(nn.Module):
    """Logits of actions: those about an entity from its token, all others from a plain last layer, or 0 without one.

    With `atoms` of them, an action has so many numbers, each with a query of its own; `linear` is what layers are.
    """

    def __init__(
        self,
        spec: GameSpec,
        inputs: int,
        width: int,
        *,
        plain: bool = True,
        atoms: int = 1,
        linear: type[nn.Linear] = nn.Linear,
    ) -> None:
        super().__init__()
        pointing = [group for group in spec.entities if group.actions]
        pointed = [action for group in pointing for action in group.pointing]
        rest = sorted(set(range(spec.actions)) - set(pointed))
        order = torch.tensor([*pointed, *rest]).argsort()  # where each action's logit is among those worked out
        self.register_buffer("order", order, persistent=False)
        self.order: Tensor
        self.places = _places(spec.entities)
        self.actions, self.others, self.atoms, self.width = spec.actions, len(rest), atoms, width
        self.plain = _faint(linear(inputs, len(rest) * atoms)) if rest and plain else None
        self.query = nn.ModuleDict({g.name: _faint(linear(inputs, len(g.actions) * atoms * width)) for g in pointing})

    def forward(self, x: Tensor, tokens: Tokens) -> Tensor:
        """(n, A × atoms), an action's together, from x (n, inputs) and the tokens of the same rows."""
        n, parts = x.shape[0], []
        for name, query in self.query.items():
            asked = query(x).view(n, -1, self.width)  # (n, blocks × atoms, D)
            met = asked @ tokens.of[:, self.places[name]].transpose(1, 2)  # (n, blocks × atoms, count)
            met = met.unflatten(1, (-1, self.atoms)).transpose(2, 3)  # (n, blocks, count, atoms)
            parts.append(met.flatten(1, 2) / self.width**0.5)
        others = x.new_zeros(n, self.others * self.atoms) if self.plain is None else self.plain(x)
        parts.append(others.view(n, self.others, self.atoms))
        return torch.cat(parts, dim=1)[:, self.order].flatten(1)


def _present(rows: Tensor, group: EntityGroup) -> Tensor:
    """(n, count) which of a group's rows (n, count, width) are no padding."""
    if group.present is None:
        return torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
    return rows[:, :, group.present] != 0


def _faint(layer: nn.Linear) -> nn.Linear:
    """The layer with small weights, so that it starts without opinions."""
    with torch.no_grad():
        layer.weight.mul_(0.01)
    return layer


def _places(groups: tuple[EntityGroup, ...]) -> dict[str, slice]:
    """Where each group's tokens are."""
    places, begin = {}, 0
    for group in groups:
        places[group.name] = slice(begin, begin + group.count)
        begin += group.count
    return places
