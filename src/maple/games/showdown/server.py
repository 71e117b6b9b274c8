"""A real Showdown server from the installed package, on this machine alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import TracebackType

from maple.games.showdown.runtime import NodeError, find_node, installed_modules

__all__ = ["LocalServer"]

START_S = 60.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        if sys.platform != "win32":  # a server that ended a moment ago is no hindrance
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class LocalServer:
    """A server for as long as the `with` block lasts, at a port of its own or a given one."""

    def __init__(self, port: int | None = None) -> None:
        self.port = _free_port() if port is None else port

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"ws://127.0.0.1:{self.port}/showdown/websocket"

    def __enter__(self) -> LocalServer:
        package = installed_modules() / "node_modules" / "pokemon-showdown"
        if not _is_free(self.port):
            raise NodeError(f"port {self.port} cannot be had on this machine; give another with --port")
        words = [find_node(), "pokemon-showdown", "start", "--no-security", "--skip-build", str(self.port)]
        self._log = tempfile.TemporaryFile()
        self._server = subprocess.Popen(
            words, cwd=package, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True
        )
        try:
            if self._answers():
                return self
        except BaseException:  # a Ctrl-C too must not leave it behind
            self.__exit__(None, None, None)
            raise
        words_left = self._last_words()
        self.__exit__(None, None, None)
        raise NodeError(f"the local Showdown server did not start: {words_left}")

    def wait(self) -> None:
        """Wait for it to end, which it does not do by itself."""
        code = self._server.wait()
        raise NodeError(f"the local Showdown server ended with {code}: {self._last_words()}")

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-500:].decode(errors="replace").strip() or "no message"

    def _answers(self) -> bool:
        """Wait until it does; False where it ended, or the time is up."""
        until = time.monotonic() + START_S
        while time.monotonic() < until and self._server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.2)
        return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server.poll() is None:
            if sys.platform == "win32":
                self._server.kill()
            else:
                os.killpg(self._server.pid, signal.SIGKILL)  # the server and the processes it started
            self._server.wait()
        self._log.close()
