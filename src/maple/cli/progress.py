"""Live progress of a training run: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from maple.cli.output import notes
from maple.training.session import Progress as TrainingProgress

__all__ = ["LiveTraining", "clock_text"]

PLAIN_EVERY_S = 10.0


def clock_text(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class LiveTraining:
    """Shows each update; Ctrl-C asks the run to stop and save after the update under way."""

    def __init__(self, show: bool = True) -> None:
        self._show = show
        self._stop = False
        self._last_plain = 0.0
        self._bar = Progress(
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[line]}"),
            TimeElapsedColumn(),
            console=notes,
            disable=not (show and notes.is_terminal),
        )
        self._task = self._bar.add_task("", total=1.0, line="")

    def __enter__(self) -> LiveTraining:
        self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        signal.signal(signal.SIGINT, self._before)

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop:
            raise KeyboardInterrupt
        self._stop = True
        notes.print("stopping after this update, to save; Ctrl-C again to stop at once")

    def __call__(self, now: TrainingProgress) -> bool:
        line = self.line(now)
        self._bar.update(self._task, completed=now.progress, line=line)
        plain = self._show and not notes.is_terminal
        if plain and (time.monotonic() - self._last_plain >= PLAIN_EVERY_S or now.progress >= 1.0):
            self._last_plain = time.monotonic()
            notes.print(f"{now.progress:4.0%}  {line}", soft_wrap=True)
        return not self._stop

    @staticmethod
    def line(now: TrainingProgress) -> str:
        """One line of figures."""
        parts = [f"{now.steps / 1e6:.2f} M steps", f"{now.steps_per_s:,.0f} steps/s", f"ETA {clock_text(now.eta_s)}"]
        if "foul" in now.game:
            parts.append(f"foul {now.game['foul']:.1%}")
        if "win_rate" in now.game:
            parts.append(f"wins {now.game['win_rate']:.1%}")
        if "points_per_hand" in now.probe:
            parts.append(f"{now.probe['points_per_hand']:+.1f} points a hand against random")
        return "  ".join(parts)
