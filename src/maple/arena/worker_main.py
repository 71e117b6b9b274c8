"""A worker process: hosts envs, plays a part of its tables at each command.

Started as `python -m maple.arena.worker_main`, so that no start method of the parent matters, nothing is pickled and
torch is never imported.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from maple.arena.child import READY, TAKE, begin_life, give_up, read_bytes, read_message, tell

__all__ = ["ENDED", "main"]

ENDED = 0x80  # commands are the numbers of parts, a byte each; answers the same, with this where a game has ended


def main() -> None:
    """Live as a worker."""
    parent, handle, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    answers = begin_life(parent)

    from maple.arena.host import Host
    from maple.core.errors import UserError
    from maple.perf.profiler import child_profile

    task = read_message()
    try:
        host = Host(task["name"], task["arguments"], task["count"], task["seed"], task["max_deaths"], tell)
        if host.plan.layout.words != task["view"]:
            raise UserError(
                f"{task['name']} has other spaces in a worker than in the trainer; make it the same each time"
            )
        os.write(answers, READY)
        with child_profile("worker", within="env_parallel_execution"):
            _serve(host, answers, handle, size, task)
        host.close()
    except UserError as error:
        give_up(answers, error)


def _serve(host: Any, answers: int, handle: str, size: int, task: dict[str, Any]) -> None:
    """Take tables when told to, then play."""
    from maple.perf.spans import IDLE, span

    with span("build"):
        from maple.arena.board import AT, COMMANDS, DONE, PLAYED, Board
        from maple.arena.memory import SharedBlock
        from maple.arena.patience import Patience, let_others_run
        from maple.games.external.spec import spec_of
    with span(IDLE):
        code = read_bytes(1)
    if code != TAKE:
        return
    with span("build"):
        board = Board(SharedBlock.attach(handle, size), spec_of(host.plan), task["tables"], task["workers"])
        slot = read_message()
        ranges: list[list[int]] = slot["ranges"]
        tables = [table for lo, hi in ranges for table in range(lo, hi)]
        control = board.control[slot["number"]].data
        at = board.control[slot["number"], AT : AT + 1].data
        host.take(board, tables, slot["first_table"], slot["tables_per_deal"], at)
    done = 0
    for part, (lo, hi) in enumerate(ranges):
        if lo == hi:
            continue  # it is all of other workers
        with span("env_reset"):
            ended = host.begin(lo, hi)
            done += 1
            os.write(answers, bytes([part | ENDED if ended else part]))
            control[DONE] = done
    clock, play, patience = time.perf_counter, host.play, Patience()
    while True:
        began = clock()
        with span(IDLE):
            if control[COMMANDS] == done:
                until = began + patience.limit_s()
                while control[COMMANDS] == done and clock() < until:
                    let_others_run()
            code = os.read(0, 1)  # a system call, not the counter alone, is what makes the actions visible here
        if not code:
            return
        called = clock()
        patience.waited(called - began)
        with span("env_step"):
            ended = play(*ranges[code[0]])
            done += 1
            control[PLAYED] += int(1e9 * (clock() - called))
            os.write(answers, bytes([code[0] | ENDED]) if ended else code)
            control[DONE] = done  # after the byte: whoever sees the counter move finds it, and need not sleep for it


if __name__ == "__main__":
    main()
