"""Mirrors: what is copied, what an outage costs, and that nobody ever fetches half a checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from maple.core.errors import ConfigError, RunError
from maple.runs.place import Place, open_place
from maple.runs.storage import HURRIED_S, LEAVE_S, Mirror, bring_run, fetch_run, mirrored, stored_settings
from tests.runs.mirroring import begin_mirror, save_checkpoint, wait_until


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file://{tmp_path}/there" if request.param == "file" else f"memory://{tmp_path.name}/there"


def test_a_run_is_copied_and_fetched(url: str, tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    save_checkpoint(run, 100)
    mirror = begin_mirror(run, open_place(url), told)
    newest = save_checkpoint(run, 200)
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
    old = save_checkpoint(run, 100)
    mirror = begin_mirror(run, place, [])
    wait_until(lambda: place.has("checkpoints/000000000100/checkpoint.json"))
    save_checkpoint(run, 200)
    for path in old.iterdir():
        path.unlink()
    old.rmdir()
    mirror.changed()
    assert mirror.close()
    assert place.names("checkpoints") == ["000000000200"]


def test_what_another_machine_has_newer_is_not_dropped_there(url: str, tmp_path: Path) -> None:
    run, place = tmp_path / "here", open_place(url)
    for step in (100, 200):
        save_checkpoint(run, step)
    (run / "checkpoints" / "000000000100").rename(run / "checkpoints" / "000000000100.damaged")
    for step in (100, 300):
        there = save_checkpoint(tmp_path / "another", step)
        place.put(there / "checkpoint.json", f"checkpoints/{there.name}/checkpoint.json")
    assert begin_mirror(run, place, []).close()
    assert place.names("checkpoints") == ["000000000200", "000000000300"]


def test_half_a_checkpoint_is_never_fetched(url: str, tmp_path: Path) -> None:
    run, place = tmp_path / "here", open_place(url)
    save_checkpoint(run, 100)
    save_checkpoint(run, 200)
    assert begin_mirror(run, place, []).close()
    place.put(run / "events.jsonl", "checkpoints/000000000200/state.safetensors")  # not what its checksum says
    place.put(run / "events.jsonl", "checkpoints/000000000300/weights.safetensors")  # no checkpoint.json yet
    place.put(run / "checkpoints" / "000000000200" / "checkpoint.json", "checkpoints/000000000400/checkpoint.json")
    assert fetch_run(place, tmp_path / "elsewhere") == 100  # of the newest one, the files it names are gone
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
        save_checkpoint(run, step)
    mirror = begin_mirror(run, place, told)
    began = time.monotonic()
    for _ in range(1000):
        mirror.changed()  # what training does, however often
    assert time.monotonic() - began < 5
    wait_until(lambda: mirror.failures >= 3)
    assert len(told) == 1
    assert "training goes on" in told[0]
    place.down = False
    mirror.changed()
    wait_until(lambda: mirror.behind == 0)
    assert mirror.close()
    assert len(told) == 2
    assert "answers again" in told[1]
    assert fetch_run(real, tmp_path / "elsewhere") == 500


def test_a_checkpoint_that_arrives_changed_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, place, told = tmp_path / "here", open_place(f"memory://{tmp_path.name}/there"), list[str]()
    send, wrong = place._fs.pipe_file, list[str]()

    def one_byte_wrong(path: str, content: bytes) -> None:
        if not wrong:
            wrong.append(path)
            content = bytes([content[0] ^ 1]) + content[1:]
        send(path, content)

    monkeypatch.setattr(place._fs, "pipe_file", one_byte_wrong)
    newest = save_checkpoint(run, 100)
    mirror = begin_mirror(run, place, told)
    wait_until(lambda: mirror.failures >= 1)
    wait_until(lambda: mirror.behind == 0)
    assert mirror.close()
    assert wrong
    assert "did not arrive whole" in told[0]
    for path in newest.iterdir():
        assert place.get(f"checkpoints/{newest.name}/{path.name}") == path.read_bytes()


class _Told(Place):
    """A place that remembers what it was given, and does something before."""

    def remember(self, before: Callable[[str], None] = lambda _: None) -> list[str]:
        self.before, self.given = before, list[str]()
        return self.given

    def put(self, local: Path, name: str) -> None:
        self.before(name)
        super().put(local, name)
        self.given.append(name)


def test_a_large_record_is_copied_again_when_it_has_grown_by_a_tenth(tmp_path: Path) -> None:
    run, real = tmp_path / "here", open_place(f"file://{tmp_path}/there")
    place = _Told(real._fs, real._root, real.shown)
    given = place.remember()
    save_checkpoint(run, 100)
    (run / "events.jsonl").write_bytes(b"x" * 2**21)
    mirror = begin_mirror(run, place, [])
    wait_until(lambda: mirror.behind == 0)

    def grow(size: int) -> None:
        with (run / "events.jsonl").open("ab") as events:
            events.write(b"x" * size)
        (run / "run.log").write_text(str(size))
        mirror.changed()

    grow(2**17)
    wait_until(lambda: given.count("run.log") == 1)
    assert given.count("events.jsonl") == 1
    assert mirror.behind == 1
    grow(2**17)
    wait_until(lambda: mirror.behind == 0)
    assert given.count("events.jsonl") == 2
    grow(1)
    wait_until(lambda: given.count("run.log") == 3)
    assert mirror.close()  # the last lines come with the end
    assert real.get("events.jsonl") == (run / "events.jsonl").read_bytes()


def test_a_checkpoint_goes_before_records_that_are_being_copied(tmp_path: Path) -> None:
    run, real = tmp_path / "here", open_place(f"file://{tmp_path}/there")
    place = _Told(real._fs, real._root, real.shown)
    save_checkpoint(run, 100)
    for name in ("a.csv", "b.csv", "c.csv"):
        (run / name).write_text(name)
    began = list[Mirror]()

    def save_at_a(name: str) -> None:
        if name == "a.csv" and not (run / "checkpoints" / "000000000200").exists():
            save_checkpoint(run, 200)
            wait_until(lambda: bool(began))
            began[0].changed()

    given = place.remember(save_at_a)
    began.append(begin_mirror(run, place, []))
    wait_until(lambda: began[0].behind == 0)
    assert began[0].close()
    assert given.index("a.csv") < given.index("checkpoints/000000000200/checkpoint.json") < given.index("b.csv")


def test_an_end_during_an_outage_says_what_is_left(tmp_path: Path) -> None:
    run, told = tmp_path / "here", list[str]()
    real = open_place(f"file://{tmp_path}/there")
    save_checkpoint(run, 100)
    mirror = begin_mirror(run, _Flaky(real._fs, real._root, real.shown), told)
    assert not mirror.close()
    assert "files of the run are not in" in told[-1]
    again = begin_mirror(run, real, told)  # the next start
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
    save_checkpoint(run, 100)
    _keep(run, "best", 7.5)
    _keep(run, "milestones/000000000050", 0.0)
    for name in ("run.log", "rewards.jsonl", "profiles/profile.json", "tensorboard/events.out.tfevents.1"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(name)
    for name in (".lock", "replay.views", "config.json.part"):
        (run / name).write_text("of this machine alone")
    assert begin_mirror(run, place, []).close()
    fetched = tmp_path / "elsewhere"
    assert fetch_run(place, fetched) == 100
    there = {path.relative_to(fetched).as_posix() for path in fetched.rglob("*") if path.is_file()}
    here = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert here - there == {".lock", "replay.views", "config.json.part"}
    assert json.loads((fetched / "checkpoints" / "best" / "checkpoint.json").read_text())["result"] == 7.5


def test_a_run_that_is_further_elsewhere_goes_on_from_there(url: str, tmp_path: Path) -> None:
    run, place, told = tmp_path / "here", open_place(url), list[str]()
    save_checkpoint(run, 100)
    _keep(run, "best", 7.5)
    _keep(run, "milestones/000000000050", 0.0)
    behind = tmp_path / "behind"
    shutil.copytree(run, behind)
    (behind / "log.txt").write_text("of this machine")
    save_checkpoint(run, 200)
    shutil.rmtree(run / "checkpoints" / "best")
    _keep(run, "best", 9.5)
    (run / "log.txt").write_text("of the other machine")
    assert begin_mirror(run, place, []).close()
    assert bring_run(place, behind, told.append) == 200
    assert (behind / "log.txt").read_text() == "of this machine"
    (behind / "log.txt").unlink()
    assert begin_mirror(behind, place, []).close()  # as a run does that goes on from there
    for name in ("checkpoints/000000000200", "checkpoints/best"):
        for path in (run / name).iterdir():
            assert (behind / name / path.name).read_bytes() == path.read_bytes()
            assert place.get(f"{name}/{path.name}") == path.read_bytes()
    assert place.get("events.jsonl") == (behind / "events.jsonl").read_bytes() == (run / "events.jsonl").read_bytes()
    assert not list(behind.rglob(".*"))
    save_checkpoint(behind, 300)
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
    save_checkpoint(run, 100)
    _keep(run, "best", 7.5)
    assert begin_mirror(run, real, []).close()
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
    save_checkpoint(run, 100)
    real = open_place(f"file://{tmp_path}/there")
    save_checkpoint(tmp_path / "there", 200)
    assert bring_run(_Failing(real._fs, real._root, real.shown), run, told.append) is None
    assert len(told) == 1
    assert "the run goes on from what is here" in told[0]


def test_what_lies_elsewhere_cannot_name_files_outside_the_run(tmp_path: Path) -> None:
    there = save_checkpoint(tmp_path / "there", 100)
    meta = json.loads((there / "checkpoint.json").read_text())
    (tmp_path / "there" / "checkpoints" / "outside").write_bytes(b"")
    meta["sha256"]["../outside"] = hashlib.sha256(b"").hexdigest()
    (there / "checkpoint.json").write_text(json.dumps(meta))
    fetch_run(open_place(f"file://{tmp_path}/there"), tmp_path / "here")
    assert not (tmp_path / "here" / "checkpoints" / "outside").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "there is no run at"), ("{}", "names no game"), ('{"name": 3}', "names no game"), ("[1", "cannot read")],
)
def test_settings_that_are_of_no_run_get_a_sentence(content: str | None, sentence: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=sentence):
        stored_settings(f"file://{tmp_path}")


@pytest.mark.parametrize(
    "variable",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_KEY",
        "AZURE_SAS",
    ],
)
def test_credentials_are_not_told(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "averysecretkey/withaslash")

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


@pytest.mark.parametrize("hurried", [True, False])
def test_a_machine_that_is_taken_away_waits_less_for_the_copies(
    hurried: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    close = Mirror.close

    def noted(self: Mirror, timeout_s: float) -> bool:
        waited.append(timeout_s)
        return close(self, timeout_s)

    monkeypatch.setattr(Mirror, "close", noted)
    (tmp_path / "run").mkdir()
    with mirrored(tmp_path / "run", f"file://{tmp_path}/there", print, print, lambda: hurried):
        pass
    assert waited == [HURRIED_S if hurried else LEAVE_S]
