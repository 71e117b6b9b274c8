"""A profile as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maple.perf.advice import bottleneck, crowding, findings
from maple.perf.spans import UNTRACKED

__all__ = ["facts_text", "figures_of", "split_accounts", "text_report"]

LEAST_SHARE = 0.001  # spans below this are summed up in one line
RESTING = 0.99  # of an account: who is idle for longer gets no tree
SAID = 3  # findings
WORTH_A_WORD = 0.02  # of the training thread's time
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


def _title(account: dict[str, Any]) -> str:
    wall = max(account["wall_s"], 1e-9)
    idle, untracked = account["idle_s"] / wall, account["untracked_s"] / wall
    who = f"{account['process']} / {account['name']}"
    return f"{who}: {account['wall_s']:.2f} s, idle {idle:.1%}, untracked {untracked:.1%}"


def _tree(account: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The account's spans with their depth: each below the one that it was open in, the longest first."""
    rows = {tuple(row["path"]): row for row in account["tree"]}

    def below(path: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
        found = [each for each in rows if each and each[:-1] == path]
        for each in sorted(found, key=lambda each: -rows[each]["total_s"]):
            yield len(path), rows[each]
            yield from below(each)

    yield from below(())
    if () in rows:
        yield 0, rows[()]


def _account(account: dict[str, Any]) -> list[str]:
    title, wall, small = _title(account), max(account["wall_s"], 1e-9), list[float]()
    lines = [title, "-" * len(title), f"  {'span':<32}{'self':>12} {'share':>7} {'+below':>7}"]
    for depth, row in _tree(account):
        if row["total_s"] < LEAST_SHARE * wall or (not row["path"] and row["self_s"] < LEAST_SHARE * wall):
            small.append(row["self_s"])
            continue
        share, name = row["self_s"] / wall, "  " * depth + (row["path"][-1] if row["path"] else UNTRACKED)
        each = f"{1e3 * row['self_s'] / row['count']:10.3f} ms × {row['count']:,}" if row["count"] else ""
        figures = f"{row['self_s']:10.3f} s {share:7.1%} {row['total_s'] / wall if row['path'] else share:7.1%}"
        lines.append(f"  {name:<32}{figures}  {_bar(share):<{WIDTH}} {each}".rstrip())
    if small:
        lines.append(f"  {f'{len(small)} smaller ones':<32}{sum(small):10.3f} s {sum(small) / wall:7.1%}")
    total = sum(row["self_s"] for row in account["tree"])
    lines.append(f"  {'sum':<32}{total:10.3f} s {total / wall:7.1%}")
    return [*lines, ""]


def split_accounts(profile: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The accounts worth looking at, the training thread's first, and those of threads that hardly did a thing."""
    first, *others = profile["accounts"]
    resting = [account for account in others if account["idle_s"] > RESTING * account["wall_s"]]
    return [first, *(account for account in others if account not in resting)], resting


def _accounts(profile: dict[str, Any]) -> list[str]:
    """Every account as a tree; of threads that hardly did a thing, a line."""
    busy, resting = split_accounts(profile)
    lines = [line for account in busy for line in _account(account)]
    return [*lines, *map(_title, resting), ""] if resting else lines


def _advice(profile: dict[str, Any]) -> list[str]:
    """The bottleneck, what comes after it, and whether others were in the way."""
    found, crowd = findings(profile), crowding(profile)
    said = [str(each) for number, each in enumerate(found[:SAID]) if not number or each.share >= WORTH_A_WORD]
    lines = [f"{number}. {text}" for number, text in enumerate(said, 1)] or [bottleneck(profile)]
    return [*lines, *([crowd] if crowd else []), ""]


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
    lines = [f"profile of {profile['wall_s']:.1f} s  {facts_text(profile, '  ')}", "", *_advice(profile)]
    lines += _accounts(profile) + _system(profile)
    figures = figures_of(profile)
    lines += ["figures", "-------", *(f"  {name:<24}{value:14,.2f}" for name, value in figures.items()), ""]
    return "\n".join([*lines, *_sizes(profile)])
