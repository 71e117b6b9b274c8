"""What a run tells while it goes on."""

from __future__ import annotations

import numpy as np
import pytest

from maple.training.session import RECENT_S, Window


def test_speed_counts_what_this_process_did_in_the_last_seconds() -> None:
    now = [100.0]
    window = Window(lambda: now[0])
    nothing = np.zeros(0), np.zeros(0, np.int64)
    window.add(5_000_000, *nothing)  # where a resumed run stands
    assert window.speed() == 0.0
    for second in range(1, 41):
        now[0] += 1.0
        window.add(5_000_000 + 100 * second if second <= 20 else 5_002_000 + 300 * (second - 20), *nothing)
        if second == 20:
            assert window.speed() == pytest.approx(100.0)
    assert window.speed() == pytest.approx(300.0)
    assert len(window.games()[0]) == 0
    assert now[0] - 100.0 > 2 * RECENT_S
