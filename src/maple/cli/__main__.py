"""The command `maple`, also as `python -m maple.cli`."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line.

    Loading it takes a second or two. A run whose machine is taken away or whose terminal is lost meanwhile has nothing
    to save, and ends well or goes on, as it does later.
    """
    if "train" in sys.argv[1:2]:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        if sys.platform != "win32":
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from maple.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
