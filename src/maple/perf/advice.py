"""What bounds a run and what to change, from the figures of its profile.

Every finding says how much of the training thread's time it is about; what is about the most comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from maple.perf.spans import IDLE, UNTRACKED

__all__ = ["Finding", "bottleneck", "crowding", "findings"]

LEARNING = ("loss_calculation", "gradient_calculation", "optimizer_step", "advantage_calculation", "learn_encode")
REPLAY = ("replay_sample", "replay_update")
PLAYING = ("env_step", "env_observe")
STARTING = ("build", "env_reset", "env_close")
FOR_PLAY = ("env_step", "env_observe", "env_parallel_execution")  # where the trainer waits for other processes
SMALL_BATCH = 512  # decisions: below, threads have too little to share
MUCH_IDLE = 0.10
BUSY = 0.60  # processes that work more than this have no time for more
CROWDED = 0.85  # of all cores: from here on, programs wait for each other


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and the share of the training thread's time that it is about."""

    share: float
    what: str
    change: str

    def __str__(self) -> str:
        return f"{self.what[0].upper()}{self.what[1:]}; what would change that: {self.change}."


@dataclass(slots=True)
class _Run:
    """What findings are made of; shares are of the training thread."""

    facts: dict[str, Any]
    helpers: list[dict[str, Any]]  # accounts of the team's other threads
    players: list[dict[str, Any]]  # accounts of the workers or actors that played
    apart: bool  # whether the game plays in other processes
    batch: float  # decisions that are chosen for together, in the mean
    cores: int | None
    children_busy: float  # cores that other processes of the run used
    draws_ahead: bool
    shares: dict[str, float] = field(default_factory=dict)  # work by span
    starting: float = 0.0  # making arenas and ending them, waiting included
    waiting: float = 0.0  # for workers, actors or battles
    drawing: float = 0.0  # for minibatches that another thread draws
    meeting: float = 0.0  # for threads of the team
    meeting_to_learn: float = 0.0  # of that

    @classmethod
    def of(cls, profile: dict[str, Any]) -> _Run:
        """Sort the training thread's time by what it was spent or waited for."""
        accounts, samples = profile["accounts"], profile["samples"]
        children = [sum(list(sample["cpu_per_process"].values())[1:]) / 100 for sample in samples]
        batches = profile["distributions"].get("inference_batch")
        run = cls(
            facts=profile["facts"],
            helpers=[a for a in accounts if a["name"].startswith("maple-team") and a["wall_s"] > 0],
            players=_players(accounts),
            apart=_plays_apart(profile),
            batch=batches["total"] / batches["count"] if batches and batches["count"] else 0.0,
            cores=len(samples[-1]["cpu_per_core"]) if samples else None,
            children_busy=sum(children) / len(children) if children else 0.0,
            draws_ahead=any(account["name"] == "maple-prefetch" for account in accounts),
        )
        for row in accounts[0]["tree"]:
            run._add(row["path"] or [UNTRACKED], row["self_s"] / max(accounts[0]["wall_s"], 1e-9))
        return run

    def _add(self, path: list[str], share: float) -> None:
        *above, name = path
        if any(part in STARTING for part in path):
            self.starting += share
        elif name != IDLE:
            self.shares[name] = self.shares.get(name, 0.0) + share
        elif self.apart and above and above[-1] in FOR_PLAY:
            self.waiting += share
        elif above and above[-1] == "prefetch":
            self.drawing += share
        else:
            self.meeting += share
            self.meeting_to_learn += share if "update" in above else 0.0

    def sum(self, names: tuple[str, ...]) -> float:
        """The share of several spans."""
        return sum(self.shares.get(name, 0.0) for name in names)

    @property
    def small(self) -> bool:
        """Whether batches are too small to be worth their fixed costs."""
        return 0 < self.batch < SMALL_BATCH

    @property
    def more_tables(self) -> str:
        """The setting, in words."""
        tables = self.facts.get("tables")
        return f"more tables (--set tables={2 * tables}, now {tables})" if tables else "more tables"

    @property
    def larger_minibatch(self) -> str:
        """The setting, in words."""
        algo, minibatch = self.facts.get("algo"), self.facts.get("minibatch")
        setting = f"--set {algo}.minibatch={2 * minibatch}, " if algo and minibatch else ""
        return f"a larger minibatch ({setting}now {minibatch})" if minibatch else "a larger minibatch"


def _plays_apart(profile: dict[str, Any]) -> bool:
    """Whether other processes play the game; they may also have been tried, and not been taken."""
    if not profile["counters"].get("process_starts"):
        return False
    paths = [row["path"] for row in profile["accounts"][0]["tree"]]
    waits = [path for path in paths if path[-1:] == [IDLE] and path[-2:-1] and path[-2] in FOR_PLAY]
    return any(not any(part in STARTING for part in path) for path in waits)


def _players(accounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of workers and actors those that played in the run: neither stood by nor were only tried out."""
    played = [a for a in accounts if a["process"].startswith(("worker-", "actor-"))]
    played = [a for a in played if any(span["name"] == "env_step" for span in a["spans"])]
    longest = max((a["wall_s"] for a in played), default=0.0)
    return [a for a in played if a["wall_s"] >= longest / 2]


def _who_plays(run: _Run) -> tuple[str, int, float]:
    """What the processes are that play, how many, and how much of their time they work."""
    if run.players:
        kind = run.players[0]["process"].partition("-")[0]
        return kind, len(run.players), 1 - sum(a["idle_s"] for a in run.players) / sum(a["wall_s"] for a in run.players)
    kind = next((kind for kind in ("actor", "worker") if run.facts.get(f"{kind}s")), "process")
    known = run.facts.get(f"{kind}s", run.facts.get("threads"))  # another program's processes are as many as threads
    count = known if isinstance(known, int) else run.cores or 1
    return kind, count, run.children_busy / count


def _for_play(run: _Run) -> Iterator[Finding]:
    """Other processes play: the trainer waits for them, or they for the trainer."""
    if not run.apart:
        return
    kind, count, busy = _who_plays(run)
    several = f"{kind}es" if kind == "process" else f"{kind}s"
    who = f"{count} {kind if count == 1 else several}"
    flag = {"worker": "--workers {}", "actor": "--set actors.count={}"}.get(kind, "--set threads={}").format
    if run.waiting > MUCH_IDLE and busy < BUSY:
        what = f"the trainer waits {run.waiting:.0%} of its time for {who}, busy {busy:.0%} of theirs"
        yield Finding(run.waiting, what, f"{run.more_tables}, so that one plays while the other thinks")
    elif run.waiting > MUCH_IDLE:
        what = f"the trainer waits {run.waiting:.0%} of its time for {who}, which are busy {busy:.0%}"
        more = f"more of them ({flag(count + 1)}, now {count})"
        full = run.cores is not None and count >= run.cores
        yield Finding(run.waiting, what, f"a cheaper step, or more than {run.cores} cores" if full else more)
    messages = run.sum(PLAYING)
    if messages > 0 and kind != "actor":
        what = f"handing decisions to {who} and back takes {messages:.0%}"
        fewer = f"{run.more_tables} or fewer {several} ({flag(count - 1)}, now {count})"
        change = fewer if busy < BUSY and (kind == "worker" or count > 1) else run.more_tables
        idle = f", and they are idle {1 - busy:.0%} of their time" if run.players else ""
        yield Finding(messages, what + idle, f"{change}; maple tune finds how many")


def _threads(run: _Run) -> Iterator[Finding]:
    """Threads of the team wait for each other."""
    if not run.helpers:
        return
    count = 1 + len(run.helpers)
    idle = sum(a["idle_s"] for a in run.helpers) / sum(a["wall_s"] for a in run.helpers)
    # Where other processes play, helpers have nothing to do most of the time, and that costs nobody anything.
    both = run.meeting if run.apart else (run.meeting + max(0.0, idle - run.starting) * len(run.helpers)) / count
    if both < MUCH_IDLE:
        return
    what = f"threads wait for each other {both:.0%} of their time"
    fewer = f"fewer threads (--set threads={count - 1})"
    if run.meeting_to_learn > run.meeting / 2:
        yield Finding(both, f"{what}, most of it while they learn", f"{run.larger_minibatch}, or {fewer}")
    elif run.batch and run.batch < SMALL_BATCH * count:
        yield Finding(both, f"{what}, and a batch has {run.batch:,.0f} decisions for {count} threads", run.more_tables)
    elif idle > 0.5:
        yield Finding(both, f"{what}, the helpers {idle:.0%}", fewer)
    else:
        yield Finding(both, what, f"{run.larger_minibatch}, which gives each thread more to do between two meetings")


def _learning(run: _Run) -> Iterator[Finding]:
    total, gradient = run.sum(LEARNING), run.sum(("loss_calculation", "gradient_calculation"))
    step = run.shares.get("optimizer_step", 0.0)
    if gradient > 0 and step > 0.5 * gradient:
        what = (
            f"learning takes {total:.0%}, and moving the weights {step / gradient:.1f} times what their gradient does"
        )
        yield Finding(total, what, run.larger_minibatch)
    elif total > 0:
        largest = max(LEARNING, key=lambda name: run.shares.get(name, 0.0))
        what = f"learning takes {total:.0%}, most of it {largest} ({run.shares[largest]:.0%})"
        yield Finding(total, what, _less_learning(run.facts))
    besides = run.shares.get("update", 0.0)
    if besides > 0:
        what = f"what each update costs beside its gradient takes {besides:.0%}"
        yield Finding(besides, what, f"fewer updates of {run.larger_minibatch}")


def _less_learning(facts: dict[str, Any]) -> str:
    epochs, updates = facts.get("epochs") or 0, facts.get("updates_per_step") or 0
    if epochs > 1:
        return f"fewer epochs (now {epochs})"
    if updates > 1:
        return f"fewer updates for as many decisions (--set dqn.updates_per_step={updates // 2}, now {updates})"
    if updates:
        every = facts.get("train_every")
        return f"learning less often (dqn.train_every, now {every} decisions)"
    return "a narrower network (net.hidden)"


def _memory(run: _Run) -> Iterator[Finding]:
    """Storing decisions and drawing them again."""
    drawing = run.sum(REPLAY)
    if drawing > 0:
        dqn = run.facts.get("algo") == "dqn"
        change = _less_learning(run.facts)
        if dqn and not run.draws_ahead:
            change = f"drawing in a thread of its own (--set dqn.prefetch=true), or {change}"
        yield Finding(drawing, f"drawing what is learned from takes {drawing:.0%}", change)
    if run.drawing > MUCH_IDLE / 2:
        what = f"learning waits {run.drawing:.0%} for minibatches that are drawn ahead"
        group = run.facts.get("draw_ahead")
        change = f"larger groups (--set dqn.draw_ahead={2 * group}, now {group})" if group else "larger groups"
        yield Finding(run.drawing, what, change)
    storing = run.shares.get("rollout_store", 0.0)
    if storing > 0:
        what = f"storing decisions takes {storing:.0%}, {run.batch:,.0f} at a time"
        yield Finding(storing, what, run.more_tables if run.small else "faster memory: no setting makes it cheaper")


def _acting(run: _Run) -> Iterator[Finding]:
    acting, enemy = run.sum(("agent_action_selection", "agent_value_calculation")), run.shares.get("enemy_turn", 0.0)
    if acting > 0 and run.batch:
        what = f"choosing actions takes {acting:.0%}, in batches of {run.batch:,.0f} decisions"
        small = f"more tables (now {run.facts.get('tables')})"
        yield Finding(acting, what, small if run.small else "a narrower network (net.hidden)")
    if enemy > 0:
        yield Finding(enemy, f"opponents take {enemy:.0%}", "fewer scripted or past opponents (--opponents)")
    playing = run.sum(PLAYING)
    if playing > 0 and not run.apart:
        change = "more tables or threads (maple tune finds how many)"
        yield Finding(playing, f"playing the game takes {playing:.0%}", change)


def _beside(run: _Run) -> Iterator[Finding]:
    """What is neither playing nor learning; worth a word as soon as it is more than a little."""
    limits = {
        "log": (0.02, "log less often"),
        "checkpoint": (0.05, "save less often (checkpoint_every_s)"),
        "evaluate": (0.05, "probe less often or with fewer hands (probe_every_s, probe_hands)"),
        UNTRACKED: (0.03, "put spans around the code that has none: with maple.perf.span(...)"),
    }
    for name, (limit, change) in limits.items():
        share = run.shares.get(name, 0.0)
        if share > limit:
            yield Finding(share, f"{name} takes {share:.0%}", change)
    if run.starting > 0.30:
        yield Finding(run.starting, f"starting and ending takes {run.starting:.0%}", "a longer run")


def crowding(profile: dict[str, Any]) -> str | None:
    """A sentence if other programs used the same cores: time that every span seems to take, and nobody works."""
    system, samples = profile["system"], profile["samples"]
    if not system or not samples:
        return None
    cores = len(samples[-1]["cpu_per_core"])
    others = system["machine_cpu_percent"] / 100 - system["cpu_percent"] / (100 * cores)
    if others <= MUCH_IDLE or system["machine_cpu_percent"] <= 100 * CROWDED:
        return None
    return (
        f"Other programs used {others:.0%} of the machine's cores meanwhile, so every span took longer than it has to."
    )


def findings(profile: dict[str, Any]) -> list[Finding]:
    """All there is to say of the run itself, what is about the most time first."""
    run = _Run.of(profile)
    found = [*_for_play(run), *_threads(run), *_learning(run), *_memory(run), *_acting(run), *_beside(run)]
    return sorted(found, key=lambda finding: -finding.share)


def bottleneck(profile: dict[str, Any]) -> str:
    """The bottleneck in a sentence."""
    found = findings(profile)
    return str(found[0]) if found else "Nothing stands out: no span that Maple knows took any time."
