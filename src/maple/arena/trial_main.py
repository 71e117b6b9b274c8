"""A trial of an env in a process of its own, since nobody knows yet what it does: what it costs, told as it goes.

Started as `python -m maple.arena.trial_main`. Whoever started it reads the figures from shared memory and ends it when
it has taken long enough.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from maple.arena.child import READY, begin_life, give_up, read_message, tell

__all__ = ["DONE", "FIGURES", "READY_S", "STEP_S", "main"]

TABLES = 4
ENOUGH_S = 0.25  # of play
FOR_EVER = 10**9
# Figures: seconds to make an env and begin its game, seconds of one step with its row, whether the trial is over.
READY_S, STEP_S, DONE, FIGURES = range(4)


def main() -> None:
    """Live as a trial."""
    parent, handle, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    answers = begin_life(parent)

    import numpy as np

    from maple.arena.host import Host
    from maple.arena.memory import SharedBlock
    from maple.core.errors import UserError
    from maple.games.external.locate import make_env

    task = read_message()
    figures = np.frombuffer(SharedBlock.attach(handle, size), np.float64, FIGURES)
    try:
        make_env(task["name"], task["arguments"]).close()  # the first has to import all that the env needs
        os.write(answers, READY)
        began = time.perf_counter()
        host = Host(task["name"], task["arguments"], TABLES, 0, FOR_EVER, tell)
        _play(host, figures, began)
    except UserError as error:
        give_up(answers, error)


def _play(host: Any, figures: Any, began: float) -> None:
    """Random play for a while. Writes figures."""
    import numpy as np

    from maple.arena.board import Board
    from maple.games.external.spec import spec_of

    spec, clock = spec_of(host.plan), time.perf_counter
    board = Board(bytearray(Board.size(spec, TABLES, 1)), spec, TABLES, 1)
    host.take(board, list(range(TABLES)), 0, 1, None)
    host.begin(0, TABLES)
    figures[READY_S] = (clock() - began) / TABLES
    rng, mask = np.random.default_rng(0), host.plan.layout.mask_of(board.view)
    played_s, rounds = 0.0, -1
    while played_s < ENOUGH_S:
        board.action[:] = (rng.random(mask.shape) * mask).argmax(axis=-1)
        called = clock()
        host.play(0, TABLES)
        passed = clock() - called
        rounds += 1
        played_s += passed if rounds else 0.0  # the first is warm-up
        figures[STEP_S] = (played_s / rounds if rounds else passed) / TABLES
    figures[DONE] = 1.0
    host.close()


if __name__ == "__main__":
    main()
