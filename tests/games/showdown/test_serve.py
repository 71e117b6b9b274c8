"""`maple showdown serve`: a real server for whoever wants to play on it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest
from websockets.sync.client import connect

from maple.games.showdown.server import LocalServer
from tests.cli.command import maple


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_server_runs_until_it_is_stopped(how: signal.Signals) -> None:
    port = free_port()
    words = [sys.executable, "-m", "maple.cli", "showdown", "serve", "--port", str(port)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # one in the background hands down deaf ears
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    with process as serving:
        try:
            assert serving.stderr is not None
            told = serving.stderr.readline()
            assert f"http://localhost:{port}" in told
            with connect(f"ws://127.0.0.1:{port}/showdown/websocket", compression=None) as guest:
                while not str(guest.recv(timeout=60)).startswith("|challstr|"):
                    pass
            serving.send_signal(how)
            _, rest = serving.communicate(timeout=60)
            assert serving.returncode == 0, rest
        finally:
            serving.kill()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_that_is_taken_is_told_in_a_sentence(server: LocalServer) -> None:
    done = maple("showdown", "serve", "--port", str(server.port))
    assert done.returncode == 2
    assert f"port {server.port} cannot be had on this machine; give another with --port" in " ".join(
        done.stderr.split()
    )
