"""What processes note: anomalies are kept, as far as there is room; what servers drop takes none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maple.arena.node_notes import KEPT_ANOMALIES, PoolCounters, PoolNotes


def test_dropped_battles_leave_room_for_anomalies() -> None:
    kept, logged = list[Mapping[str, Any]](), list[str]()
    notes = PoolNotes(PoolCounters(), logged.append, kept.append)
    notes.file([{"kind": "dropped", "table": 3, "game": n, "reason": "it is gone"} for n in range(KEPT_ANOMALIES + 1)])
    assert (notes.anomalies, kept, notes.counters.anomalies) == ([], [], 0)
    assert logged == ["the battle at table 3 was lost: it is gone"] * (KEPT_ANOMALIES + 1)
    crashed = [{"kind": "crashed", "table": 0, "game": n} for n in range(KEPT_ANOMALIES + 1)]
    notes.file([{"kind": "record", "table": 0, "game": 0, "lines": []}, *crashed])
    assert kept == notes.anomalies == crashed[:KEPT_ANOMALIES]
    assert notes.counters.anomalies == KEPT_ANOMALIES + 1
    assert len(notes.records) == 1
