"""How long to look for an answer before sleeping: as long as answers usually take, if that is short.

To wake a process that sleeps costs tens of microseconds, more than a batch of cheap steps; to look for one that is long
in coming costs a core.
"""

from __future__ import annotations

import os
import sys
import time

__all__ = ["CROWDED_S", "SHORT_S", "Patience", "let_others_run"]

SHORT_S = 400e-6  # waits that usually take longer are slept through from the start
# Where cores are short, only so short ones are not: whoever is awake and gives its core away is the last to get one
# again, where the kernel brings back at once who slept (10 µs a step, two workers on two cores: 1.18 against 1.09).
CROWDED_S = 100e-6
MOST_S = 1e-3
SHARE = 0.1  # of the newest wait in what is usual


class Patience:
    """Remembers how long waits were."""

    def __init__(self, short_s: float = SHORT_S) -> None:
        self._usual_s, self._short_s = 0.0, short_s

    def limit_s(self) -> float:
        """How long to look this time."""
        return min(MOST_S, 3 * self._usual_s) if self._usual_s < self._short_s else 0.0

    def waited(self, seconds: float) -> None:
        """A wait has taken so long, asleep or not."""
        self._usual_s += SHARE * (min(seconds, 10 * SHORT_S) - self._usual_s)


if sys.platform == "win32":

    def let_others_run() -> None:
        """Give the core to whoever waits for it."""
        time.sleep(0)
else:
    let_others_run = os.sched_yield
