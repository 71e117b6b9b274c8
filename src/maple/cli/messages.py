"""What a run tells a person who is not watching."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple.cli.evaluate import metric_name, metric_texts
from maple.cli.progress import clock_text
from maple.core.config import Config
from maple.core.errors import MapleError
from maple.runs.notify import Message, Notifier
from maple.runs.secrets import secrets_of, without_secrets

if TYPE_CHECKING:
    from maple.training.session import Progress

__all__ = ["Messages"]


class Messages:
    """Turns what happens in a run into messages; silent without a notifier."""

    def __init__(self, notifier: Notifier | None, run: str, addresses: Sequence[str]) -> None:
        self._notifier, self._run, self._addresses = notifier, run, addresses

    def _tell(self, title: str, lines: list[str], kind: str = "info", topic: str = "") -> None:
        if self._notifier is not None:
            self._notifier.tell(Message(f"{self._run}: {title}", "\n".join(lines), kind, topic))

    def started(self, config: Config) -> None:
        """The run begins, or goes on."""
        end = f"{config.steps:,} steps" if config.steps else f"{config.minutes:g} minutes"
        self._tell("started", [f"game {config.name}, {config.algo}, seed {config.seed}, until {end}"])

    def watching(self, tell: Callable[[Progress], bool]) -> Callable[[Progress], bool]:
        """The same `tell`, which also sends a table of progress now and then."""

        def both(now: Progress) -> bool:
            self._tell(f"{now.progress:.0%}", _table(asdict(now)), topic="progress")
            return tell(now)

        return both

    def saved(self, checkpoint: Path) -> None:
        """A checkpoint is on disk."""
        self._tell("checkpoint", [f"saved {checkpoint.parent.name}/{checkpoint.name}"], topic="checkpoint")

    def failed(self, error: BaseException) -> None:
        """The run ended by an error."""
        cause = f"{type(error).__name__}: {error}" if not isinstance(error, MapleError) else str(error)
        self._tell("failed", [without_secrets(cause, [*self._addresses, *secrets_of(os.environ)])], "failure")

    def ended(self, summary: dict[str, Any]) -> None:
        """The run ended well."""
        lines = _table(summary)
        for row in summary.get("evaluations", []):
            found, interval = metric_texts(row)
            against = ", ".join(row["against"]) or "nobody"
            lines.append(f"against {against}: {metric_name(row['metric'])} {found} ({interval})")
        self._tell("finished" if summary["progress"] >= 1.0 else "stopped and saved", lines, "success")

    def close(self, timeout_s: float) -> None:
        """Send what is left, as far as that goes in this time."""
        if self._notifier is not None:
            self._notifier.close(timeout_s)


def _table(now: dict[str, Any]) -> list[str]:
    lines = [
        f"steps {now['steps']:,} ({now['progress']:.0%}), games {now['games']:,}",
        f"{now['steps_per_s']:,.0f} steps/s, {clock_text(now['elapsed_s'])} of training",
    ]
    if now["lost"]:
        lines.append(f"{now['lost']:,} games lost, {now['worker_deaths']:,} processes died")
    lines += [f"{name} {value:.3g}" for name, value in now["game"].items()]
    return lines + [f"{name} {value:.3g} in the last look" for name, value in now["probe"].items()]
