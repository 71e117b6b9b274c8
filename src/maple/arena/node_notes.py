"""What happens to a pool of bridge processes: counted, and kept where it has to be looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["PoolCounters", "PoolNotes"]

KEPT_ANOMALIES = 100
ANOMALIES = ("refused", "crashed")  # what is counted; a battle that a server dropped is only told of


@dataclass(slots=True)
class PoolCounters:
    """What happened to the pool, since the arena was made."""

    starts: int = 0
    crashes: int = 0
    hangs: int = 0
    recycled: int = 0
    lost: int = 0  # games that died with their process
    waves: int = 0  # frames: one a lane's wave
    decisions: int = 0
    battles: int = 0
    bytes: int = 0
    refusals: int = 0  # choices that the simulator did not take
    anomalies: int = 0  # of those, the ones that the mask should have known; and battles that crashed

    def report(self) -> dict[str, float]:
        """All of them, with what a decision cost."""
        decisions = max(1, self.decisions)
        per = {"bytes_per_decision": self.bytes / decisions, "frames_per_decision": self.waves / decisions}
        return {**asdict(self), **per}


@dataclass(slots=True)
class PoolNotes:
    """What the processes noted: anomalies with what repeats them, records of games, and what is told of the pool."""

    counters: PoolCounters
    log: Callable[[str], None] = lambda _: None  # told what happens to processes
    keep: Callable[[Mapping[str, Any]], None] = lambda _: None  # given every anomaly that is kept
    anomalies: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)  # of finished games, where the game keeps them

    def file(self, notes: Sequence[dict[str, Any]]) -> None:
        """Put what a process noted where it belongs."""
        for note in notes:
            if note["kind"] == "record":
                self.records.append(note)
            elif note["kind"] in ANOMALIES:
                self.counters.anomalies += 1
                if len(self.anomalies) < KEPT_ANOMALIES:
                    self.anomalies.append(note)
                    self.keep(note)
            else:
                self.log(f"the battle at table {note['table']} was lost: {note['reason']}")
