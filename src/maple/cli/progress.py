"""Live progress of a training run: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from maple.cli.interruptions import Interruptions
from maple.cli.output import notes

if TYPE_CHECKING:
    from maple.training.session import Progress as TrainingProgress

__all__ = ["LiveTraining", "clock_text", "line_of", "telling"]

PLAIN_EVERY_S = 10.0


def clock_text(seconds: float) -> str:
    """1:02:03 or 2:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def telling(title: str) -> Iterator[Callable[[str], None]]:
    """Say how far something is: in a line that changes on a terminal, in a line now and then elsewhere."""
    last = float("-inf")
    with notes.status(escape(title)) as status:

        def tell(text: str) -> None:
            nonlocal last
            status.update(escape(text))
            if not notes.is_terminal and time.monotonic() - last >= PLAIN_EVERY_S:
                last = time.monotonic()
                notes.print(text, markup=False, soft_wrap=True)

        yield tell


class LiveTraining:
    """Shows each update, and answers whether the run is to go on."""

    def __init__(self, interruptions: Interruptions, probe_against: str, show: bool = True) -> None:
        self._interruptions, self._probe_against, self._show = interruptions, probe_against, show
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
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, now: TrainingProgress) -> bool:
        if self._interruptions.hung_up:
            self._bar.stop()
            self._show = False
        line = line_of(asdict(now), self._probe_against)
        self._bar.update(self._task, completed=now.progress, line=line)
        plain = self._show and not notes.is_terminal
        if plain and (time.monotonic() - self._last_plain >= PLAIN_EVERY_S or now.progress >= 1.0):
            self._last_plain = time.monotonic()
            notes.print(f"{now.progress:4.0%}  {line}", soft_wrap=True)
        return not self._interruptions.stop


def line_of(now: Mapping[str, Any], probe_against: str) -> str:
    """One line of figures, from a progress or from its record."""
    game, probe, figures = now["game"], now["probe"], now["figures"]
    parts = [
        f"{now['steps'] / 1e6:.2f} M steps" if now["steps"] >= 1e6 else f"{now['steps']:,} steps",
        f"{now['steps_per_s']:,.0f} steps/s",
        f"ETA {clock_text(now['eta_s'])}",
    ]
    if now.get("lost"):  # which records of older runs do not have
        parts.append(f"{now['lost']:,} games lost")
    if "foul" in game:
        parts.append(f"foul {game['foul']:.1%}")
    if "win_rate" in game:
        parts.append(f"wins {game['win_rate']:.1%}")
    parts += [f"{name} {game[name]:,.2f}" for name in ("return", "points_per_game") if name in game]
    if "pool_win_rate" in figures:
        parts.append(f"beats its past {figures['pool_win_rate']:.1%}")
    if "points_per_hand" in probe:
        parts.append(f"{probe['points_per_hand']:+.1f} points a hand against {probe_against}")
    elif "win_rate" in probe:
        parts.append(f"wins {probe['win_rate']:.1%} against {probe_against}")
    return "  ".join(parts)
