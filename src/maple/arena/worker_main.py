"""A worker process: hosts envs, plays a half of its tables at each command.

Started as `python -m maple.arena.worker_main`, so that no start method of the parent matters, nothing is pickled and
torch is never imported. Commands come as bytes on stdin, answers go to what was stdout; whatever an env prints goes to
stderr, which the parent keeps as its log. End of file on stdin means that the parent is gone.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from typing import Any

__all__ = ["ENDED", "FATAL", "READY", "TAKE", "main"]

READY, TAKE, FATAL = b"R", b"T", b"F"  # beside the numbers of halves, which are bytes 0 and 1
ENDED = (b"\x02", b"\x03")  # the same in answers where a game has ended
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def _die_with(parent: int) -> None:
    """End when the parent does, at whatever moment and whatever this process is doing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, int(signal.SIGKILL))
    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _read(count: int) -> bytes:
    """So many bytes of stdin, or fewer at its end."""
    found = b""
    while len(found) < count:
        more = os.read(0, count - len(found))
        if not more:
            break
        found += more
    return found


def _message() -> dict[str, Any]:
    content = _read(int.from_bytes(_read(4), "little"))
    return json.loads(content)  # type: ignore[no-any-return]


def _own_stdout() -> int:
    """Take stdout for answers; from now on prints go to stderr."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def main() -> None:
    """Live as a worker."""
    parent, handle, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    _die_with(parent)
    for name in ("SIGINT", "SIGHUP"):  # a Ctrl-C in the terminal is the parent's to answer
        if name in signal.Signals.__members__:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
    answers = _own_stdout()
    faulthandler.enable()

    from maple.arena.host import Host
    from maple.core.errors import UserError
    from maple.perf.profiler import child_profile

    task = _message()
    try:
        host = Host(task["name"], task["arguments"], task["count"], task["seed"], task["max_deaths"], _tell)
        if host.plan.layout.words != task["view"]:
            raise UserError(
                f"{task['name']} has other spaces in a worker than in the trainer; make it the same each time"
            )
        os.write(answers, READY)
        with child_profile("worker"):
            _serve(host, answers, handle, size, task)
        host.close()
    except UserError as error:
        text = str(error).encode()[:4000]
        os.write(answers, FATAL + len(text).to_bytes(4, "little") + text)
        sys.exit(2)


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _serve(host: Any, answers: int, handle: str, size: int, task: dict[str, Any]) -> None:
    """Take tables when told to, then play."""
    from maple.perf.spans import IDLE, span

    with span("build"):
        from maple.arena.board import COMMANDS, DONE, PLAYED, Board
        from maple.arena.memory import SharedBlock
        from maple.arena.patience import Patience
        from maple.games.external.spec import spec_of
    with span(IDLE):
        code = _read(1)
    if code != TAKE:
        return
    with span("build"):
        board = Board(SharedBlock.attach(handle, size), spec_of(host.plan), task["tables"], task["workers"])
        slot = _message()
        ranges: list[list[int]] = slot["ranges"]
        tables = [table for lo, hi in ranges for table in range(lo, hi)]
        control = board.control[slot["number"]].data
        host.take(board, tables, slot["first_table"], slot["tables_per_deal"], slot["number"])
    done = 0
    for half, (lo, hi) in enumerate(ranges):
        with span("env_reset"):
            ended = host.begin(lo, hi)
            done += 1
            control[DONE] = done
            os.write(answers, ENDED[half] if ended else bytes([half]))
    clock, rest, play, patience = time.perf_counter, _rest(), host.play, Patience()
    while True:
        began = clock()
        with span(IDLE):
            if control[COMMANDS] == done:
                until = began + patience.limit_s()
                while control[COMMANDS] == done and clock() < until:
                    rest()
            code = os.read(0, 1)  # a system call, not the counter alone, is what makes the actions visible here
        if not code:
            return
        called = clock()
        patience.waited(called - began)
        with span("env_step"):
            ended = play(*ranges[code[0]])
            done += 1
            control[PLAYED] += int(1e9 * (clock() - called))
            control[DONE] = done
            os.write(answers, ENDED[code[0]] if ended else code)


def _rest() -> Any:
    return os.sched_yield if sys.platform != "win32" else lambda: time.sleep(0)


if __name__ == "__main__":
    main()
