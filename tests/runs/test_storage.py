"""Mirrors: what is copied, what an outage costs, and that nobody ever fetches half a checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from maple.core.errors import ConfigError, RunError
from maple.runs.storage import Mirror, Place, bring_run, fetch_run, open_place


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


def _keep(run: Path, name: str, result: float) -> None:
    """Weights that a run keeps: its best or a milestone."""
    folder, content = run / "checkpoints" / name, os.urandom(500)
    folder.mkdir(parents=True)
    (folder / "weights.safetensors").write_bytes(content)
    sums = {"weights.safetensors": hashlib.sha256(content).hexdigest()}
    (folder / "checkpoint.json").write_text(json.dumps({"step": 50, "result": result, "sha256": sums}))


def test_all_that_a_run_keeps_comes_with_it(url: str, tmp_path: Path) -> None:
    run, place = tmp_path / "here", open_place(url)
    _save(run, 100)
    _keep(run, "best", 7.5)
    _keep(run, "milestones/000000000050", 0.0)
    for name in ("run.log", "rewards.jsonl", "profiles/profile.json", "tensorboard/events.out.tfevents.1"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(name)
    for name in (".lock", "replay.views", "config.json.part"):
        (run / name).write_text("of this machine alone")
    assert _mirror(run, place, []).close()
    fetched = tmp_path / "elsewhere"
    assert fetch_run(place, fetched) == 100
    there = {path.relative_to(fetched).as_posix() for path in fetched.rglob("*") if path.is_file()}
    here = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert here - there == {".lock", "replay.views", "config.json.part"}
    assert json.loads((fetched / "checkpoints" / "best" / "checkpoint.json").read_text())["result"] == 7.5


def test_a_run_that_is_further_elsewhere_goes_on_from_there(url: str, tmp_path: Path) -> None:
    run, place, told = tmp_path / "here", open_place(url), list[str]()
    _save(run, 100)
    _save(run, 200)
    assert _mirror(run, place, []).close()
    behind = tmp_path / "behind"
    _save(behind, 100)
    assert bring_run(place, behind, told.append) == 200
    assert (behind / "checkpoints" / "000000000200" / "checkpoint.json").is_file()
    _save(behind, 300)
    assert bring_run(place, behind, told.append) is None
    assert told == []


class _Failing(Place):
    """A place that answers only so many times."""

    left = 0

    def get(self, name: str) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise ConnectionResetError("connection reset by peer")
        return super().get(name)


def test_a_fetch_that_was_cut_off_anywhere_is_made_again(tmp_path: Path) -> None:
    run, real = tmp_path / "here", open_place(f"file://{tmp_path}/there")
    _save(run, 100)
    _keep(run, "best", 7.5)
    assert _mirror(run, real, []).close()
    place, fetched = _Failing(real._fs, real._root, real.shown), tmp_path / "elsewhere"
    for answers in range(6):
        place.left = answers
        with pytest.raises(RunError, match="not known whether the run was begun there"):
            bring_run(place, fetched, lambda _: None)
        assert not any((fetched / "checkpoints").glob("[0-9]*"))
    place.left = 6
    assert bring_run(place, fetched, lambda _: None) == 100
    assert (fetched / "events.jsonl").read_text() == (run / "events.jsonl").read_text()
    assert not list(fetched.rglob(".*"))


def test_a_place_that_does_not_answer_stops_no_run_that_is_here(tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    _save(run, 100)
    real = open_place(f"file://{tmp_path}/there")
    _save(tmp_path / "there", 200)
    assert bring_run(_Failing(real._fs, real._root, real.shown), run, told.append) is None
    assert len(told) == 1
    assert "the run goes on from what is here" in told[0]


def test_what_lies_elsewhere_cannot_name_files_outside_the_run(tmp_path: Path) -> None:
    there = _save(tmp_path / "there", 100)
    meta = json.loads((there / "checkpoint.json").read_text())
    (tmp_path / "there" / "checkpoints" / "outside").write_bytes(b"")
    meta["sha256"]["../outside"] = hashlib.sha256(b"").hexdigest()
    (there / "checkpoint.json").write_text(json.dumps(meta))
    fetch_run(open_place(f"file://{tmp_path}/there"), tmp_path / "here")
    assert not (tmp_path / "here" / "checkpoints" / "outside").exists()


def test_credentials_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "averysecretkey/withaslash")

    class Talkative(Place):
        def names(self, _: str) -> list[str]:
            raise PermissionError("averysecretkey/withaslash does not open this bucket")

    real = open_place(f"file://{tmp_path}/there")
    with pytest.raises(RunError, match=r"PermissionError: \[hidden\] does not open this bucket"):
        bring_run(Talkative(real._fs, real._root, real.shown), tmp_path / "here", lambda _: None)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("pigeon://coop/run", "no storage of scheme 'pigeon'"),
        ("s3://key:secret@bucket/x", "must hold no password"),
        ("simplecache::s3://key:secret@bucket/x", "must hold no password"),
        ("az://box/x?sig=secret", "must hold no password"),
    ],
)
def test_bad_addresses_get_a_sentence(address: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        open_place(address)
    assert "secret" not in str(caught.value)


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
    _save(run, 100, size=200_000)
    _save(run, 200, size=200_000)
    s3.troubles = [*TROUBLES]
    mirror = _mirror(run, open_place("s3://runs/mine"), told)
    _until(lambda: mirror.behind == 0, 60)
    assert mirror.close()
    assert s3.troubles == []
    assert fetch_run(open_place("s3://runs/mine"), tmp_path / "elsewhere") == 200


def test_a_real_s3_server_that_knows_nobody_of_that_name(s3: _Proxy, tmp_path: Path) -> None:
    _look_at_credentials(s3, after="0")
    with pytest.raises(RunError, match=r"cannot read s3://runs/mine \(PermissionError: .*check the address, the cred"):
        bring_run(open_place("s3://runs/mine"), tmp_path / "here", lambda _: None)
    assert not (tmp_path / "here").exists()
    told = list[str]()
    _save(tmp_path / "here", 100)
    mirror = _mirror(tmp_path / "here", open_place("s3://runs/mine"), told)
    _until(lambda: mirror.failures >= 1)
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
    _save(run, 100, size=200_000)
    newest = _save(run, 200, size=200_000)
    gcs.troubles = [*TROUBLES]
    mirror = _mirror(run, open_place("gs://runs/mine"), told)
    _until(lambda: mirror.behind == 0, 60)
    assert mirror.close()
    assert gcs.troubles == []
    fetched = tmp_path / "elsewhere"
    assert fetch_run(open_place("gs://runs/mine"), fetched) == 200
    for path in newest.iterdir():
        assert (fetched / "checkpoints" / newest.name / path.name).read_bytes() == path.read_bytes()
