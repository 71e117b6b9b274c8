"""What every process that an arena starts does first, and how it hears of its tasks.

Commands come as bytes on stdin, answers go to what was stdout; whatever an env prints goes to stderr, which the parent
keeps as its log. End of file on stdin means that the parent is gone. Nothing heavy is imported here.
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

__all__ = ["FATAL", "READY", "TAKE", "begin_life", "die_with", "give_up", "read_bytes", "read_message", "tell"]

READY, TAKE, FATAL = b"R", b"T", b"F"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def begin_life(parent: int) -> int:
    """Die with the parent, leave signals to it, take stdout for answers; returns where they go."""
    die_with(parent)
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):  # a terminal or a scheduler sends them to all; the parent answers
        if name in signal.Signals.__members__:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # which is written line by line: the last words of an env that dies are not lost
    faulthandler.enable()
    return answers


def die_with(parent: int) -> None:
    """End when the parent does, at whatever moment and whatever this process is doing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, int(signal.SIGKILL))
    if _is_orphan(parent):
        os._exit(1)
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while not _is_orphan(parent):
        time.sleep(1.0)
    os._exit(1)


if sys.platform == "win32":
    import _winapi
    import msvcrt

    def _is_orphan(parent: int) -> bool:
        """Whether nobody holds the other end of stdin: the number of the parent stays the same when it is gone."""
        try:
            _winapi.PeekNamedPipe(msvcrt.get_osfhandle(0), 0)
        except BrokenPipeError:
            return True
        return False
else:

    def _is_orphan(parent: int) -> bool:
        """Whether the parent is gone."""
        return os.getppid() != parent


def read_bytes(count: int) -> bytes:
    """So many bytes of stdin, or fewer at its end."""
    found = b""
    while len(found) < count:
        more = os.read(0, count - len(found))
        if not more:
            break
        found += more
    return found


def read_message() -> dict[str, Any]:
    """A message of the parent's."""
    content = read_bytes(int.from_bytes(read_bytes(4), "little"))
    return json.loads(content)  # type: ignore[no-any-return]


def tell(text: str) -> None:
    """Say something for the run's log."""
    sys.stderr.write(text)
    sys.stderr.flush()


def give_up(answers: int, error: Exception) -> None:
    """End the process, and with it the run, with a sentence for the user."""
    text = str(error).encode()[:4000]
    os.write(answers, FATAL + len(text).to_bytes(4, "little") + text)
    sys.exit(2)
