"""Mirrors: what is copied, what an outage costs, and that nobody ever fetches half a checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maple.core.errors import ConfigError
from maple.runs.storage import Mirror, Place, fetch_run, open_place


def _save(run: Path, step: int, size: int = 2000) -> Path:
    folder = run / "checkpoints" / f"{step:012d}"
    folder.mkdir(parents=True)
    sums = {}
    for name in ("weights.safetensors", "state.safetensors"):
        content = os.urandom(size)
        (folder / name).write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    (folder / "checkpoint.json").write_text(json.dumps({"step": step, "sha256": sums}))
    with (run / "events.jsonl").open("a") as events:
        events.write(f'{{"steps": {step}}}\n')
    return folder


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.01)


def _mirror(run: Path, place: Place, told: list[str]) -> Mirror:
    return Mirror(run, place, told.append, first_wait_s=0.02, records_every_s=0.05)


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file://{tmp_path}/there" if request.param == "file" else f"memory://{tmp_path.name}/there"


def test_a_run_is_copied_and_fetched(url: str, tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    _save(run, 100)
    mirror = _mirror(run, open_place(url), told)
    newest = _save(run, 200)
    mirror.changed()
    assert mirror.close()
    assert told == []
    fetched = tmp_path / "elsewhere"
    assert fetch_run(open_place(url), fetched) == 200
    for path in newest.iterdir():
        assert (fetched / "checkpoints" / newest.name / path.name).read_bytes() == path.read_bytes()
    assert (fetched / "events.jsonl").read_text() == (run / "events.jsonl").read_text()


def test_what_the_run_drops_is_dropped_there(url: str, tmp_path: Path) -> None:
    run, place = tmp_path / "here", open_place(url)
    old = _save(run, 100)
    mirror = _mirror(run, place, [])
    _until(lambda: place.has("checkpoints/000000000100/checkpoint.json"))
    _save(run, 200)
    for path in old.iterdir():
        path.unlink()
    old.rmdir()
    mirror.changed()
    assert mirror.close()
    assert place.names("checkpoints") == ["000000000200"]


def test_half_a_checkpoint_is_never_fetched(url: str, tmp_path: Path) -> None:
    run, place = tmp_path / "here", open_place(url)
    _save(run, 100)
    _save(run, 200)
    assert _mirror(run, place, []).close()
    place.put(run / "events.jsonl", "checkpoints/000000000200/state.safetensors")  # not what its checksum says
    place.put(run / "events.jsonl", "checkpoints/000000000300/weights.safetensors")  # no checkpoint.json yet
    assert fetch_run(place, tmp_path / "elsewhere") == 100
    assert fetch_run(open_place(url + "/nothing"), tmp_path / "nowhere") is None
    assert not (tmp_path / "nowhere").exists()


class _Flaky(Place):
    """A place that fails while it is told to."""

    down = True
    asked = 0

    def put(self, local: Path, name: str) -> None:
        self.asked += 1
        if self.down:
            raise ConnectionResetError("connection reset by peer")
        super().put(local, name)


def test_an_outage_is_told_of_and_caught_up_with(tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    real = open_place(f"file://{tmp_path}/there")
    place = _Flaky(real._fs, real._root, real.shown)
    for step in range(100, 600, 100):
        _save(run, step)
    mirror = _mirror(run, place, told)
    began = time.monotonic()
    for _ in range(1000):
        mirror.changed()  # what training does, however often
    assert time.monotonic() - began < 5
    _until(lambda: mirror.failures >= 3)
    assert len(told) == 1
    assert "training goes on" in told[0]
    place.down = False
    mirror.changed()
    _until(lambda: mirror.behind == 0)
    assert mirror.close()
    assert len(told) == 2
    assert "answers again" in told[1]
    assert fetch_run(real, tmp_path / "elsewhere") == 500


def test_an_end_during_an_outage_says_what_is_left(tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    real = open_place(f"file://{tmp_path}/there")
    _save(run, 100)
    mirror = _mirror(run, _Flaky(real._fs, real._root, real.shown), told)
    assert not mirror.close()
    assert "files of the run are not in" in told[-1]
    again = _mirror(run, real, told)  # the next start
    assert again.close()
    assert fetch_run(real, tmp_path / "elsewhere") == 100


@pytest.mark.parametrize(
    ("address", "sentence"),
    [("pigeon://coop/run", "no storage of scheme 'pigeon'"), ("s3://key:secret@bucket/x", "must not hold a password")],
)
def test_bad_addresses_get_a_sentence(address: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        open_place(address)
    assert "secret" not in str(caught.value)


class _Proxy(threading.Thread):
    """Passes bytes on to a server, except that every connection counted in `cut` is dropped after a moment."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._to, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut, self.connections = 0, 0

    def run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.connections <= self.cut:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._to))
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(a, b), daemon=True).start()

    @staticmethod
    def _pass_on(a: socket.socket, b: socket.socket) -> None:
        try:
            while content := a.recv(65536):
                b.sendall(content)
        except OSError:
            pass
        finally:
            a.close()
            b.close()

    def end(self) -> None:
        self._listener.close()


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
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("runs")
    s3fs.S3FileSystem.clear_instance_cache()
    yield proxy
    proxy.end()
    server.stop()


def test_a_real_s3_server_behind_a_bad_line(s3: _Proxy, tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    _save(run, 100, size=200_000)
    _save(run, 200, size=200_000)
    s3.connections, s3.cut = 0, 4
    mirror = _mirror(run, open_place("s3://runs/mine"), told)
    _until(lambda: mirror.behind == 0, 60)
    assert mirror.close()
    assert s3.connections > 4
    assert fetch_run(open_place("s3://runs/mine"), tmp_path / "elsewhere") == 200


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
    _save(run, 100, size=200_000)
    newest = _save(run, 200, size=200_000)
    gcs.connections, gcs.cut = 0, 3
    mirror = _mirror(run, open_place("gs://runs/mine"), told)
    _until(lambda: mirror.behind == 0, 60)
    assert mirror.close()
    assert gcs.connections > 3
    fetched = tmp_path / "elsewhere"
    assert fetch_run(open_place("gs://runs/mine"), fetched) == 200
    for path in newest.iterdir():
        assert (fetched / "checkpoints" / newest.name / path.name).read_bytes() == path.read_bytes()
