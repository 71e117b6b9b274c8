"""The `[PERF]` line: the short figures of the last seconds, at a chosen interval."""

from __future__ import annotations

from maple.perf.spans import IDLE, Clock, Recorder

__all__ = ["ShortLine"]

AHEAD = "maple-prefetch"  # the thread that draws minibatches ahead, if there is one
# What the line calls it, and the spans of the training thread that it adds up.
FIGURES = {
    "action_ms": ("agent_action_selection", "agent_value_calculation"),
    "enemy_turn_ms": ("enemy_turn",),
    "env_step_ms": ("env_step", "env_observe"),
    "replay_sample_ms": ("replay_sample",),
    "train_fwd_ms": ("loss_calculation",),
    "train_bwd_ms": ("gradient_calculation", "optimizer_step"),
    "log_ms": ("log",),
}


class ShortLine:
    """Figures since the line before; milliseconds of the training thread for every thousand decisions.

    Minibatches are also drawn by a thread of its own, whose time is in replay_sample_ms.
    """

    def __init__(self, recorder: Recorder, every_s: float, clock: Clock) -> None:
        self._recorder = recorder
        self._every_s = every_s
        self._clock = clock
        self._at = 0.0
        self._counts: tuple[int, int, int] | None = None
        self._spans: dict[str, float] = {}

    def due(self, steps: int, games: int, minibatches: int) -> str | None:
        """The line, if it is time for one; called after each update, the first time only to count from there."""
        now, counts, before = self._clock(), (steps, games, minibatches), self._counts
        lasted = now - self._at
        if before is not None and (lasted < self._every_s or steps <= before[0]):
            return None
        new, old = self._totals(), self._spans
        self._at, self._counts, self._spans = now, counts, new
        if before is None:
            return None
        done = [after - earlier for after, earlier in zip(counts, before, strict=True)]
        parts = ["[PERF] each 1000 decisions:"]
        for figure, names in FIGURES.items():
            seconds = sum(new.get(name, 0.0) - old.get(name, 0.0) for name in names)
            parts.append(f"{figure}={1e6 * seconds / done[0]:.3f}")
        parts.append(f"steps/s={done[0] / lasted:.0f} games/s={done[1] / lasted:.1f}")
        parts.append(f"updates/step={done[2] / done[0]:.2g}")
        return " ".join(parts)

    def _totals(self) -> dict[str, float]:
        """Time by name, waiting for other threads included, spans below it not."""
        totals: dict[str, float] = {}
        accounts = list(self._recorder.accounts)
        for account in [accounts[0], *(each for each in accounts if each.name == AHEAD)]:
            for _, node in account.root.walk():
                waited = sum(child.self_s for child in list(node.children.values()) if child.name == IDLE)
                if account is accounts[0] or node.name in FIGURES["replay_sample_ms"]:
                    totals[node.name] = totals.get(node.name, 0.0) + node.self_s + waited
        return totals
