"""An actor process: envs, the network on one thread, and everybody who plays at its tables.

Started as `python -m maple.training.fleet.actor_main`. A command asks for a block, by its number and the version of the
weights to play it with; the answer is a byte once the block is written.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Any

from maple.arena.child import READY, TAKE, begin_life, give_up, read_bytes, read_message, tell

__all__ = ["COMMAND", "WRITTEN", "main"]

COMMAND = struct.Struct("<qq")  # a block's number, a version of the weights
WRITTEN = b"W"


def main() -> None:
    """Live as an actor."""
    parent, handle, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    answers = begin_life(parent)

    import torch

    from maple.core.errors import UserError
    from maple.perf.profiler import child_profile
    from maple.perf.spans import span
    from maple.training.fleet.player import Player

    torch.set_num_threads(1)
    try:
        player = Player(read_message(), tell)
        os.write(answers, READY)
        with child_profile("actor"), span("env_parallel_execution"):
            _serve(player, answers, handle, size)
        player.close()
    except UserError as error:
        give_up(answers, error)


def _serve(player: Any, answers: int, handle: str, size: int) -> None:
    """Take tables when told to, then play blocks."""
    from maple.arena.memory import SharedBlock
    from maple.perf.spans import IDLE, span

    with span(IDLE):
        code = read_bytes(1)
    if code != TAKE:
        return
    with span("build"):
        player.take(SharedBlock.attach(handle, size), read_message())
    while True:
        with span(IDLE):
            command = read_bytes(COMMAND.size)
        if len(command) < COMMAND.size:
            return
        player.play(*COMMAND.unpack(command))
        os.write(answers, WRITTEN)


if __name__ == "__main__":
    main()
