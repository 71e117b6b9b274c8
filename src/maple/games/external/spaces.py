"""Spaces as rows of numbers: how many, of what kind, and how a value is written into its row.

Discrete parts become one-hots. A row is bytes where every part is bytes, bits or one-hots, and floats otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from maple.core.errors import GameError

__all__ = [
    "ACTION_LIMIT",
    "FAILURES",
    "MASK",
    "Actions",
    "ContractError",
    "NothingOpenError",
    "Shape",
    "actions_of",
    "bind",
    "bind_mask",
    "opened",
    "reward_of",
    "shape_of",
]

ACTION_LIMIT = 4096  # combinations of a MultiDiscrete action that are listed one by one
MASK = "action_mask"
FAILURES = (Exception, SystemExit)  # what code of the user's own may raise; sys.exit() ends its game, not the run

Write = Callable[[Any], None]


class ContractError(GameError):
    """An env that did not keep to what it declared."""


class NothingOpenError(ContractError):
    """An env that closed every action."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An observation space as a row."""

    width: int
    is_bytes: bool  # else floats
    energy: float  # what the squares of a typical row add up to
    has_mask: bool = False  # a dict with an action mask beside what is seen


def opened(found: Any) -> tuple[Any, Any]:
    """What reset() gave, as observation and info."""
    if not isinstance(found, tuple) or len(found) != 2:
        what = f"{len(found)} things" if isinstance(found, tuple) else f"a {type(found).__name__} alone"
        raise ContractError(f"gave {what} from reset(), which has to return observation and info")
    return found


def reward_of(value: Any) -> float:
    """A reward as a number; an array of one number is one too."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    try:
        number = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ContractError(f"gave the reward {value!r}, which is no number") from None
    if number.size != 1:
        raise ContractError(f"gave a reward of {number.size} numbers, {value!r}, instead of one")
    if not math.isfinite(number.item()):
        raise ContractError(f"gave the reward {value}")
    return float(number.item())


def shape_of(space: spaces.Space[Any], name: str) -> Shape:
    """The row that an observation space needs."""
    match space:
        case spaces.Discrete():
            return Shape(int(space.n), True, 1.0)
        case spaces.MultiDiscrete():
            return Shape(int(space.nvec.sum()), True, float(space.nvec.size))
        case spaces.MultiBinary():
            return Shape(int(np.prod(space.shape)), True, float(np.prod(space.shape)) / 2)
        case spaces.Box():
            width = int(np.prod(space.shape))
            if space.dtype in (np.uint8, np.bool_):
                high = float(space.high.max()) if width else 0.0
                return Shape(width, True, max(1.0, width * high * high / 3))
            return Shape(width, False, float(max(width, 1)))
        case spaces.Dict() | spaces.Tuple():
            parts = [shape_of(part, name) for _, part in _parts(space)]
            return Shape(
                sum(part.width for part in parts),
                all(part.is_bytes for part in parts),
                sum(part.energy for part in parts),
                isinstance(space, spaces.Dict) and MASK in space.spaces,
            )
    raise GameError(
        f"{name} has observations of {type(space).__name__}; Maple reads Box, Discrete, MultiDiscrete, MultiBinary, "
        "Dict and Tuple: wrap the env so that it gives one of these"
    )


def _parts(space: spaces.Dict | spaces.Tuple[Any]) -> list[tuple[Any, spaces.Space[Any]]]:
    """What a compound space is made of, without the mask."""
    if isinstance(space, spaces.Dict):
        return [(key, part) for key, part in space.spaces.items() if key != MASK]
    return list(enumerate(space.spaces))


def bind(space: spaces.Space[Any], out: NDArray[Any]) -> Write:
    """A function that writes an observation of this space into `out`, always the same row."""
    match space:
        case spaces.Discrete():
            return _bind_one_hot(space, out)
        case spaces.MultiDiscrete():
            return _bind_one_hots(space, out)
        case spaces.Dict() | spaces.Tuple():
            return _bind_parts(space, out)
    return _bind_array(space.shape or (), out)


def _bind_array(shape: tuple[int, ...], out: NDArray[Any]) -> Write:
    room = out.reshape(shape)  # a view: `out` is contiguous

    def write(value: Any) -> None:
        if value.__class__ is not np.ndarray:
            value = np.asarray(value)
        if value.shape != shape:
            raise ContractError(f"gave an observation of shape {value.shape} instead of the declared {shape}")
        room[...] = value

    return write


def _bind_one_hot(space: spaces.Discrete, out: NDArray[Any]) -> Write:
    count, start = int(space.n), int(space.start)

    def write(value: Any) -> None:
        try:
            place = int(value) - start
        except (TypeError, ValueError):
            place = -1
        if not 0 <= place < count:
            raise ContractError(f"gave the observation {value!r}, which is not in the declared {space}")
        out[:] = 0
        out[place] = 1

    return write


def _bind_one_hots(space: spaces.MultiDiscrete, out: NDArray[Any]) -> Write:
    sizes, start = space.nvec.reshape(-1), np.asarray(space.start).reshape(-1)
    begin = np.cumsum(sizes) - sizes

    def write(value: Any) -> None:
        place = np.asarray(value).reshape(-1) - start
        if place.shape != sizes.shape or (place < 0).any() or (place >= sizes).any():
            raise ContractError(f"gave the observation {value!r}, which is not in the declared {space}")
        out[:] = 0
        out[begin + place] = 1

    return write


def _bind_parts(space: spaces.Dict | spaces.Tuple[Any], out: NDArray[Any]) -> Write:
    writes, begin = [], 0
    for key, part in _parts(space):
        width = shape_of(part, "").width
        writes.append((key, bind(part, out[begin : begin + width])))
        begin += width

    def write(value: Any) -> None:
        try:
            for key, write_part in writes:
                write_part(value[key])
        except (KeyError, IndexError, TypeError):
            raise ContractError(
                f"gave an observation without {key!r}, which its {type(space).__name__} declares"
            ) from (None)

    return write


@dataclass(frozen=True, slots=True)
class Actions:
    """An action space as a list of indices."""

    count: int
    choices: list[Any] | None  # what the env is given for each index; None where that is the index itself
    sizes: tuple[int, ...]  # of each part, where an index stands for several choices at once


def actions_of(space: spaces.Space[Any], name: str) -> Actions:
    """The indices of an action space."""
    match space:
        case spaces.Discrete():
            start, count = int(space.start), int(space.n)
            return Actions(count, [start + i for i in range(count)] if start else None, ())
        case spaces.MultiDiscrete() | spaces.MultiBinary():
            sizes, least = _parts_of_action(space)
            count = math.prod(sizes)
            if count > ACTION_LIMIT:
                raise GameError(
                    f"{name} has {count:,} combinations in its {type(space).__name__} actions, and Maple lists up to "
                    f"{ACTION_LIMIT:,}; wrap the env so that it takes one part a step: docs/howto/your-own-env.md has "
                    "the wrapper"
                )
            rows = np.array(list(product(*(range(n) for n in sizes))), np.int64) + least
            return Actions(count, list(rows.reshape(count, *space.shape).astype(space.dtype)), sizes)
    raise GameError(
        f"{name} has {type(space).__name__} actions; Maple plays Discrete, MultiDiscrete and MultiBinary: wrap the env "
        "so that it takes one of these"
    )


def _parts_of_action(
    space: spaces.MultiDiscrete[Any] | spaces.MultiBinary,
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """How many values each part of an action has, and the least of each."""
    if isinstance(space, spaces.MultiBinary):
        parts = int(np.prod(space.shape))
        return (2,) * parts, np.zeros(parts, np.int64)
    return tuple(int(n) for n in space.nvec.reshape(-1)), np.asarray(space.start, np.int64).reshape(-1)


def bind_mask(actions: Actions, out: NDArray[np.bool_]) -> Write:
    """A function that writes an action mask into `out`.

    Where an index stands for several choices, a mask may be over the indices, or over the choices of each part one
    after the other (as sb3-contrib has it), or a tuple of the parts' masks (as Gymnasium samples with).
    """
    count, sizes = actions.count, actions.sizes
    expected = (count,)
    room = out[:count]
    written = room.view(np.uint8).data

    def write(mask: Any) -> None:
        if mask.__class__ is not np.ndarray:
            mask = np.asarray(mask)
        if mask.shape != expected:
            raise ContractError(f"gave an action mask of shape {mask.shape} for {count} actions")
        room[...] = mask
        if written.tobytes().find(1) < 0:  # a tenth of what any() costs
            raise NothingOpenError("left no action open")

    def write_parts(mask: Any) -> None:
        flat = np.concatenate([np.asarray(part).reshape(-1) for part in mask]) if isinstance(mask, tuple) else mask
        flat = np.asarray(flat).reshape(-1)
        if len(flat) != sum(sizes):
            write(flat)
            return
        open_to = np.ones(1, np.bool_)
        for part in np.split(flat != 0, np.cumsum(sizes)[:-1]):
            open_to = (open_to[:, None] & part).reshape(-1)
        write(open_to)

    return write_parts if len(sizes) > 1 else write
