"""Where time goes: spans, and an account of its own for each thread.

An account gives every moment of its thread to exactly one span, the innermost that is open. So the self times of an
account add up to its wall-clock by construction, whatever runs beside it; waiting is a span like any other (`idle`),
and what no span covers is `untracked`.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

__all__ = [
    "IDLE",
    "UNTRACKED",
    "Account",
    "Distribution",
    "Event",
    "Node",
    "Recorder",
    "Standing",
    "count",
    "current",
    "observe",
    "span",
    "split",
]

IDLE = "idle"
UNTRACKED = "untracked"
EVENTS = 50_000  # spans that an account keeps for the trace, the newest ones: some 6 MB
READS = 5  # of an account whose thread goes on meanwhile

Clock = Callable[[], float]


@dataclass(slots=True)
class Node:
    """A span at its place in the tree: below which spans it was open."""

    name: str
    parent: Node | None
    self_s: float = 0.0
    count: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    def child(self, name: str) -> Node:
        """The span of that name below this one."""
        found = self.children.get(name)
        if found is None:
            found = self.children[name] = Node(name, self)
        return found

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
        """This span and all below it, each with its path."""
        yield path, self
        for name, child in list(self.children.items()):
            yield from child.walk((*path, name))


@dataclass(frozen=True, slots=True)
class Standing:
    """What a span has come to by some moment."""

    path: tuple[str, ...]
    name: str
    self_s: float
    count: int


@dataclass(frozen=True, slots=True)
class Event:
    """One span that was opened and closed, for the trace."""

    name: str
    began: float
    ended: float


class Account:
    """One thread's time."""

    def __init__(self, name: str, clock: Clock, events: int = EVENTS) -> None:
        self.name = name
        self.root = Node(UNTRACKED, None)
        self.node = self.root
        self.events: deque[tuple[str, float, float]] = deque(maxlen=events)
        self.clock = clock
        self.began = self.mark = clock()
        self._thread = threading.current_thread()

    def begin_in(self, name: str) -> None:
        """Have a span of this name open from the account's first moment to its last: nothing is left untracked."""
        self.node = self.root.child(name)
        self.node.count = 1

    def split(self, seconds: Mapping[str, float]) -> None:
        """Give parts of the time since the last mark to spans below the open one: what a kernel measured inside."""
        now = self.clock()
        elapsed, node = now - self.mark, self.node
        scale = min(1.0, elapsed / max(sum(seconds.values()), 1e-12))
        for name, part in seconds.items():
            child = node.child(name)
            child.self_s += part * scale
            child.count += 1
            elapsed -= part * scale
        node.self_s += max(0.0, elapsed)
        self.mark = now

    def standing(self, now: float) -> tuple[float, list[Standing]]:
        """How long it lasted up to `now`, and every span with its time until then; for any thread, at any time.

        A thread that is gone ended before. One that goes on meanwhile is read again, or else what it closes between two
        reads would count twice.
        """
        for _ in range(READS):
            mark, node = self.mark, self.node
            found = [(path, each, each.self_s, each.count) for path, each in self.root.walk()]
            if self.mark == mark:
                break
        still_open = max(0.0, now - mark) if self._thread.is_alive() else 0.0
        spans = [
            Standing(path, each.name, self_s + (still_open if each is node else 0.0), count)
            for path, each, self_s, count in found
        ]
        return mark + still_open - self.began, spans

    def trace(self) -> list[Event]:
        """The newest spans, in the order in which they ended."""
        return [Event(*event) for event in list(self.events)]


@dataclass(slots=True)
class Distribution:
    """How often which size came: buckets are powers of two, a bucket b holds sizes from b to 2b - 1."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = 0.0
    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, size: float) -> None:
        """One more of this size."""
        self.count += 1
        self.total += size
        self.least, self.most = min(self.least, size), max(self.most, size)
        bucket = 1 << (int(size).bit_length() - 1) if size >= 1 else 0
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def merge(self, other: Distribution) -> None:
        """Take in what another process saw."""
        self.count += other.count
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        for bucket, number in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + number


class Recorder:
    """Keeps the accounts of all threads of this process while it is entered; there is one at a time."""

    def __init__(self, clock: Clock = time.perf_counter, events: int = EVENTS) -> None:
        self.clock = clock
        self.accounts: list[Account] = []
        self.counters: dict[str, float] = {}
        self.distributions: dict[str, Distribution] = {}
        self.began = self.ended = 0.0
        self._process = os.getpid()
        self._events = events
        self._lock = threading.Lock()
        self._mine = threading.local()

    def __enter__(self) -> Recorder:
        global _active
        if _active is not None and _active._process == os.getpid():  # a forked child has its parent's in memory
            raise RuntimeError("a recorder is running in this process already; stop it before another one starts")
        self.began = self.clock()
        _active = self
        self.account()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _active
        _active = None
        self.ended = self.clock()

    def account(self) -> Account:
        """The account of the thread that asks; opened when it asks first."""
        try:
            return self._mine.account  # type: ignore[no-any-return]
        except AttributeError:
            account = Account(threading.current_thread().name, self.clock, self._events)
            self._mine.account = account
            with self._lock:
                self.accounts.append(account)
            return account

    def count(self, name: str, amount: float) -> None:
        """Add to a counter."""
        with self._lock:
            self.counters[name] = self.counters.get(name, 0.0) + amount

    def observe(self, name: str, size: float) -> None:
        """Add to a distribution."""
        with self._lock:
            self.distributions.setdefault(name, Distribution()).add(size)

    def tallies(self) -> dict[str, Any]:
        """Counters and distributions as plain figures, as they are now."""
        with self._lock:
            sizes = {name: asdict(found) for name, found in self.distributions.items()}
            return {"counters": dict(self.counters), "distributions": sizes}


class _Span:
    """An open span of the thread that entered it."""

    __slots__ = ("_account", "_began", "_name", "_node")

    def __init__(self, account: Account, name: str) -> None:
        self._account = account
        self._name = name

    def __enter__(self) -> None:
        account = self._account
        node = account.node
        now = self._began = account.clock()
        node.self_s += now - account.mark
        account.mark = now
        account.node = self._node = node.child(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        account, node = self._account, self._node
        now = account.clock()
        account.node.self_s += now - account.mark
        account.mark = now
        node.count += 1
        account.node = node.parent or account.root
        account.events.append((self._name, self._began, now))


_active: Recorder | None = None
_NOTHING: AbstractContextManager[None] = nullcontext()


def span(name: str) -> AbstractContextManager[None]:
    """Count the time inside `with span("name"):` under that name, if somebody records; else it costs nearly nothing."""
    recorder = _active
    return _NOTHING if recorder is None else _Span(recorder.account(), name)


def split(seconds: Mapping[str, float]) -> None:
    """Give these seconds, spent since the open span began, to spans of these names below it."""
    if _active is not None:
        _active.account().split(seconds)


def current() -> str | None:
    """The name of the span that this thread has open, if somebody records."""
    recorder = _active
    return None if recorder is None else recorder.account().node.name


def count(name: str, amount: float = 1.0) -> None:
    """Add to a counter, if somebody records: `process_starts`, `messages`, `bytes` or one's own."""
    if _active is not None:
        _active.count(name, amount)


def observe(name: str, size: float) -> None:
    """Add to the distribution of a size, if somebody records."""
    if _active is not None:
        _active.observe(name, size)
