"""A profile as one page that needs no network: timeline, time shares, processors and memory, batch sizes."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

from maple.perf.advice import crowding, findings
from maple.perf.report import facts_text, figures_of, split_accounts
from maple.perf.spans import IDLE, UNTRACKED

__all__ = ["html_page"]

COLORS = ("#3b6fb6", "#e08a3c", "#4f9d5d", "#c14f5a", "#7d63b3", "#8a6b52", "#cf7fb0", "#9aa33a", "#3aa6b0", "#5b7083")
PALE = {IDLE: "#d5dae1", UNTRACKED: "#f0c8c8"}
LEGEND = 10  # spans with a colour of their own; the rest share one
WIDTH, HEIGHT, LEFT, BOTTOM = 960, 220, 76, 24

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1040px;padding:0 1rem;color:#1d2733;background:#fff}
h1{font-size:1.5rem;margin:0 0 .3rem}h2{font-size:1.1rem;margin:2rem 0 .6rem}.quiet{color:#5b6876}
.say{background:#f2f6fb;border-left:4px solid #3b6fb6;padding:.7rem 1rem;margin:1rem 0}
svg{width:100%;height:auto;display:block}text{font:12px system-ui,sans-serif;fill:#5b6876}
.keys{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.4rem 0}.keys i{display:inline-block;width:.8em;height:.8em;
border-radius:2px;margin-right:.35em}.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(165px,1fr));gap:.7rem}
.tile{border:1px solid #dfe5ec;border-radius:6px;padding:.5rem .8rem}.tile b{display:block;font-size:1.15rem}
table{border-collapse:collapse;width:100%}td,th{text-align:right;padding:.15rem .6rem;border-bottom:1px solid #edf0f4;
font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}
.bar{display:flex;height:22px;border-radius:4px;overflow:hidden;margin:.2rem 0 .8rem}.bar span{height:100%}
details{margin:.3rem 0}
"""


def _colors(profile: dict[str, Any]) -> dict[str, str]:
    """The spans that took the most time over all accounts, each with a colour."""
    total: dict[str, float] = {}
    for account in profile["accounts"]:
        for span in account["spans"]:
            total[span["name"]] = total.get(span["name"], 0.0) + span["self_s"]
    ranked = sorted((name for name in total if name not in PALE), key=lambda name: -total[name])
    return {**dict(zip(ranked[:LEGEND], COLORS, strict=False)), **PALE}


def _keys(colors: dict[str, str]) -> str:
    keys = "".join(f'<span><i style="background:{color}"></i>{escape(name)}</span>' for name, color in colors.items())
    return f'<div class="keys">{keys}</div>'


def _axes(end_s: float, top: float, unit: str) -> str:
    inner = WIDTH - LEFT
    parts = []
    for i in range(5):
        y = (HEIGHT - BOTTOM) * (1 - i / 4) + 4
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e6eaef"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * i / 4:,.0f}{unit}</text>')
    for i in range(6):
        anchor = "start" if i == 0 else "end" if i == 5 else "middle"
        x = LEFT + inner * i / 5
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 4}" text-anchor="{anchor}">{end_s * i / 5:,.1f} s</text>')
    return "".join(parts)


def _place(at: float, end_s: float, value: float, top: float) -> str:
    x = LEFT + (WIDTH - LEFT) * at / max(end_s, 1e-9)
    return f"{x:.1f},{(HEIGHT - BOTTOM) * (1 - value / max(top, 1e-9)) + 4:.1f}"


def _round_up(value: float) -> float:
    """To a number that is easy to read in quarters."""
    unit = 10 ** (len(str(int(value))) - 1)
    return next(float(unit * step) for step in (1, 2, 4, 6, 8, 10) if unit * step >= value)


def _svg(body: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 4}" role="img">{body}</svg>'


def _timeline(profile: dict[str, Any], colors: dict[str, str]) -> str:
    """Shares of the training thread between two samples, stacked."""
    samples = [{"at": 0.0, "spans": {}}, *profile["samples"]]
    end_s, bars = max(profile["wall_s"], 1e-9), []
    for before, after in pairwise(samples):
        spent = {name: after["spans"][name] - before["spans"].get(name, 0.0) for name in after["spans"]}
        total, low = sum(spent.values()), 0.0
        x = LEFT + (WIDTH - LEFT) * before["at"] / end_s
        wide = (WIDTH - LEFT) * (after["at"] - before["at"]) / end_s
        order = [*(name for name in colors if name in spent), *(name for name in spent if name not in colors)]
        for name in order if total > 0 else []:
            high = low + spent[name] / total
            y, tall = (HEIGHT - BOTTOM) * (1 - high) + 4, (HEIGHT - BOTTOM) * (high - low)
            bars.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.3, wide - 0.4):.1f}" height="{tall:.1f}" '
                f'fill="{colors.get(name, "#b8c0ca")}"><title>{escape(name)} {spent[name] / total:.1%}</title></rect>'
            )
            low = high
    return _svg(_axes(end_s, 100, " %") + "".join(bars))


def _lines(profile: dict[str, Any], rows: dict[str, list[float]], unit: str) -> str:
    """Figures of the samples over time."""
    end_s, top = profile["wall_s"], _round_up(max([1.0, *(value for values in rows.values() for value in values)]))
    parts = [_axes(end_s, top, unit)]
    for (name, values), color in zip(rows.items(), COLORS, strict=False):
        points = " ".join(
            _place(sample["at"], end_s, value, top) for sample, value in zip(profile["samples"], values, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.8"><title>')
        parts.append(f"{escape(name)}</title></polyline>")
    keys = dict(zip(rows, COLORS, strict=False))
    return _svg("".join(parts)) + _keys(keys)


def _processors(profile: dict[str, Any]) -> str:
    samples = profile["samples"]
    if not samples:
        return ""
    rows = {"this run": [sum(sample["cpu_per_process"].values()) for sample in samples]}
    cores = min(len(sample["cpu_per_core"]) for sample in samples)
    rows |= {f"core {i}": [sample["cpu_per_core"][i] for sample in samples] for i in range(min(cores, 8))}
    memory = {"memory, children included": [sample["memory_bytes"] / 2**20 for sample in samples]}
    return f"<h2>Processors</h2>{_lines(profile, rows, ' %')}<h2>Memory</h2>{_lines(profile, memory, ' MiB')}"


def _account(account: dict[str, Any], colors: dict[str, str]) -> str:
    shares = "".join(
        f'<span style="width:{100 * span["share"]:.3f}%;background:{colors.get(span["name"], "#b8c0ca")}" '
        f'title="{escape(span["name"])} {span["share"]:.1%}"></span>'
        for span in account["spans"]
    )
    rows = "".join(
        f"<tr><td>{'&nbsp;' * 3 * (len(row['path']) - 1)}{escape(row['path'][-1] if row['path'] else UNTRACKED)}</td>"
        f"<td>{row['self_s']:.3f} s</td><td>{row['self_s'] / max(account['wall_s'], 1e-9):.1%}</td>"
        f"<td>{row['total_s']:.3f} s</td><td>{row['count']:,}</td></tr>"
        for row in account["tree"]
    )
    head = "<tr><th>span</th><th>self</th><th>share</th><th>with those below</th><th>times</th></tr>"
    title = f"{escape(account['process'])} / {escape(account['name'])}"
    return (
        f'<div>{title} <span class="quiet">{account["wall_s"]:.2f} s, idle {account["idle_s"]:.2f} s, '
        f'untracked {account["untracked_s"]:.2f} s</span></div><div class="bar">{shares}</div>'
        f"<details><summary>as a tree</summary><table>{head}{rows}</table></details>"
    )


def _sizes(profile: dict[str, Any]) -> str:
    parts = []
    for name, found in profile["distributions"].items():
        buckets = sorted((int(bucket), number) for bucket, number in found["buckets"].items())
        if not buckets:
            continue
        rows = "".join(
            f"<tr><td>{low:,}–{max(0, 2 * low - 1):,}</td><td>{number:,}</td><td>{number / found['count']:.1%}</td>"
            f'<td style="width:60%;text-align:left"><div style="background:{COLORS[0]};height:12px;border-radius:2px;'
            f'width:{100 * number / found["count"]:.1f}%"></div></td></tr>'
            for low, number in buckets
        )
        mean = found["total"] / found["count"]
        parts.append(
            f"<h2>{escape(name.replace('_', ' '))}</h2><p class=quiet>{found['count']:,} calls, mean {mean:,.0f}</p>"
            f"<table><tr><th>size</th><th>calls</th><th>share</th><th></th></tr>{rows}</table>"
        )
    return "".join(parts)


def html_page(profile: dict[str, Any], title: str) -> str:
    """The whole page."""
    colors = _colors(profile)
    crowd = crowding(profile)
    told = [*(f"{found.what}: {found.change}" for found in findings(profile)[:4]), *([crowd] if crowd else [])]
    said = "".join(f"<li>{escape(text)}</li>" for text in told)
    tiles = "".join(
        f'<div class="tile"><span class="quiet">{escape(name.replace("_", " "))}</span><b>{value:,.1f}</b></div>'
        for name, value in figures_of(profile).items()
    )
    facts = escape(facts_text(profile, ", "))
    busy, resting = ("".join(_account(one, colors) for one in accounts) for accounts in split_accounts(profile))
    more = f"<details><summary>threads that hardly did a thing</summary>{resting}</details>" if resting else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head><body>'
        f'<h1>{escape(title)}</h1><div class="quiet">{profile["wall_s"]:.1f} s; {facts}</div>'
        f'<div class="say">What took the time, and what would change it:<ul>{said}</ul></div>'
        f'<div class="tiles">{tiles}</div><h2>Timeline of the training thread</h2>{_keys(colors)}'
        f"{_timeline(profile, colors)}<h2>Time shares of each thread and process</h2>{busy}{more}"
        f"{_processors(profile)}{_sizes(profile)}</body></html>\n"
    )
