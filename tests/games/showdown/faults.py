"""Servers with faults: one that speaks only as much of the protocol as a fault needs, and a relay to a real one."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.client import connect
from websockets.sync.server import Server, ServerConnection, serve

Answer = Callable[["FakeServer", str, str], None]


class _Serving(ABC):
    """A WebSocket server on this machine for as long as the `with` block lasts."""

    _server: Server

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._server.socket.getsockname()[1]}"

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Whether somebody may connect; an answer is a refusal."""
        return None

    @abstractmethod
    def talk(self, connection: ServerConnection) -> None:
        """What to do with a connection."""

    def __enter__(self) -> Self:
        self._server = serve(self.talk, "127.0.0.1", 0, process_request=self.admit, ping_interval=None)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()


class FakeServer(_Serving):
    """Takes names, and leaves every challenge to `answer(server, who, whom)`."""

    def __init__(self, answer: Answer, greets: bool = True, full: bool = False) -> None:
        self.answer, self.greets, self.full = answer, greets, full
        self.users: dict[str, ServerConnection] = {}

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many users\n") if self.full else None

    def talk(self, connection: ServerConnection) -> None:
        if self.greets:
            connection.send("|challstr|4|0123456789abcdef")
        name = ""
        for message in connection:
            words = str(message).removeprefix("|")
            if words.startswith("/trn "):
                name = words[5:].split(",")[0]
                self.users[name] = connection
                connection.send(f"|updateuser| {name}|1|1|{{}}")
            elif words.startswith("/challenge "):
                self.answer(self, name, words[11:].split(",")[0])


def refuse(server: FakeServer, who: str, whom: str) -> None:
    server.users[who].send("|popup|The server is restarting.||Come back later.")


def ignore(server: FakeServer, who: str, whom: str) -> None:
    pass


def begin_and_stop(server: FakeServer, who: str, whom: str) -> None:
    for name in (who, whom):
        server.users[name].send(">battle-gen9randombattle-1\n|init|battle\n|title|a battle that stands still")


class DumbServer:
    """Takes connections and never says a word, not even of WebSocket."""

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"


class Relay(_Serving):
    """Stands before a real server: can cut every line, take only so many, and swallow messages."""

    def __init__(self, url: str, most: int = 1000, swallow: Callable[[str], bool] = lambda _: False) -> None:
        self.url, self.most, self.swallow = url, most, swallow
        self.lines: set[ServerConnection] = set()
        self.refused = 0

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if len(self.lines) < self.most:
            return None
        self.refused += 1
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many users\n")

    def talk(self, connection: ServerConnection) -> None:
        self.lines.add(connection)
        with connect(self.url, ping_interval=None, compression=None, max_size=None) as upstream:

            def down() -> None:
                try:
                    for message in upstream:
                        if not self.swallow(str(message)):
                            connection.send(message)
                except ConnectionClosed:
                    pass
                connection.close()

            threading.Thread(target=down, daemon=True).start()
            try:
                for message in connection:
                    upstream.send(message)
            except ConnectionClosed:
                pass
        self.lines.discard(connection)

    def cut(self) -> None:
        """Cut every line, without a word."""
        for line in list(self.lines):
            with suppress(OSError):  # its user has just left
                line.socket.shutdown(socket.SHUT_RDWR)
