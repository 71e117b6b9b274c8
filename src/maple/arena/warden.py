"""Somebody who ends the programs that envs have started where nobody else can: the trainer was killed.

A worker dies with the trainer, at once and whatever it is doing, so it cannot end what its envs have started. They are
in its group; a shell that waits at the other end of a pipe hears of the trainer's end and ends the groups. A program
that has left its group is not reached, and Windows has no groups: there it stays behind.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

__all__ = ["Warden"]

SHELL = "/bin/sh"
SCRIPT = """
groups=
while read -r word group; do
  case $word in
    watch) groups="$groups $group" ;;
    forget) kept=; for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done; groups=$kept ;;
    rest) exit 0 ;;
  esac
done
for one in $groups; do kill -s KILL -- "-$one"; done
"""


class Warden:
    """Ends the groups that it watches when this process is gone; where that cannot be had, does nothing."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if sys.platform != "win32":
            with suppress(OSError):  # there is no shell
                self._process = subprocess.Popen(
                    [SHELL, "-c", SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,
                )

    def watch(self, group: int) -> None:
        """End this group too, from now on."""
        self._say(f"watch {group}")

    def forget(self, group: int) -> None:
        """Leave this group alone: it has ended, and its number may come to be another's."""
        self._say(f"forget {group}")

    def close(self) -> None:
        """End, and leave all groups as they are."""
        self._say("rest")
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()

    def _say(self, words: str) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):  # somebody has ended it
                self._process.stdin.write(f"{words}\n".encode())
