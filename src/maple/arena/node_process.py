"""One bridge process: its pipes, its shared block, its answers."""

from __future__ import annotations

import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
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

__all__ = ["NodeProcess", "ProcessGoneError", "RefusedError", "Transport", "Wave", "shared_memory_here", "try_program"]

Transport = Literal["auto", "shared", "pipe"]
_COMMAND, _ANSWER = struct.Struct("<4I"), struct.Struct("<12I")
CONFIGURE, ASSIGN, ACT, RETIRE, STOP, PLAY = range(6)
READY, WAVE, NOTE, FAILED, PLAYED = 0, 2, 3, 4, 5  # any other is a sign of life
GOODBYE_S = 10.0  # battles on a busy server take a moment to be given up
START_S = 120.0  # to load the simulator and, for a spare, to play itself warm, on a busy machine


class ProcessGoneError(MapleError):
    """A bridge process died, hung or spoke nonsense."""


class RefusedError(MapleError):
    """A bridge process cannot go on, for a reason that is told to the user."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(str(failure))
        self.failure = failure


def shared_memory_here() -> bool:
    """Whether memory can be shared by descriptor, which leaves nothing behind."""
    return sys.platform == "linux"


def try_program(game: Bridged) -> None:
    """Start the program that plays a game, and end it again: what it refuses to play is told."""
    process = NodeProcess.start(game.program(0, 1), 0, "auto", START_S, 0.0)
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


@dataclass(slots=True)
class NodeProcess:
    """Started by `start`; all reads have a time limit."""

    program: Program
    popen: subprocess.Popen[bytes]
    commands: int
    answers: int
    block: mmap.mmap | None
    errors: Any
    timeout_s: float
    readers: Readers = field(default_factory=open_readers)  # of the answers
    lanes: dict[int, _Area] = field(default_factory=dict)
    ahead: dict[int, list[Wave]] = field(default_factory=dict)  # waves of other lanes than the one asked for
    notes: list[dict[str, Any]] = field(default_factory=list)
    ready: dict[str, Any] | None = None
    retiring: bool = False

    @staticmethod
    def start(program: Program, block_bytes: int, transport: Transport, timeout_s: float, warm_s: float) -> NodeProcess:
        """Start a process and tell it the rules; `wait_ready` says when it has understood."""
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
        process = NodeProcess(program, popen, commands, answers, block, errors, timeout_s)
        process.readers.register(answers)
        process._send(CONFIGURE, 0, 0, json.dumps({"warm": warm_s, "rules": dict(program.rules)}).encode())
        return process

    def wait_ready(self) -> dict[str, Any]:
        """What the process says of itself once it has understood the rules; a failure comes as {"failed": …}."""
        while self.ready is None:
            self._receive(max(START_S, self.timeout_s))
        return self.ready

    def assign(self, lane: int, tables: Sequence[int], games: Sequence[int], at: int) -> None:
        """Give a lane its tables and the first game of each; its first wave follows."""
        self.lanes[lane] = _Area(at, 2 * len(tables), len(tables))
        task = {"tables": [int(table) for table in tables], "games": [int(game) for game in games], "at": at}
        self._send(ASSIGN, lane, 0, json.dumps(task).encode())

    def act(self, lane: int, epoch: int, action: NDArray[np.int16]) -> None:
        """Answer a lane's last wave."""
        self._send(ACT, lane, epoch, action.astype("<i2").tobytes())

    def retire(self) -> None:
        """Begin no more games; lanes run dry."""
        self.retiring = True
        self._send(RETIRE, 0, 0, b"")

    def wave(self, lane: int) -> Wave:
        """A lane's next wave."""
        while not self.ahead.get(lane):
            self._receive()
            if self.ready and "failed" in self.ready:
                raise RefusedError(self.ready["failed"])
        return self.ahead[lane].pop(0)

    def play_alone(self, tables: int, seconds: float) -> None:
        """Have the process play by itself, without encoding; `played` waits for the count."""
        self._send(PLAY, 0, 0, json.dumps({"tables": tables, "seconds": seconds}).encode())

    def played(self) -> dict[str, Any]:
        """What play_alone() came to."""
        kind, body = self._receive()
        if kind != PLAYED:
            raise ProcessGoneError(f"a bridge process answered {kind} where a count was due")
        return body

    def close(self) -> None:
        """End the process: kindly, then not."""
        self._send(STOP, 0, 0, b"")
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

    def _read(self, count: int, patience_s: float) -> bytearray:
        buffer, view = bytearray(count), 0
        while view < count:
            with span(IDLE):
                ready = self.readers.ready(patience_s)
            if not ready:
                raise ProcessGoneError(f"a bridge process said nothing for {patience_s:g} s")
            chunk = os.read(self.answers, count - view)
            if not chunk:
                code = self.popen.wait()
                raise ProcessGoneError(f"a bridge process exited with {code}: {self.last_words() or 'no message'}")
            buffer[view : view + len(chunk)] = chunk
            view += len(chunk)
        return buffer

    def _receive(self, patience_s: float | None = None) -> tuple[int, dict[str, Any]]:
        """Take one answer and put it where it belongs."""
        patience_s = patience_s or self.timeout_s
        kind, length, lane, *rest = _ANSWER.unpack(self._read(_ANSWER.size, patience_s))
        body = self._read(length, patience_s)
        if kind == WAVE:
            self.ahead.setdefault(lane, []).append(self._wave(self.lanes[lane], rest, body))
            return kind, {}
        content: dict[str, Any] = json.loads(bytes(body))
        if kind == NOTE:
            self.notes.append(content)
        elif kind == READY:
            self._check_ready(content)
            self.ready = content
        elif kind == FAILED and content["kind"] == "crashed":
            raise ProcessGoneError(f"a bridge process failed: {content['message']}")
        elif kind == FAILED:
            self.ready = {"failed": content}
        return kind, content

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

    def _wave(self, area: _Area, rest: list[int], body: bytearray) -> Wave:
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
