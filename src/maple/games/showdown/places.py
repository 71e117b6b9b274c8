"""Where servers are and how many battles each is to take, as a user writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from maple.core.errors import GameError

__all__ = ["CAPACITY", "ServerPlace", "parse_servers"]

CAPACITY = 64  # battles at a time, unless it is said
_PLACE = re.compile(
    r"(?:(?P<scheme>wss?)://)?(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+)(?::(?P<port>\d+))?(?:/(?P<room>\d+))?"
)


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """One server."""

    place: str  # HOST:PORT
    url: str  # where clients connect
    capacity: int  # battles at a time


def parse_servers(text: str) -> list[ServerPlace]:
    """`HOST:PORT`, or `HOST:PORT/BATTLES` for how many it takes at a time; several by commas, `wss://` if encrypted."""
    return [_parse(part.strip()) for part in text.split(",") if part.strip()]


def _parse(part: str) -> ServerPlace:
    found = _PLACE.fullmatch(part)
    if found is None or not 0 < int(found["port"] or 8000) < 2**16 or found["room"] == "0":
        raise GameError(f"{part!r} is no server; write HOST:PORT, or HOST:PORT/BATTLES for how many it takes at a time")
    scheme, port = found["scheme"] or "ws", int(found["port"] or (443 if found["scheme"] == "wss" else 8000))
    place = f"{found['host']}:{port}"
    return ServerPlace(place, f"{scheme}://{place}/showdown/websocket", int(found["room"] or CAPACITY))
