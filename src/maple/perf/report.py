"""A profile as text."""

from __future__ import annotations

from typing import Any

from maple.perf.advice import bottleneck

__all__ = ["facts_text", "figures_of", "text_report"]

LEAST_SHARE = 0.001  # spans below this are summed up in one line
WIDTH = 24


def figures_of(profile: dict[str, Any]) -> dict[str, float]:
    """Figures that are made of several others: for each decision and game, and across processes."""
    facts, counters = profile["facts"], profile["counters"]
    wall, steps, games = profile["wall_s"], facts.get("steps", 0), facts.get("games", 0)
    batches = profile["distributions"].get("inference_batch")
    found = {"process_starts": counters.get("process_starts", 0.0)}
    if steps:
        found |= {
            "steps_per_s": steps / wall,
            "time_per_decision_us": 1e6 * wall / steps,
            "bytes_per_decision": counters.get("bytes", 0.0) / steps,
            "messages_per_decision": counters.get("messages", 0.0) / steps,
        }
    if games:
        found |= {"games_per_s": games / wall, "decisions_per_game": steps / games}
    if batches and batches["count"]:
        found |= {"inference_calls": batches["count"], "inference_batch_mean": batches["total"] / batches["count"]}
    return found


def facts_text(profile: dict[str, Any], between: str) -> str:
    """What the caller knew, in a line."""
    facts = profile["facts"].items()
    return between.join(
        f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in facts
    )


def _bar(share: float) -> str:
    return "█" * round(WIDTH * share)


def _account(account: dict[str, Any]) -> list[str]:
    title = f"{account['process']} / {account['name']}: {account['wall_s']:.2f} s"
    lines = [title, "-" * len(title)]
    small = [span for span in account["spans"] if span["share"] < LEAST_SHARE]
    for span in account["spans"]:
        if span["share"] >= LEAST_SHARE:
            each = f"{1e3 * span['self_s'] / span['count']:10.3f} ms × {span['count']:,}" if span["count"] else ""
            row = f"  {span['name']:<26}{span['self_s']:10.3f} s {span['share']:7.1%}  {_bar(span['share']):<{WIDTH}}"
            lines.append(f"{row} {each}".rstrip())
    if small:
        seconds, share = (sum(span[key] for span in small) for key in ("self_s", "share"))
        lines.append(f"  {f'{len(small)} smaller ones':<26}{seconds:10.3f} s {share:7.1%}")
    total = sum(span["share"] for span in account["spans"])
    lines.append(f"  {'sum':<26}{sum(s['self_s'] for s in account['spans']):10.3f} s {total:7.1%}")
    return [*lines, ""]


def _system(profile: dict[str, Any]) -> list[str]:
    system = profile["system"]
    if not system:
        return []
    memory, peak = system["memory_bytes"] / 2**20, system["memory_peak_bytes"] / 2**20
    rows = [
        ("CPU of this run", system["cpu_percent"], f"% (peak {system['cpu_percent_peak']:.0f} %, 100 % is a core)"),
        ("CPU of the machine", system["machine_cpu_percent"], "% (mean of its cores)"),
        ("memory", memory, f"MiB (peak {peak:.0f} MiB, children included)"),
        ("context switches", system["context_switches_per_s"], "a second"),
    ]
    if "gpu_percent" in system:
        rows.append(("GPU", system["gpu_percent"], f"% (peak {system['gpu_memory_peak_mib']:.0f} MiB)"))
    lines = [f"  {name:<20}{value:8.0f} {unit}" for name, value, unit in rows]
    return ["system", "------", *lines, ""]


def _sizes(profile: dict[str, Any]) -> list[str]:
    lines = []
    for name, found in profile["distributions"].items():
        if not found["count"]:
            continue
        mean = found["total"] / found["count"]
        lines += [f"{name}: {found['count']:,} of {found['least']:,.0f} to {found['most']:,.0f}, mean {mean:,.0f}"]
        for bucket, number in sorted((int(bucket), number) for bucket, number in found["buckets"].items()):
            share = number / found["count"]
            lines.append(
                f"  {f'{bucket}-{max(0, 2 * bucket - 1)}':<16}{number:>10,} {share:7.1%}  {_bar(share)}".rstrip()
            )
    return [*lines, ""] if lines else []


def text_report(profile: dict[str, Any]) -> str:
    """All that matters, for people."""
    lines = [f"profile of {profile['wall_s']:.1f} s  {facts_text(profile, '  ')}", "", bottleneck(profile), ""]
    for account in profile["accounts"]:
        lines += _account(account)
    lines += _system(profile)
    figures = figures_of(profile)
    lines += ["figures", "-------", *(f"  {name:<24}{value:14,.2f}" for name, value in figures.items()), ""]
    return "\n".join([*lines, *_sizes(profile)])
