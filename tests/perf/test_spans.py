"""Accounts add up: by an injected clock to the last digit, in real threads and processes to their wall-clock."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from maple.core.kernels import cycles, kernel
from maple.core.threads import Team, meet
from maple.perf import Profiler, Recorder, count, observe, span
from maple.perf.profiler import account_figures
from maple.perf.spans import Distribution, current, split


class Clock:
    """A clock that goes on when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _by_name(account: dict) -> dict[str, float]:  # type: ignore[type-arg]
    return {entry["name"]: entry["self_s"] for entry in account["spans"]}


def test_every_moment_belongs_to_the_innermost_span() -> None:
    clock = Clock()
    with Recorder(clock) as recorder:
        clock.now += 1
        with span("outer"):
            clock.now += 2
            with span("inner"):
                clock.now += 4
            clock.now += 8
            with span("inner"):
                clock.now += 16
        clock.now += 32
    figures = account_figures(recorder.accounts[0], clock.now, "main")
    assert _by_name(figures) == {"untracked": 33, "outer": 10, "inner": 20, "idle": 0}
    assert figures["wall_s"] == 63
    assert sum(entry["share"] for entry in figures["spans"]) == pytest.approx(1)
    tree = {tuple(row["path"]): (row["self_s"], row["total_s"], row["count"]) for row in figures["tree"]}
    assert tree == {(): (33, 63, 0), ("outer",): (10, 30, 1), ("outer", "inner"): (20, 20, 2)}


def test_an_open_span_counts_and_an_error_closes_it() -> None:
    clock = Clock()
    with Recorder(clock) as recorder:
        with suppress(KeyError), span("fails"):
            clock.now += 3
            raise KeyError
        with span("open"):
            clock.now += 5
            figures = account_figures(recorder.accounts[0], clock.now, "main")
    assert _by_name(figures) == {"untracked": 0, "fails": 3, "open": 5, "idle": 0}


def test_what_a_kernel_counted_is_split_off_and_never_more_than_there_was() -> None:
    clock = Clock()
    with Recorder(clock) as recorder, span("update"):
        clock.now += 10
        split({"gradient": 6.0, "idle": 1.0})
        clock.now += 1
        split({"gradient": 30.0, "idle": 10.0})
    spans = _by_name(account_figures(recorder.accounts[0], clock.now, "main"))
    assert spans == pytest.approx({"untracked": 0, "update": 3, "gradient": 6.75, "idle": 1.25})


def test_without_a_recorder_nothing_is_kept() -> None:
    with span("nobody"):
        assert current() is None
    count("nothing")
    with Recorder() as recorder:
        with pytest.raises(RuntimeError, match="running in this process already"):
            Recorder().__enter__()
        count("starts", 2)
        count("starts")
        observe("size", 5)
    assert recorder.counters == {"starts": 3}
    assert [row[1].name for row in recorder.accounts[0].root.walk()] == ["untracked"]


def test_sizes_fall_into_powers_of_two() -> None:
    sizes = Distribution()
    for size in (0, 1, 2, 3, 4, 1023, 1024):
        sizes.add(size)
    assert sizes.buckets == {0: 1, 1: 1, 2: 2, 4: 1, 512: 1, 1024: 1}
    both = Distribution()
    both.merge(sizes)
    both.merge(sizes)
    assert (both.count, both.total, both.least, both.most) == (14, 2 * 2057, 0, 1024)
    assert both.buckets[2] == 4


def _burn(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@kernel
def _uneven(crew, until):
    """The first thread works until its cycle counter says so, the others wait for it."""
    began = cycles()
    if crew[0] == 0:
        while cycles() - began < until:
            pass
    crew[5] += cycles() - began
    meet(crew)


def _assert_adds_up(account: dict) -> None:  # type: ignore[type-arg]
    spans = account["spans"]
    assert sum(entry["self_s"] for entry in spans) == pytest.approx(account["wall_s"], rel=1e-6)
    assert 0.995 <= sum(entry["share"] for entry in spans) <= 1.005
    assert min(entry["self_s"] for entry in spans) >= 0


def test_threads_of_a_team_have_accounts_of_their_own() -> None:
    with Profiler(sample_every_s=0.05) as profiler, Team(2) as team:
        for _ in range(20):
            with span("env_step"):
                team.run(lambda _lo, _hi: time.sleep(0.002), 128)
            with span("update"):
                team.together(_uneven, 2, np.int64(4_000_000), counted=["gradient_calculation"])
    profile = profiler.profile({})
    accounts = {account["name"]: account for account in profile["accounts"]}
    assert {"MainThread", "maple-team-1", "maple-sampler"} <= accounts.keys()
    for account in accounts.values():
        _assert_adds_up(account)
    helper, main = _by_name(accounts["maple-team-1"]), _by_name(accounts["MainThread"])
    assert helper["env_step"] >= 20 * 0.002
    assert helper["idle"] > helper["gradient_calculation"]
    assert main["gradient_calculation"] > helper["gradient_calculation"]
    assert main["env_step"] >= 20 * 0.002
    assert profile["samples"]
    assert profile["system"]["memory_peak_bytes"] > 2**20


CHILD = """
import time
from maple.perf import child_profile, count, observe, span
with child_profile("worker"):
    with span("env_step"):
        time.sleep(0.2)
    with span("idle"):
        time.sleep(0.1)
    count("messages", 3)
    observe("inference_batch", 64)
"""


def test_a_childs_spans_are_merged_and_each_account_adds_up() -> None:
    with Profiler(sample_every_s=0.05) as profiler:
        count("process_starts", 2)
        observe("inference_batch", 8)
        children = [subprocess.Popen([sys.executable, "-c", CHILD]) for _ in range(2)]
        with span("env_parallel_execution"):
            thread = threading.Thread(target=_burn, args=(0.1,))
            thread.start()
            codes = [child.wait() for child in children]
        thread.join()
    assert codes == [0, 0]
    profile = profiler.profile({"steps": 6})
    workers = [account for account in profile["accounts"] if account["process"].startswith("worker-")]
    assert len({account["process"] for account in workers}) == 2
    for account in profile["accounts"]:
        _assert_adds_up(account)
    for account in workers:
        assert _by_name(account)["env_step"] >= 0.19
        assert _by_name(account)["untracked"] <= 0.03 * account["wall_s"]
        assert 0 <= account["began"] < profile["wall_s"]
    assert profile["counters"] == {"process_starts": 2, "messages": 6}
    assert profile["distributions"]["inference_batch"]["buckets"] == {8: 1, 64: 2}
    assert profile["system"]["processes_peak"] >= 2
    json.dumps(profile)


FORKS = """
import multiprocessing, time
from maple.perf import Profiler, child_profile, span

def work():
    with child_profile("forked"), span("env_step"):
        time.sleep(0.05)

with Profiler() as profiler:
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
assert child.exitcode == 0
accounts = profiler.profile({})["accounts"]
forked = [account for account in accounts if account["process"].startswith("forked-")]
assert len(forked) == 1, accounts
print(sum(span["share"] for span in forked[0]["spans"]))
"""


def test_a_forked_child_has_an_account_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1.0)


def test_perf_imports_neither_torch_nor_numba() -> None:
    code = "import sys, maple; maple.perf.span('x'); print('torch' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_samples_count_what_is_open() -> None:
    with Profiler(sample_every_s=0.02) as profiler, span("long"):
        time.sleep(0.3)
    profile = profiler.profile({})
    whole = _by_name(profile["accounts"][0])["long"]
    assert any(0 < sample["spans"].get("long", 0.0) < whole for sample in profile["samples"])
