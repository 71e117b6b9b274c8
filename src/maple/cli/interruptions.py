"""What signals mean to a run, from its first moment to its last."""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, main_thread
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import typer

from maple.cli.output import notes

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

__all__ = ["Interruptions", "PreemptedError"]

PATIENCE_S = 5.0  # for the update under way, when the machine is taken away; some give ten seconds in all
AGAIN_S = 0.05  # until a signal is sent again that came where nothing may be raised


class PreemptedError(BaseException):
    """The machine is taken away (SIGTERM) while nothing is under way that would have to be saved.

    Like KeyboardInterrupt it is no Exception, so that nothing on its way takes it for a failure.
    """


SENT = {KeyboardInterrupt: signal.SIGINT, PreemptedError: signal.SIGTERM}


def _called_back(frame: FrameType | None) -> bool:
    """Whether the compiler's library is at work somewhere up the stack."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite."):
            return True
        frame = frame.f_back
    return False


def _send_here(number: signal.Signals) -> None:
    """Send a signal to the main thread, and end what it waits for where that can be done."""
    identity = main_thread().ident
    if sys.platform == "win32" or identity is None:
        interrupt_main(number)
    else:
        signal.pthread_kill(identity, number)


class Interruptions:
    """While training, Ctrl-C and SIGTERM ask the run to stop and save after the update under way (`stop`).

    After SIGTERM an update that takes long is not waited for (`hurry`); a person who pressed Ctrl-C may press it again.
    Before and after it Ctrl-C does what it always does, and SIGTERM ends the command well (exit code 0). When the
    terminal goes away (SIGHUP), the run goes on without it.

    A signal that comes where nothing may be raised is sent again a moment later: in a finalizer, where Python drops
    exceptions, or in what the compiler calls back while it loads a kernel, where one that is dropped ends in a crash.
    """

    def __init__(self) -> None:
        self.stop = self.hung_up = False
        self._training = self._ending = False
        self._preempted_at: float | None = None
        self._before: dict[int, Any] = {}
        self._dropped_before = sys.unraisablehook
        self._again: Timer | None = None
        self._terminals = [stream for stream in (0, 1, 2) if os.isatty(stream)]

    def __enter__(self) -> Interruptions:
        self._before = {signal.SIGINT: signal.signal(signal.SIGINT, self._on_interrupt)}
        self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._on_terminate)
        if hasattr(signal, "SIGHUP"):
            self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hang_up)
        self._dropped_before, sys.unraisablehook = sys.unraisablehook, self._on_dropped
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.unraisablehook = self._dropped_before
        if self._again is not None:
            self._again.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is PreemptedError:
            notes.print("stopped; whatever was trained is saved, and the same command goes on")
            raise typer.Exit(0) from None

    @property
    def preempted(self) -> bool:
        """Whether the machine is taken away."""
        return self._preempted_at is not None

    def hurry(self) -> bool:
        """Whether what is under way has had its time since the machine was taken away."""
        return self._preempted_at is not None and time.monotonic() - self._preempted_at > PATIENCE_S

    @contextmanager
    def training(self) -> Iterator[None]:
        """While there is something to save."""
        self._training = True
        try:
            yield
        finally:
            self._training = False

    def _on_interrupt(self, _number: int, frame: FrameType | None) -> None:
        if self.stop or not self._training:
            self._raise(KeyboardInterrupt, frame)
            return
        self.stop = True
        notes.print("stopping after this update, to save; Ctrl-C again to stop at once")

    def _on_terminate(self, _number: int, frame: FrameType | None) -> None:
        self.stop = True
        if self._preempted_at is None:
            self._preempted_at = time.monotonic()
        if not self._training:
            self._raise(PreemptedError, frame)

    def _raise(self, error: type[BaseException], frame: FrameType | None) -> None:
        """Raise a signal's exception, now or as soon as it can be; that of SIGTERM once, so that what ends may end."""
        if error is PreemptedError and self._ending:
            return
        if _called_back(frame):
            self._send_again(error)
            return
        self._ending = error is PreemptedError
        raise error

    def _on_dropped(self, dropped: UnraisableHookArgs) -> None:
        """Raise a signal's exception elsewhere, where one was dropped."""
        if dropped.exc_type in SENT:
            self._ending = False
            self._send_again(dropped.exc_type)
        else:
            self._dropped_before(dropped)

    def _send_again(self, error: type[BaseException]) -> None:
        self._again = Timer(AGAIN_S, _send_here, [SENT[error]])
        self._again.daemon = True
        self._again.start()

    def _on_hang_up(self, _number: int, _frame: FrameType | None) -> None:
        """Write to nowhere from now on: a write to a terminal that is gone would end the run."""
        self.hung_up = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in self._terminals:
            os.dup2(nowhere, stream)
        os.close(nowhere)
