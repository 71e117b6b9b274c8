"""One bridge process: its pipes, its shared block, its answers."""

from __future__ import annotations

import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maple.arena.memory import SharedBlock
from maple.arena.readers import Readers, open_readers
from maple.core.errors import MapleError
from maple.games.bridged import Bridged, Program
from maple.perf.spans import IDLE, span

__all__ = ["NodeProcess", "ProcessGoneError", "Transport", "Wave", "shared_memory_here", "try_program"]

Transport = Literal["auto", "shared", "pipe"]
_COMMAND, _ANSWER = struct.Struct("<4I"), struct.Struct("<12I")
CONFIGURE, ASSIGN, ACT, RETIRE, STOP, PLAY = range(6)
READY, WAVE, NOTE, FAILED, PLAYED = 0, 2, 3, 4, 5  # any other is a sign of life
GOODBYE_S = 10.0  # battles on a busy server take a moment to be given up
START_S = 120.0  # to load the simulator, on a busy machine
CHUNK = 1 << 16  # bytes read at a time: what a pipe holds


class ProcessGoneError(MapleError):
    """A bridge process died, hung or spoke nonsense."""


def shared_memory_here() -> bool:
    """Whether memory can be shared by descriptor, which leaves nothing behind."""
    return sys.platform == "linux"


def try_program(game: Bridged) -> None:
    """Start the program that plays a game, and end it again: what it refuses to play is told."""
    process = NodeProcess.start(game.program(0, 1), 0, "auto")
    try:
        said = process.wait_ready()
    finally:
        process.close()
    if "failed" in said:
        raise game.refuse(said["failed"])


@dataclass(frozen=True, slots=True)
class Wave:
    """All decisions of a lane that wait, and its games that ended; valid until the lane's next actions are sent."""

    epoch: int
    rows: NDArray[Any]
    ended: NDArray[Any]
    battles: int  # finished by the lane's process since the lane was assigned
    refusals: int
    memory_mib: int
    bytes: int


@dataclass(slots=True)
class _Area:
    """A lane's part of the shared block."""

    at: int
    rows: int
    ended: int
    epoch: int = 0


@dataclass(slots=True, eq=False)
class NodeProcess:
    """Started by `start`. Answers are taken in as they come, so that nobody waits for the rest of one."""

    program: Program
    popen: subprocess.Popen[bytes]
    commands: int
    answers: int
    block: mmap.mmap | None
    errors: Any
    readers: Readers = field(default_factory=open_readers)  # of the answers
    lanes: dict[int, _Area] = field(default_factory=dict)
    ahead: dict[int, list[Wave]] = field(default_factory=dict)  # waves that were not taken yet, by lane
    notes: list[dict[str, Any]] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)  # of what it played alone
    ready: dict[str, Any] | None = None
    retiring: bool = False
    owed: int = 0  # waves that it was asked for and has not sent
    heard_s: float = field(default_factory=time.monotonic)  # when it last spoke, or was asked after a rest
    _kept: bytearray = field(default_factory=bytearray)  # the beginning of an answer

    @staticmethod
    def start(program: Program, block_bytes: int, transport: Transport, warm_s: float = 0.0) -> NodeProcess:
        """Start a process and tell it the rules; `wait_ready` says when it has understood.

        Until its first command it plays by itself for `warm_s`, so as to be as fast as an old hand.
        """
        shared = transport == "shared" or (transport == "auto" and shared_memory_here())
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        if shared:
            shared_block = SharedBlock(max(mmap.PAGESIZE, block_bytes))
            block = shared_block.buffer
            their_in, commands = os.pipe()
            answers, their_out = os.pipe()
            ends = (their_in, their_out, *shared_block.descriptors)
            words = [*program.command, *(str(fd) for fd in ends)]
            # A session of its own: a Ctrl-C in the terminal is the owner's to answer, and then to end its processes.
            popen = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=ends,
                start_new_session=True,
            )
            os.close(their_in)
            os.close(their_out)
            shared_block.close()
        else:
            words = [*program.command, "0", "1", "-1"]
            popen = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
            assert popen.stdin is not None
            assert popen.stdout is not None
            commands, answers, block = popen.stdin.fileno(), popen.stdout.fileno(), None
        process = NodeProcess(program, popen, commands, answers, block, errors)
        process.readers.register(answers)
        process._send(CONFIGURE, 0, 0, json.dumps({"warm": warm_s, "rules": dict(program.rules)}).encode())
        return process

    def wait_ready(self) -> dict[str, Any]:
        """What the process says of itself once it has understood the rules; a failure comes as {"failed": …}."""
        while self.ready is None:
            self._wait()
        return self.ready

    def is_silent(self, limit_s: float, now: float) -> bool:
        """Whether it owes an answer and has said nothing for so long; to start it may take longer."""
        limit_s = limit_s if self.ready is not None else max(START_S, limit_s)
        return (self.owed > 0 or self.ready is None) and now - self.heard_s > limit_s

    def assign(self, lane: int, tables: Sequence[int], games: Sequence[int], at: int) -> None:
        """Give a lane its tables and the first game of each; its first wave follows."""
        self.lanes[lane] = _Area(at, 2 * len(tables), len(tables))
        task = {"tables": [int(table) for table in tables], "games": [int(game) for game in games], "at": at}
        self._owe()
        self._send(ASSIGN, lane, 0, json.dumps(task).encode())

    def act(self, lane: int, epoch: int, action: NDArray[np.int16]) -> None:
        """Answer a lane's last wave."""
        self._owe()
        self._send(ACT, lane, epoch, action.astype("<i2").tobytes())

    def retire(self) -> None:
        """Begin no more games; lanes run dry."""
        self.retiring = True
        self._send(RETIRE, 0, 0, b"")

    def play_alone(self, tables: int, seconds: float) -> None:
        """Have the process play by itself, without encoding; `played` waits for the count."""
        self._send(PLAY, 0, 0, json.dumps({"tables": tables, "seconds": seconds}).encode())

    def played(self) -> dict[str, Any]:
        """What play_alone() came to."""
        while not self.counts:
            self._wait()
        return self.counts.pop(0)

    def dismiss(self) -> None:
        """Have it end as soon as it can; `close` waits for that."""
        self._send(STOP, 0, 0, b"")

    def close(self) -> None:
        """End the process: kindly, then not."""
        self.dismiss()
        if self.popen.stdin is None:
            os.close(self.commands)
            os.close(self.answers)
        else:
            self.popen.stdin.close()
        try:
            self.popen.wait(timeout=GOODBYE_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        if self.popen.stdout is not None:
            self.popen.stdout.close()
        self.errors.close()
        # The block is unmapped when the last array over it is gone.

    def last_words(self) -> str:
        """The end of what the process printed."""
        self.errors.seek(0)
        return str(self.errors.read()[-2000:].decode(errors="replace")).strip()

    def _send(self, kind: int, lane: int, epoch: int, body: bytes) -> None:
        message = memoryview(_COMMAND.pack(kind, lane, epoch, len(body)) + body)
        try:
            while message:
                message = message[os.write(self.commands, message) :]
        except BrokenPipeError:
            return  # it died; the next read finds out

    def _owe(self) -> None:
        if self.owed == 0:
            self.heard_s = time.monotonic()
        self.owed += 1

    def _wait(self) -> None:
        """Take in what comes next."""
        with span(IDLE):
            ready = self.readers.ready(START_S)
        if not ready:
            raise ProcessGoneError(f"a bridge process said nothing for {START_S:g} s")
        self.take_in()

    def take_in(self) -> None:
        """Read what has come and put every whole answer where it belongs."""
        chunk = os.read(self.answers, CHUNK)
        if not chunk:
            code = self.popen.wait()
            raise ProcessGoneError(f"a bridge process exited with {code}: {self.last_words() or 'no message'}")
        self.heard_s = time.monotonic()
        kept = self._kept
        kept += chunk
        while len(kept) >= _ANSWER.size:
            kind, length, lane, *rest = _ANSWER.unpack_from(kept)
            end = _ANSWER.size + length
            if len(kept) < end:
                return
            body = bytes(kept[_ANSWER.size : end])
            del kept[:end]
            self._file(kind, lane, rest, body)

    def _file(self, kind: int, lane: int, rest: list[int], body: bytes) -> None:
        if kind == WAVE:
            self.owed -= 1
            self.ahead.setdefault(lane, []).append(self._wave(self.lanes[lane], rest, body))
            return
        content: dict[str, Any] = json.loads(body)
        if kind == NOTE:
            self.notes.append(content)
        elif kind == PLAYED:
            self.counts.append(content)
        elif kind == READY:
            self._check_ready(content)
            self.ready = content
        elif kind == FAILED and content["kind"] == "crashed":
            raise ProcessGoneError(f"a bridge process failed: {content['message']}")
        elif kind == FAILED:
            self.ready = {"failed": content}

    def _check_ready(self, said: Mapping[str, Any]) -> None:
        program = self.program
        if (said["schema"], said["row"], said["ended"]) != (
            program.schema,
            program.row.itemsize,
            program.ended.itemsize,
        ):
            raise MapleError(
                f"the bridge encodes by schema {said['schema']}, this side reads {program.schema}; reinstall"
            )

    def _wave(self, area: _Area, rest: list[int], body: bytes) -> Wave:
        epoch, count, ended_count, battles, refusals, memory, *_ = rest
        row, end = self.program.row, self.program.ended
        source: Any = body if self.block is None else self.block
        first = 0 if self.block is None else area.at
        second = count * row.itemsize if self.block is None else area.at + area.rows * row.itemsize
        rows = np.frombuffer(source, row, count, first) if count else np.zeros(0, row)
        ended = np.frombuffer(source, end, ended_count, second) if ended_count else np.zeros(0, end)
        area.epoch += 1
        stale = epoch != area.epoch or (rows["epoch"] != epoch).any() or (ended["epoch"] != epoch).any()
        if stale:
            raise ProcessGoneError(f"a bridge process sent wave {epoch} where {area.epoch} was due")
        size = _ANSWER.size + count * row.itemsize + ended_count * end.itemsize
        return Wave(epoch, rows, ended, battles, refusals, memory, size)
