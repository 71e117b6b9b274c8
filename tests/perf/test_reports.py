"""What is made of a profile: text, trace, page, advice and the short line."""

from __future__ import annotations

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
