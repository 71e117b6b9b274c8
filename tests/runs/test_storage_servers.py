"""Mirrors on real servers that run here, behind a line that is slow, is cut and answers with errors."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from maple.core.errors import RunError
from maple.runs.place import open_place
from maple.runs.storage import bring_run, fetch_run
from tests.runs.mirroring import begin_mirror, save_checkpoint, wait_until


class _Proxy(threading.Thread):
    """Passes bytes on to a server, except that the next connections have the `troubles` that they are given.

    "cut" drops a connection at once, "half" after some of the bytes that go to the server, "error" answers as a server
    does that has too much to do, and "slow" makes every piece wait.
    """

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._to, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.troubles: list[str] = []

    def run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            trouble = self.troubles.pop(0) if self.troubles else ""
            if trouble == "cut":
                client.close()
                continue
            if trouble == "error":
                threading.Thread(target=self._refuse, args=(client,), daemon=True).start()
                continue
            server = socket.create_connection(("127.0.0.1", self._to))
            for a, b, bound in ((client, server, 20_000 if trouble == "half" else None), (server, client, None)):
                wait_s = 0.05 if trouble == "slow" else 0.0
                threading.Thread(target=self._pass_on, args=(a, b, bound, wait_s), daemon=True).start()

    @staticmethod
    def _refuse(client: socket.socket) -> None:
        with client:
            client.recv(65536)
            client.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    @staticmethod
    def _pass_on(a: socket.socket, b: socket.socket, bound: int | None, wait_s: float) -> None:
        passed = 0
        try:
            while content := a.recv(65536):
                time.sleep(wait_s)
                passed += len(content)
                if bound is not None and passed > bound:
                    return
                b.sendall(content)
        except OSError:
            pass
        finally:
            a.close()
            b.close()

    def end(self) -> None:
        self._listener.close()


TROUBLES = ("slow", "cut", "error", "half", "cut", "slow")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Proxy]:
    """An S3 server on this machine, behind a line that can be cut."""
    moto: Any = pytest.importorskip("moto.server", reason="moto is not installed; make setup installs it")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    proxy = _Proxy(server.get_host_and_port()[1])
    proxy.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()
    S3FileSystem().makedirs("runs", exist_ok=True)
    S3FileSystem.clear_instance_cache()
    yield proxy
    S3FileSystem.clear_instance_cache()
    proxy.end()
    server.stop()


def test_a_real_s3_server_behind_a_bad_line(s3: _Proxy, tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    save_checkpoint(run, 100, size=200_000)
    save_checkpoint(run, 200, size=200_000)
    s3.troubles = [*TROUBLES]
    mirror = begin_mirror(run, open_place("s3://runs/mine"), told)
    wait_until(lambda: mirror.behind == 0, 60)
    assert mirror.close()
    assert s3.troubles == []
    assert fetch_run(open_place("s3://runs/mine"), tmp_path / "elsewhere") == 200


def test_a_real_s3_server_that_knows_nobody_of_that_name(s3: _Proxy, tmp_path: Path) -> None:
    _look_at_credentials(s3, after="0")
    with pytest.raises(RunError, match=r"cannot read s3://runs/mine \(PermissionError: .*check the address, the cred"):
        bring_run(open_place("s3://runs/mine"), tmp_path / "here", lambda _: None)
    assert not (tmp_path / "here").exists()
    told = list[str]()
    save_checkpoint(tmp_path / "here", 100)
    mirror = begin_mirror(tmp_path / "here", open_place("s3://runs/mine"), told)
    wait_until(lambda: mirror.failures >= 1)
    assert not mirror.close()
    _look_at_credentials(s3, after="inf")  # the server's memory outlives it
    assert "cannot copy to s3://runs/mine (PermissionError" in told[0]


def _look_at_credentials(s3: _Proxy, after: str) -> None:
    line = HTTPConnection("127.0.0.1", s3.port)
    line.request("POST", "/moto-api/reset-auth", body=after)
    assert line.getresponse().status == 200


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Proxy]:
    """A Google Cloud Storage emulator on this machine, behind a line that can be cut."""
    emulator: Any = pytest.importorskip(
        "gcp_storage_emulator.server", reason="gcp-storage-emulator is not installed; make setup installs it"
    )
    import fsspec
    from gcsfs.core import GCSFileSystem  # without the look at the kind of bucket, which the emulator cannot answer

    port = _free_port()
    # Its own server takes one connection at a time, and waits for ever for one that says nothing.
    monkeypatch.setattr(emulator.server, "HTTPServer", emulator.server.ThreadingHTTPServer)
    server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="runs")
    server.start()
    proxy = _Proxy(port)
    proxy.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{proxy.port}")
    for protocol in ("gs", "gcs"):
        fsspec.register_implementation(protocol, GCSFileSystem, clobber=True)
    GCSFileSystem.clear_instance_cache()
    yield proxy
    GCSFileSystem.clear_instance_cache()
    proxy.end()
    server.stop()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_gcs_emulator_behind_a_bad_line(gcs: _Proxy, tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    save_checkpoint(run, 100, size=200_000)
    newest = save_checkpoint(run, 200, size=200_000)
    gcs.troubles = [*TROUBLES]
    mirror = begin_mirror(run, open_place("gs://runs/mine"), told)
    wait_until(lambda: mirror.behind == 0, 60)
    assert mirror.close()
    assert gcs.troubles == []
    fetched = tmp_path / "elsewhere"
    assert fetch_run(open_place("gs://runs/mine"), fetched) == 200
    for path in newest.iterdir():
        assert (fetched / "checkpoints" / newest.name / path.name).read_bytes() == path.read_bytes()
