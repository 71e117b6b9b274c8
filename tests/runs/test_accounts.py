"""Threads beside the run have accounts of their own: what they did, and how long they waited for something to do."""

from __future__ import annotations

from pathlib import Path

from maple.perf import Profiler
from maple.runs.notify import Message, Notifier
from maple.runs.records import Recorder
from maple.runs.storage import Mirror, open_place


def test_records_messages_and_mirrors_are_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    told: list[str] = []
    with Profiler() as profiler:
        recorder = Recorder(tmp_path, 0, as_csv=True, tensorboard=False, warn=told.append)
        notifier = Notifier(lambda _: True, [], told.append)
        mirror = Mirror(tmp_path / "here", open_place(f"file://{tmp_path}/there"), told.append)
        recorder.add(1, {"steps": 1})
        notifier.tell(Message("title", "body"))
        recorder.close()
        notifier.close()
        assert mirror.close()
    assert told == []
    accounts = {account["name"]: account for account in profiler.profile({})["accounts"]}
    for name, work in (("maple-records", "log"), ("maple-notify", "notify"), ("maple-mirror", "mirror")):
        spans = {span["name"]: span["self_s"] for span in accounts[name]["spans"]}
        assert spans[work] > 0
        assert spans["idle"] > 0 or name == "maple-mirror"  # which copies first
        assert spans["untracked"] <= 0.03 * accounts[name]["wall_s"]
