"""How strong runs became while they trained: their looks over time, and a picture of several runs' looks."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

from maple.core.svg import SANS, words
from maple.runs.store import RunFolder

__all__ = ["Curve", "curve", "curves_svg"]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 860, 420, 64, 56, 24, 48
COLOURS = ("#2563a8", "#c0562c", "#3f8a4f", "#7d4fa0", "#a8842c", "#3a99a0", "#b0487f", "#5b6876")
_INK, _QUIET, _GRID = "#1d2733", "#5b6876", "#e6eaef"


@dataclass(frozen=True, slots=True)
class Curve:
    """The looks of one run."""

    name: str
    minutes: list[float]  # of training
    values: list[float]


def curve(folder: RunFolder, metric: str) -> Curve:
    """Read a run's looks; an update that came without a new one repeats the last."""
    minutes, values, last = [], [], None
    for row in folder.records("events.jsonl"):
        look = row.get("probe") or {}
        if metric in look and look != last:
            minutes.append(float(row["elapsed_s"]) / 60)
            values.append(float(look[metric]))
            last = look
    return Curve(folder.name, minutes, values)


def _ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers around a range, two at least."""
    if high <= low:
        low, high = low - 0.5, high + 0.5
    span = high - low
    unit = 10 ** floor(log10(span / about))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if span / (unit * k) <= about)
    return [step * k for k in range(floor(low / step), ceil(high / step) + 1)]


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 13, colour: str = _QUIET) -> str:
    return words(x, y, size, text, colour, anchor, font=SANS)


def curves_svg(curves: list[Curve], title: str) -> str:
    """An SVG with a line for each run, over minutes of training."""
    xs = _ticks(0.0, max((c.minutes[-1] for c in curves if c.minutes), default=1.0), 8)
    values = [value for c in curves for value in c.values] or [0.0, 1.0]
    ys = _ticks(min(values), max(values), 6)

    def place(minute: float, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * minute / xs[-1]
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - ys[0]) / (ys[-1] - ys[0])

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 26, title, "start", 17, _INK),
        _text(WIDTH - RIGHT, HEIGHT - 10, "minutes of training", "end"),
    ]
    for value in ys:
        y = place(0.0, value)[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:g}", "end"))
    parts += [_text(place(minute, ys[0])[0], HEIGHT - BOTTOM + 18, f"{minute:g}") for minute in xs]
    for number, c in enumerate(curves):
        colour, x = COLOURS[number % len(COLOURS)], LEFT + 160 * number
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, c.minutes, c.values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.2"/>')
        parts.append(f'<rect x="{x}" y="38" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(x + 20, 45, c.name, "start", 13, _INK))
    return "\n".join([*parts, "</svg>"]) + "\n"
