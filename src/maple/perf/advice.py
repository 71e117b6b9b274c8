"""What bounds a run and what to change, from the figures of its profile.

Every suggestion says how much of the training thread's time it is about; the one that is about the most is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maple.perf.spans import IDLE, UNTRACKED

__all__ = ["Finding", "bottleneck", "findings"]

LEARNING = ("loss_calculation", "gradient_calculation", "optimizer_step", "advantage_calculation", "learn_encode")
PLAYING = ("env_step", "env_observe", "env_reset")
SMALL_BATCH = 512  # decisions: below, threads have too little to share
MUCH_IDLE = 0.10
CROWDED = 0.85  # of all cores: from here on, programs wait for each other


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and the share of the training thread's time that it is about."""

    share: float
    what: str
    change: str


def _shares(account: dict[str, Any]) -> dict[str, float]:
    return {span["name"]: span["share"] for span in account["spans"]}


def _waiting(profile: dict[str, Any], shares: dict[str, float]) -> Iterator[Finding]:
    helpers = [a for a in profile["accounts"] if a["name"].startswith("maple-team") and a["wall_s"] > 0]
    if not helpers:
        return
    idle = sum(a["idle_s"] for a in helpers) / sum(a["wall_s"] for a in helpers)
    both = (shares.get(IDLE, 0.0) + idle * len(helpers)) / (1 + len(helpers))
    if both < MUCH_IDLE:
        return
    facts, batches = profile["facts"], profile["distributions"].get("inference_batch")
    mean = batches["total"] / batches["count"] if batches and batches["count"] else 0.0
    what = f"threads wait for each other {both:.0%} of their time"
    if batches and mean < SMALL_BATCH * (1 + len(helpers)):
        tables = facts.get("tables")
        more = f"more tables (--set tables={2 * tables}, now {tables})" if tables else "more tables"
        yield Finding(both, f"{what}, and a batch has {mean:,.0f} decisions for {1 + len(helpers)} threads", more)
    elif idle > 0.5:
        fewer = len(helpers)
        yield Finding(both, f"{what}, the helpers {idle:.0%}", f"fewer threads (--set threads={fewer})")
    else:
        yield Finding(both, what, "larger minibatches, which give each thread more to do between two meetings")


def _learning(profile: dict[str, Any], shares: dict[str, float]) -> Iterator[Finding]:
    total = sum(shares.get(name, 0.0) for name in LEARNING)
    gradient = shares.get("loss_calculation", 0.0) + shares.get("gradient_calculation", 0.0)
    step, facts = shares.get("optimizer_step", 0.0), profile["facts"]
    minibatch = facts.get("minibatch")
    if gradient > 0 and step > 0.5 * gradient:
        change = f"a larger minibatch (now {minibatch})" if minibatch else "a larger minibatch"
        what = (
            f"learning takes {total:.0%}, and moving the weights {step / gradient:.1f} times what their gradient does"
        )
        yield Finding(total, what, change)
    elif total > 0:
        epochs = facts.get("epochs") or 0
        change = f"fewer epochs (now {epochs})" if epochs > 1 else "a narrower network (net.hidden)"
        largest = max(LEARNING, key=lambda name: shares.get(name, 0.0))
        yield Finding(total, f"learning takes {total:.0%}, most of it {largest} ({shares[largest]:.0%})", change)


def _acting(profile: dict[str, Any], shares: dict[str, float]) -> Iterator[Finding]:
    acting = shares.get("agent_action_selection", 0.0) + shares.get("agent_value_calculation", 0.0)
    batches = profile["distributions"].get("inference_batch")
    if acting > 0 and batches and batches["count"]:
        mean = batches["total"] / batches["count"]
        small = mean < SMALL_BATCH
        tables = profile["facts"].get("tables")
        change = f"more tables (now {tables})" if small else "a narrower network (net.hidden)"
        yield Finding(acting, f"choosing actions takes {acting:.0%}, in batches of {mean:,.0f} decisions", change)
    enemy = shares.get("enemy_turn", 0.0)
    if enemy > 0:
        yield Finding(enemy, f"opponents take {enemy:.0%}", "fewer scripted or past opponents (--opponents)")


def _crowded(profile: dict[str, Any]) -> Iterator[Finding]:
    """Other programs on the same cores: time that every span seems to take, and nobody works."""
    system, samples = profile["system"], profile["samples"]
    if not system or not samples:
        return
    cores = len(samples[-1]["cpu_per_core"])
    others = system["machine_cpu_percent"] / 100 - system["cpu_percent"] / (100 * cores)
    if others > MUCH_IDLE and system["machine_cpu_percent"] > 100 * CROWDED:
        yield Finding(others, f"other programs use {others:.0%} of the machine's cores", "a machine that is not shared")


def _beside(shares: dict[str, float]) -> Iterator[Finding]:
    """What is neither playing nor learning; worth a word as soon as it is more than a little."""
    limits = {
        "log": (0.02, "log less often"),
        "checkpoint": (0.05, "save less often (checkpoint_every_s)"),
        "evaluate": (0.05, "probe less often or with fewer hands (probe_every_s, probe_hands)"),
        UNTRACKED: (0.03, "put spans around the code that has none: with maple.perf.span(...)"),
        "build": (0.30, "a longer run: most of this one was its start"),
    }
    for name, (limit, change) in limits.items():
        share = shares.get(name, 0.0)
        if share > limit:
            yield Finding(share, f"{name} takes {share:.0%}", change)


def findings(profile: dict[str, Any]) -> list[Finding]:
    """All there is to say, what is about the most time first."""
    shares = _shares(profile["accounts"][0])
    playing = sum(shares.get(name, 0.0) for name in PLAYING)
    found = [*_crowded(profile), *_waiting(profile, shares), *_learning(profile, shares)]
    found += [*_acting(profile, shares), *_beside(shares)]
    if playing > 0:
        change = "more tables or threads (maple tune finds how many)"
        found.append(Finding(playing, f"playing the game takes {playing:.0%}", change))
    return sorted(found, key=lambda finding: -finding.share)


def bottleneck(profile: dict[str, Any]) -> str:
    """The bottleneck in a sentence."""
    found = findings(profile)
    if not found:
        return "Nothing stands out: no span that Maple knows took any time."
    first = found[0]
    return f"{first.what[0].upper()}{first.what[1:]}; what would change that: {first.change}."
