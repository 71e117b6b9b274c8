"""What the bridge refuses to play, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from maple.core.errors import nearest

__all__ = ["explain"]

SHOWN = 3  # of a team's problems


def explain(failure: Mapping[str, Any]) -> str:
    """One sentence for a failure that the bridge reports of its rules."""
    return _SENTENCES[str(failure["kind"])](failure)


def _format(failure: Mapping[str, Any]) -> str:
    return f"there is no format {failure['format']!r} for singles; {nearest(failure['format'], failure['known'])}"


def _teamless(failure: Mapping[str, Any]) -> str:
    return f"{failure['format']} is played with teams of one's own; give it some with --set game.team=FILE"


def _generated(failure: Mapping[str, Any]) -> str:
    return f"{failure['format']} makes its own teams; leave game.team={failure['file']} out"


def _team(failure: Mapping[str, Any]) -> str:
    problems = failure["problems"]
    more = f" (and {len(problems) - SHOWN} more)" if len(problems) > SHOWN else ""
    words = " ".join(problems[:SHOWN])
    which = f"{failure['title']!r} in {failure['file']}" if failure["title"] else failure["file"]
    return f"{which} is no team for {failure['format']}: {words}{more} Mend it there"


def _server(failure: Mapping[str, Any]) -> str:
    reason = str(failure["reason"]).rstrip(".")
    return f"the server at {failure['server']} cannot be played on: {reason}; start it, or give another"


def _capacity(failure: Mapping[str, Any]) -> str:
    return (
        f"{failure['tables']} battles at a time are too many for servers that take {failure['capacity']}; "
        f"play at --set tables={failure['capacity']}, or give servers more room, as in HOST:PORT/{failure['tables']}"
    )


def _hosting(failure: Mapping[str, Any]) -> str:
    return (
        f"{failure['tables']} battles at a time are too many for a server that takes {failure['capacity']}; "
        f"play with --at-a-time {failure['capacity']}, or give it more room: --server HOST:PORT/{failure['tables']}"
    )


_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "format": _format,
    "teamless": _teamless,
    "generated": _generated,
    "team": _team,
    "server": _server,
    "capacity": _capacity,
    "hosting": _hosting,
}
