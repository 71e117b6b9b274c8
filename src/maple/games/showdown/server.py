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


class LocalServer:
    """A server for as long as the `with` block lasts."""

    def __init__(self) -> None:
        self.port = _free_port()

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"ws://127.0.0.1:{self.port}/showdown/websocket"

    def __enter__(self) -> LocalServer:
        package = installed_modules() / "node_modules" / "pokemon-showdown"
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
        self._log.seek(0)
        words_left = self._log.read()[-500:].decode(errors="replace").strip()
        self.__exit__(None, None, None)
        raise NodeError(f"the local Showdown server did not start: {words_left or 'no message'}")

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
