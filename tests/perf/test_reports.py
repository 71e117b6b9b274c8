"""What is made of a profile: text, trace, page, advice and the short line."""

from __future__ import annotations

import threading
from html.parser import HTMLParser
from typing import Any

import pytest

from maple.perf import Recorder, ShortLine, bottleneck, chrome_trace, html_page, span, text_report
from maple.perf.advice import findings


def _account(name: str, spans: dict[str, float], process: str = "main") -> dict[str, Any]:
    wall = sum(spans.values())
    entries = [{"name": key, "self_s": s, "share": s / wall, "count": 1} for key, s in spans.items()]
    return {
        "name": name,
        "process": process,
        "began": 0.0,
        "wall_s": wall,
        "idle_s": spans.get("idle", 0.0),
        "untracked_s": spans.get("untracked", 0.0),
        "spans": entries,
        "tree": [{"path": [key], "self_s": s, "total_s": s, "count": 1} for key, s in spans.items()],
        "events": [["env_step", 0.5, 1.5]],
    }


def _profile(main: dict[str, float], helper: dict[str, float], batch: float = 4096, **facts: Any) -> dict[str, Any]:
    sample = {"cpu_per_core": [50.0, 70.0], "cpu_per_process": {"1": 120.0}, "memory_bytes": 2**20, "spans": main}
    sizes = {"count": 10, "total": 10 * batch, "least": batch, "most": batch, "buckets": {"4096": 10}}
    return {
        "wall_s": 10.0,
        "facts": {"steps": 1000, "games": 50, "tables": 1024, "minibatch": 256, "epochs": 2, **facts},
        "accounts": [_account("MainThread", main), _account("maple-team-1", helper)],
        "counters": {"process_starts": 2.0, "bytes": 3000.0, "messages": 500.0},
        "distributions": {"inference_batch": sizes},
        "system": {
            "cpu_percent": 120.0,
            "cpu_percent_peak": 130.0,
            "machine_cpu_percent": 60.0,
            "memory_bytes": 2**20,
            "memory_peak_bytes": 2**21,
            "context_switches_per_s": 5.0,
        },
        "samples": [{"at": 5.0, **sample}, {"at": 10.0, **sample}],
    }


BUSY = {"agent_action_selection": 4.0, "env_step": 2.0, "gradient_calculation": 3.0, "idle": 0.5, "untracked": 0.5}


@pytest.mark.parametrize(
    ("main", "helper", "facts", "says"),
    [
        ({"gradient_calculation": 2, "optimizer_step": 6, "env_step": 2}, {"idle": 1, "update": 9}, {}, "minibatch"),
        ({"gradient_calculation": 8, "env_step": 2}, {"idle": 0, "update": 10}, {}, "fewer epochs (now 2)"),
        ({"agent_action_selection": 8, "env_step": 2}, {"idle": 0, "x": 10}, {"batch": 100}, "more tables (now 1024)"),
        ({"agent_action_selection": 8, "env_step": 2}, {"idle": 0, "x": 10}, {}, "net.hidden"),
        ({"env_step": 2, "idle": 8}, {"idle": 8, "x": 2}, {"batch": 100}, "tables=2048, now 1024"),
        ({"env_step": 2, "idle": 8}, {"idle": 8, "x": 2}, {}, "fewer threads (--set threads=1)"),
        ({"env_step": 9, "idle": 1}, {"idle": 0, "x": 10}, {}, "maple tune"),
        ({"log": 6, "env_step": 4}, {"idle": 0, "x": 10}, {}, "log less"),
        ({"untracked": 6, "env_step": 4}, {"idle": 0, "x": 10}, {}, "put spans around"),
    ],
)
def test_the_advice_follows_the_figures(
    main: dict[str, float], helper: dict[str, float], facts: dict[str, Any], says: str
) -> None:
    assert says in bottleneck(_profile(main, helper, **facts))


PLAY, UPDATE = "env_parallel_execution", "update"


def _paths(name: str, process: str, spans: dict[tuple[str, ...], float]) -> dict[str, Any]:
    """An account by paths, of ten seconds."""
    names: dict[str, float] = {}
    for path, seconds in spans.items():
        names[path[-1]] = names.get(path[-1], 0.0) + seconds
    tree = [{"path": list(path), "self_s": s, "total_s": s, "count": 1} for path, s in spans.items()]
    return {**_account(name, names, process), "tree": tree}


def _with_processes(
    main: dict[tuple[str, ...], float], process: str, idle: float, count: int, **facts: Any
) -> dict[str, Any]:
    profile = _profile({"env_step": 10}, {"idle": 10}, batch=64, **facts)
    players = [
        _paths("MainThread", f"{process}-{i}", {("env_step",): 10 - idle, ("idle",): idle}) for i in range(count)
    ]
    spare, tried = (
        _paths("MainThread", "worker-8", {("idle",): 10}),
        _paths("MainThread", "worker-9", {("env_step",): 1}),
    )
    accounts = [_paths("MainThread", "main", main), profile["accounts"][1], *players]
    return {**profile, "accounts": [*accounts, spare, tried] if process == "worker" else accounts}


@pytest.mark.parametrize(
    ("main", "process", "idle", "count", "says"),
    [
        ({(PLAY, "env_observe", "idle"): 8, (PLAY, "env_step"): 2}, "worker", 1, 1, "(--workers 2, now 1)"),
        ({(PLAY, "env_observe", "idle"): 8, (PLAY, "env_step"): 2}, "worker", 1, 2, "a cheaper step, or more than 2"),
        ({(PLAY, "env_observe", "idle"): 8, (PLAY, "env_step"): 2}, "worker", 7, 2, "tables=2048, now 1024"),
        (
            {(PLAY, "env_observe", "idle"): 1, (PLAY, "env_step"): 9},
            "worker",
            9,
            2,
            "fewer workers (--workers 1, now 2)",
        ),
        ({(PLAY, "env_observe", "idle"): 1, (PLAY, "env_step"): 9}, "worker", 9, 2, "idle 90% of their time"),
        ({(PLAY, "idle"): 8, (UPDATE, "loss_calculation"): 2}, "actor", 1, 1, "(--set actors.count=2, now 1)"),
        ({(PLAY, "idle"): 1, (PLAY, "rollout_store"): 9}, "actor", 9, 1, "storing decisions takes 90%, 64 at a time"),
        ({(PLAY, "env_observe", "idle"): 8, (PLAY, "env_step"): 2}, "node", 0, 0, "for 1 process, busy 40%"),
        ({("build", "env_reset", "idle"): 6, (PLAY, "env_step"): 4}, "worker", 0, 0, "starting and ending takes 60%"),
        ({("build", "env_reset", "idle"): 1, (PLAY, "env_step"): 9}, "worker", 0, 0, "playing the game takes 90%"),
    ],
)
def test_waiting_for_other_processes_is_seen(
    main: dict[tuple[str, ...], float], process: str, idle: float, count: int, says: str
) -> None:
    profile = _with_processes(main, process, idle, count, threads=1)
    for sample in profile["samples"]:
        sample["cpu_per_process"] = {"1": 80.0, "2": 40.0}
    assert says.lower() in bottleneck(profile).lower()


@pytest.mark.parametrize(
    ("main", "says"),
    [
        ({(UPDATE, "gradient_calculation"): 8, (UPDATE, "env_step"): 2}, "--set dqn.updates_per_step=4, now 8"),
        ({(UPDATE, "gradient_calculation"): 4, (UPDATE, "optimizer_step"): 6}, "--set dqn.minibatch=512, now 256"),
        ({(UPDATE, "replay_sample"): 6, (UPDATE, "replay_update"): 4}, "--set dqn.prefetch=true"),
        ({(UPDATE, "prefetch", "idle"): 8, (PLAY, "env_step"): 2}, "--set dqn.draw_ahead=8, now 4"),
        ({(UPDATE, "idle"): 8, (UPDATE,): 2}, "while they learn; what would change that: a larger minibatch"),
        ({(UPDATE,): 8, (PLAY, "env_step"): 2}, "beside its gradient takes 80%"),
    ],
)
def test_learning_from_replay_has_advice_of_its_own(main: dict[tuple[str, ...], float], says: str) -> None:
    facts = {"algo": "dqn", "updates_per_step": 8, "train_every": 1024, "draw_ahead": 4, "epochs": 0}
    profile = _profile({"env_step": 10}, {"update": 10}, **facts)
    profile["accounts"][0] = _paths("MainThread", "main", main)
    assert says in bottleneck(profile)


def test_the_report_gives_three_findings_whoever_else_is_there() -> None:
    profile = _profile(BUSY, {"idle": 5, "env_step": 5})
    assert "Other programs" not in text_report(profile)
    profile["system"] |= {"machine_cpu_percent": 98.0, "cpu_percent": 60.0}
    lines = text_report(profile).splitlines()
    assert [line[:2] for line in lines[2:6]] == ["1.", "2.", "3.", "Ot"]
    assert lines[2][3:] == bottleneck(profile)
    assert "Other programs used 68%" in html_page(profile, "shared")


def test_the_report_draws_the_tree() -> None:
    profile = _profile(BUSY, {"idle": 9.95, "env_step": 0.05})
    spans = {("play",): 1.0, ("play", "wait"): 2.0, ("learn",): 3.0, ("play", "wait", "deep"): 4.0}
    account = profile["accounts"][0] = _paths("MainThread", "main", spans)
    for row, total in zip(account["tree"], (7.0, 6.0, 3.0, 4.0), strict=True):
        row["total_s"] = total
    lines = text_report(profile).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("  play"))
    names = [line[:32].rstrip() for line in lines[first : first + 4]]
    assert names == ["  play", "    wait", "      deep", "  learn"]
    assert "10.0%   70.0%" in lines[first]
    assert "main / maple-team-1: 10.00 s, idle 99.5%, untracked 0.0%" in lines  # a line is enough for it


def test_findings_are_about_less_and_less() -> None:
    shares = [finding.share for finding in findings(_profile(BUSY, {"idle": 5, "env_step": 5}))]
    assert shares == sorted(shares, reverse=True)


def test_the_report_says_what_there_is() -> None:
    text = text_report(_profile(BUSY, {"idle": 5, "env_step": 5}))
    assert "main / MainThread: 10.00 s" in text
    assert "gradient_calculation" in text
    assert "30.0%" in text
    assert text.count("100.0%") >= 2
    for figure in ("decisions_per_game", "time_per_decision_us", "bytes_per_decision", "process_starts"):
        assert figure in text


def test_the_trace_has_a_bar_for_each_span_and_a_track_for_each_thread() -> None:
    events = chrome_trace(_profile(BUSY, {"idle": 10}))["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    assert [(bar["name"], bar["ts"], bar["dur"]) for bar in bars] == 2 * [("env_step", 500000.0, 1000000.0)]
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {
        "MainThread",
        "maple-team-1",
    }


class _Checker(HTMLParser):
    """Every tag that is opened is closed, and nothing is fetched."""

    VOID = ("meta", "br", "line", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_no_network() -> None:
    page = html_page(_profile(BUSY, {"idle": 5, "env_step": 5}, game="<b>"), "run: <profile>")
    checker = _Checker()
    checker.feed(page)
    assert checker.open == []
    assert "http" not in page
    assert "&lt;profile&gt;" in page
    assert "<b>&lt;" not in page


def test_the_short_line_has_what_is_drawn_ahead() -> None:
    clock = 0.0

    def now() -> float:
        return clock

    def draw() -> None:
        nonlocal clock
        with span("prefetch"), span("replay_sample"):
            clock += 3.0

    with Recorder(now) as recorder:
        line = ShortLine(recorder, 1.0, now)
        assert line.due(0, 0, 0) is None
        with span("replay_sample"):
            clock += 1.0
        thread = threading.Thread(target=draw, name="maple-prefetch")
        thread.start()
        thread.join()
        text = line.due(2000, 10, 500)
    assert text is not None
    assert "replay_sample_ms=2000.000" in text
    assert "updates/step=0.25" in text


def test_the_short_line_counts_since_the_line_before() -> None:
    clock = 100.0

    def now() -> float:
        return clock

    with Recorder(now) as recorder:
        line = ShortLine(recorder, 5.0, now)
        with span("env_step"):
            clock += 50.0
        assert line.due(1000, 10, 1) is None
        for name, seconds in (("env_step", 1.0), ("agent_action_selection", 2.0), ("log", 0.5)):
            with span(name):
                clock += seconds
        assert line.due(2000, 20, 2) is None
        with span("agent_action_selection"):
            clock += 1.5
            with span("idle"):
                clock += 0.5
        text = line.due(3000, 30, 3)
        assert line.due(3000, 30, 3) is None
    assert text is not None
    figures = dict(part.split("=") for part in text.split() if "=" in part)
    assert figures["action_ms"] == "2000.000"
    assert figures["env_step_ms"] == "500.000"
    assert figures["log_ms"] == "250.000"
    assert figures["steps/s"] == "364"
    assert figures["updates/step"] == "0.001"
