"""Everything that Maple raises on purpose.

MapleError
├── UserError            a mistake that the user can mend: one sentence, exit code 2, nothing half-written
│   ├── ConfigError      an unknown or impossible setting
│   ├── GameError        an unknown game, seat count or game option
│   ├── CheckpointError  a checkpoint that is damaged, or of another game or version
│   ├── RunError         a run folder that is missing, in use or not writable
│   └── ActionError      an action that the mask forbids
└── MissingExtraError    an optional dependency that is not installed
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "ActionError",
    "CheckpointError",
    "ConfigError",
    "GameError",
    "MapleError",
    "MissingExtraError",
    "RunError",
    "UserError",
    "nearest",
]


class MapleError(Exception):
    """The base of all errors that Maple raises on purpose."""


class UserError(MapleError):
    """A mistake that the user can mend; the message says what, where and what to do."""


class ConfigError(UserError):
    """An unknown or impossible setting."""


class GameError(UserError):
    """An unknown game, seat count or game option."""


class CheckpointError(UserError):
    """A checkpoint that cannot be used."""


class RunError(UserError):
    """A run folder that cannot be used."""


class ActionError(UserError):
    """An action that is not legal where it was played."""


class MissingExtraError(MapleError):
    """An optional dependency that is not installed."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt word: its nearest neighbours, or all there is."""
    names = sorted(known)
    close = get_close_matches(word, names, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(repr(name) for name in close)}?" if close else f"known: {', '.join(names)}"
