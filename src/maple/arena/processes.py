"""Worker processes: started ahead of need, watched, replaced.

A keeper thread starts them, so that one always stands by with its modules imported and its envs made, and ends those
that hang or hold too much memory. It lives as long as the arena: on Linux "die with the parent" follows the thread that
started a process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import psutil

from maple.arena.child import FATAL, READY, TAKE
from maple.arena.memory import SharedBlock
from maple.arena.readers import open_readers
from maple.arena.warden import Warden
from maple.core.errors import ConfigError, GameError
from maple.perf import spans

__all__ = ["Keeper", "Watch", "WorkerProcess"]

START_LIMIT_S = 120.0
FAILED_STARTS = 3  # one after the other, before it is called hopeless
RETRY_S = 0.5  # after a failed start, so that what was short for a moment may be there again
PROGRAMS_EVERY_S = 1.0  # between two looks at whose child each process of the machine is, which take milliseconds
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerProcess:
    """One process: its pipes and its log."""

    def __init__(
        self, module: str, number: int, task: dict[str, Any], block: SharedBlock, log: Callable[[str], None]
    ) -> None:
        self.name = f"worker process {number}"
        self.started = time.monotonic()
        self.ended_because = ""  # why it was killed, where we did it
        own = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(os.getpid()), block.handle, str(block.size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=block.descriptors,
            env=own | dict.fromkeys(SINGLE_THREADED, "1"),
            bufsize=0,
            process_group=0,  # its own, which can be ended with all that its envs have started
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.commands, self.answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._log = log
        self._reader = threading.Thread(target=self._keep_log, name=f"maple-log-{number}", daemon=True)
        try:
            self._readers = open_readers()
            self._readers.register(self.answers)
            self._reader.start()
            self._send(b"", task)
        except (OSError, RuntimeError):  # no descriptors or threads are left: nobody would ever end it
            self._end_group()
            self._process.wait()
            raise

    @property
    def pid(self) -> int:
        """The system's number for it."""
        return self._process.pid

    def _send(self, code: bytes, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        with suppress(BrokenPipeError):  # then it is dead, which the end of its answers tells
            os.write(self.commands, code + len(text).to_bytes(4, "little") + text)

    def take(self, slot: dict[str, Any]) -> None:
        """Have it play the tables of a slot from now on."""
        self.name = f"worker {slot['number']}"
        self._send(TAKE, slot)

    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def is_ready(self) -> bool:
        """Whether it has made its envs; raises what it could not do."""
        if not self._readers.ready(0.0):
            return False
        code = os.read(self.answers, 1)
        if code == FATAL:
            raise GameError(self.last_words())
        if code != READY:
            raise ConfigError(f"{self.name} {self.how_it_ended()} while it started; see the run's log")
        return True

    def last_words(self) -> str:
        """The sentence that comes after FATAL."""
        size = int.from_bytes(os.read(self.answers, 4), "little")
        return os.read(self.answers, size).decode(errors="replace")  # it may be cut within a letter

    def kill(self, because: str) -> None:
        """End it at once."""
        if self.alive():
            self.ended_because = self.ended_because or because
            self._end_group()

    def _end_group(self) -> None:
        """End it and the processes of its envs: emulators, say."""
        if sys.platform == "win32":
            self._process.kill()
        else:
            with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS says so of a group of zombies
                os.killpg(self._process.pid, signal.SIGKILL)

    def how_it_ended(self) -> str:
        """In words; waits until it has."""
        self._end_group()  # its answers have ended, so it is dead or as good as dead
        code = self._process.wait()
        if self.ended_because:
            return self.ended_because
        if code < 0:
            named = {one.value: one.name for one in signal.Signals}  # real-time signals have no names
            return f"died by {named.get(-code, f'signal {-code}')}"
        return f"ended with exit code {code}"

    def close(self, grace_s: float = 2.0) -> None:
        """Let it close its envs and end; kill it if it does not."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._end_group()
            process.wait()
        self._reader.join(grace_s)
        process.stdout.close()

    def _keep_log(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with stream, spans.span("log"):
            while True:
                with spans.span(spans.IDLE):
                    line = stream.readline()
                if not line:
                    return
                with suppress(OSError):  # a disk that is full costs words; unread, they would stop the worker
                    self._log(f"{self.name} (pid {self.pid}): {line.decode(errors='replace').rstrip()}")


class Keeper:
    """Keeps `spares` processes standing by, and has `watch` called a few times a second."""

    def __init__(
        self, start: Callable[[int], WorkerProcess], first: int, spares: int, watch: Callable[[], None]
    ) -> None:
        self._start, self._watch = start, watch
        self._wanted, self._spares = first, spares  # spares are started once the first play, so as not to delay them
        self._ready: list[WorkerProcess] = []
        self._starting: list[WorkerProcess] = []
        self._error: Exception | None = None
        self._any_started = False
        self._broken: Exception | None = None  # what ended the thread
        self._failures, self._number, self._start_at = 0, 0, 0.0
        self.starts = 0
        self._warden, self._watched = Warden(), list[WorkerProcess]()
        self._closing = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._live, name="maple-keeper", daemon=True)
        self._thread.start()

    def spare(self, wanted: int) -> WorkerProcess | None:
        """A process that is ready, or None; `wanted` are needed now, beside those that are to stand by."""
        with self._change:
            if self._error is not None:
                raise self._error
            taken = self._ready.pop(0) if self._ready else None
            self._wanted = self._spares + wanted - (taken is not None)
            self._change.notify_all()
            return taken

    def several(self, count: int) -> list[WorkerProcess]:
        """The first processes, as many as there are slots."""
        with self._change:
            with spans.span(spans.IDLE):
                while len(self._ready) < count and self._error is None:
                    self._change.wait(0.5)
            if self._error is not None:
                raise self._error
            taken, self._ready = self._ready[:count], self._ready[count:]
            self._wanted = self._spares
            return taken

    def check(self) -> None:
        """Raise what ended the thread, if something did: nobody watches for hanging processes any more."""
        if self._broken is not None:
            raise self._broken

    def close(self) -> None:
        """End the thread and all that stands by."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._thread.join()
        for process in (*self._starting, *self._ready):
            process.kill("is not needed any more")
            process.close()
        self._warden.close()

    def _live(self) -> None:
        with spans.span("watch_processes"):
            while not self._closing and self._broken is None:
                try:
                    self._attend()
                except Exception as error:  # the thread's top: whoever waits for it has to hear of it
                    self._broken = error
                    self._give_up(error)
                with spans.span(spans.IDLE), self._change:
                    if not self._closing:
                        self._change.wait(0.01 if self._starting else 0.1)

    def _attend(self) -> None:
        """Start what is missing, see who is ready, look after those that play."""
        with self._change:
            missing = self._wanted - len(self._ready) - len(self._starting)
        if self._error is None:
            for _ in range(missing):
                if time.monotonic() >= self._start_at:
                    self._start_one()
            self._look_after_starting()
        for process in [one for one in self._watched if not one.alive()]:
            self._watched.remove(process)
            self._warden.forget(process.pid)
        self._watch()

    def _start_one(self) -> None:
        self._number += 1
        try:
            process = self._start(self._number)
        except (OSError, RuntimeError) as error:  # no memory, no descriptors, no threads are left
            need = "free memory, raise the limits of open files and processes, or play with fewer workers"
            self._note_failure(ConfigError(f"no process can be started for the envs: {error}; {need}"))
            return
        self._starting.append(process)
        self._watched.append(process)
        self._warden.watch(process.pid)
        self.starts += 1
        spans.count("process_starts")

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        self._start_at = time.monotonic() + RETRY_S
        if self._failures >= FAILED_STARTS:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        with self._change:
            self._error = self._error or error
            self._change.notify_all()

    def _look_after_starting(self) -> None:
        for process in list(self._starting):
            try:
                if time.monotonic() - process.started > START_LIMIT_S:
                    process.kill("did not start in time")
                if not process.is_ready():
                    continue
                self._failures, self._any_started = 0, True
                with self._change:
                    self._ready.append(process)
                    self._change.notify_all()
            except (GameError, ConfigError) as error:
                process.close()
                self._note_failure(error)
                if isinstance(error, GameError) and not self._any_started:  # an env that can never be made
                    self._give_up(error)
            self._starting.remove(process)


class Watch:
    """Kills processes that hang or hold too much memory."""

    def __init__(self, step_limit_s: float, memory_mb: float) -> None:
        self._step_limit_s, self._memory_mb = step_limit_s, memory_mb
        self._seen_at: dict[int, tuple[tuple[int, ...], float]] = {}
        self._children: dict[int, list[int]] = {}
        self._children_at = -inf

    def look(self, number: int, process: WorkerProcess, busy: bool, at: tuple[int, ...]) -> None:
        """Look at the process of a slot; `at` changes with every step that it plays while it is `busy`."""
        now, state = time.monotonic(), (process.pid, *at)
        seen, since = self._seen_at.get(number, ((), now))
        if not busy or state != seen:
            self._seen_at[number] = (state, now)
        elif now - since > self._step_limit_s:
            process.kill(f"hung for {self._step_limit_s:g} s and was killed")
        if self._memory_mb and self._held_mb(process.pid, now) > self._memory_mb:
            process.kill(f"held more than {self._memory_mb:g} MB and was killed")

    def _held_mb(self, pid: int, now: float) -> float:
        """The memory of a worker and of the programs that its envs have started."""
        if now - self._children_at >= PROGRAMS_EVERY_S:
            self._children, self._children_at = _by_parent(), now
        held, known, left = 0.0, {pid}, [pid]
        while left:
            one = left.pop()
            held += _resident_mb(one)
            new = set(self._children.get(one, ())) - known  # a number that is used again may go round in circles
            known |= new
            left += new
        return held


def _by_parent() -> dict[int, list[int]]:
    """The processes of this machine by whose children they are."""
    found: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        found.setdefault(int(process.info["ppid"] or 0), []).append(int(process.pid))
    return found


def _resident_mb(pid: int) -> float:
    """The memory that a process holds, or 0 when it is gone or its figures are not for us."""
    try:
        return float(psutil.Process(pid).memory_info().rss / 2**20)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0
