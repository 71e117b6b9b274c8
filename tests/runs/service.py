"""A service that messages are sent to, as well-behaved as a test wants it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SILENT = -1


class Service(ThreadingHTTPServer):
    """Answers with the statuses it was told, then as usual; 0 cuts the line, SILENT keeps it and says nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.usual = 200
        self.tries = 0
        self.got: list[dict[str, str]] = []
        self.over = threading.Event()

    def address(self, more: str = "") -> str:
        """Where it is, with secrets in it."""
        return f"json://user:verysecretword@127.0.0.1:{self.server_address[1]}/hooktoken12345{more}"

    def handle_error(self, *_: object) -> None:
        """A connection that was cut is no error here."""


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tries += 1
        status = self.server.answers.pop(0) if self.server.answers else self.server.usual
        if status == SILENT:
            self.server.over.wait(60)
        if status <= 0:
            self.connection.close()
            return
        if status == 200:
            self.server.got.append(content)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextmanager
def running_service() -> Iterator[Service]:
    """A service while it is needed."""
    server = Service()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
