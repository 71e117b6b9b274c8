"""Looks over time, and their picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from maple.runs.curves import Curve, curve, curves_svg
from maple.runs.store import RunFolder

SVG = "{http://www.w3.org/2000/svg}"


def test_each_look_is_a_point(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "a")
    run.path.mkdir()
    for second, look in ((30, {}), (60, {"wins": 0.25}), (90, {"wins": 0.25}), (120, {"wins": 0.5, "kills": 1.0})):
        run.append("events.jsonl", {"event": "update", "elapsed_s": second, "probe": look})
    assert curve(run, "wins") == Curve("a", [1.0, 2.0], [0.25, 0.5])
    assert curve(run, "points").values == []


@pytest.mark.parametrize("values", [[0.25, 0.5], [-17.0, 3.5], [3.0, 3.0], [1e-4, 2e-4]])
def test_lines_stay_on_the_page_and_grow_upwards(values: list[float]) -> None:
    root = ET.fromstring(curves_svg([Curve("a", [1.0, 9.0], values), Curve("<b>", [2.0, 4.0], values)], "wins"))
    wide, high = float(root.attrib["width"]), float(root.attrib["height"])
    lines = root.findall(f"{SVG}polyline")
    assert len(lines) == 2
    for line in lines:
        first, last = ([float(n) for n in point.split(",")] for point in line.attrib["points"].split())
        assert 0 < first[0] < last[0] <= wide
        assert 0 < min(first[1], last[1]) <= max(first[1], last[1]) < high
        assert (last[1] < first[1]) == (values[1] > values[0])
    assert {"wins", "a", "<b>"} <= set(root.itertext())
