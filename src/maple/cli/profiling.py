"""What is recorded of one sitting of a run: a profile, [PERF] lines, or nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from maple.cli.output import notes, warn
from maple.cli.profile import profiles_of, save_profile
from maple.core.config import Config, DqnConfig
from maple.core.errors import RunError
from maple.games import is_external
from maple.perf import Profiler, ShortLine
from maple.perf.spans import IDLE, span
from maple.runs.store import RunFolder

if TYPE_CHECKING:
    from maple.training.session import Progress

__all__ = ["Profiled"]


class Profiled:
    """Records a sitting while it is entered, if it is to have a profile of this name, or a [PERF] line now and then.

    The profile is written at every checkpoint, by a thread of its own, and at the end, however that comes. A run that
    goes on gets a profile for each sitting: NAME, NAME-2 and so on.
    """

    def __init__(self, run: RunFolder, name: str | None, perf_every: float | None) -> None:
        self._run, self._name, self._perf_every = run, name, perf_every
        self._profiler = Profiler() if name or perf_every else None
        self._wake, self._closing, self._failed = threading.Event(), False, False
        self._thread = threading.Thread(target=self._live, name="maple-profile", daemon=True)
        self.last: Progress | None = None

    def __enter__(self) -> Profiled:
        if self._profiler is not None:
            self._profiler.__enter__()
        if self._name is not None:
            known, name = profiles_of(self._run.path), self._name
            names = chain([name], (f"{name}-{number}" for number in count(2)))
            self._name = next(one for one in names if one not in known)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._name is not None:
            self._closing = True
            self._wake.set()
            with span(IDLE):
                self._thread.join()
        if self._profiler is not None:
            self._profiler.__exit__(kind, error, trace)
        if self._name is None or self.last is None:  # nothing was trained
            return
        path = self._write(with_trace=True)
        if path is not None:
            notes.print(f"profile: {path} (maple profile {self._run.name})", soft_wrap=True)

    def watching(self, tell: Callable[[Progress], bool]) -> Callable[[Progress], bool]:
        """The same `tell`, with a [PERF] line now and then if that is wanted."""
        if self._profiler is None:
            return tell
        every = self._perf_every
        line = None if every is None else ShortLine(self._profiler.recorder, every, time.monotonic)

        def both(now: Progress) -> bool:
            self.last = now
            text = line.due(now.steps, now.games, now.minibatches) if line is not None else None
            if text is not None:
                notes.print(text, markup=False, soft_wrap=True)
            return tell(now)

        return both

    def saved(self) -> None:
        """A checkpoint is on disk: have the profile there as well soon. Returns at once."""
        self._wake.set()

    def _live(self) -> None:
        with span("write_profile"):
            while True:
                with span(IDLE):
                    self._wake.wait()
                self._wake.clear()
                if self._closing:
                    return
                if self.last is not None:
                    self._write(with_trace=False)

    def _write(self, with_trace: bool) -> Path | None:
        """Write what was found so far; where it is, or None if it cannot be written, which ends no run."""
        assert self._profiler is not None
        assert self._name is not None
        assert self.last is not None
        try:
            found = self._profiler.profile(_facts(self._run, self.last))
            return save_profile(self._run, self._name, found, with_trace)
        except RunError as error:
            if not self._failed:
                warn(f"no profile was written: {error}")
            self._failed = True
            return None


def _facts(run: RunFolder, last: Progress) -> dict[str, Any]:
    """What a profile should know of its run; counts are of this process alone."""
    config = Config.model_validate(run.read_json("config.json"))
    now = {"steps": last.steps, "updates": last.updates, "games": last.games}
    counts = {name: count - last.before[name] for name, count in now.items()}
    facts = {"game": config.name, "algo": config.algo, "tables": config.tables, "threads": config.threads}
    if is_external(config.name):
        facts |= {"actors": config.actors.count} if config.actors.count else {"workers": config.workers.count}
    recipe = config.recipe
    if isinstance(recipe, DqnConfig):
        how = {"updates_per_step": recipe.updates_per_step, "train_every": recipe.train_every or config.tables}
        how |= {"draw_ahead": recipe.draw_ahead}
    else:
        how = {"epochs": recipe.epochs}
    return {**facts, **counts, "minibatch": recipe.minibatch, **how, "cpu_use": last.cpu_use}
