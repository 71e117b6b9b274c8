"""One thread's share of a minibatch of Q-learning over described options: encoded, then learned from in kernels."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.learn.option_q_gradient import add_choice_gradient, add_option_q_gradient, option_goals
from maple.learn.replay import Drawn
from maple.nets.flat import FlatWeights
from maple.nets.q import OptionQ
from maple.nets.seen import Described, Seen
from maple.perf.spans import span, split

__all__ = ["OptionShare"]


@dataclass(frozen=True, slots=True)
class OptionShare:
    """What every share of a round has in common."""

    seen: Seen
    weights: NDArray[np.float32]
    target: NDArray[np.float32]
    plan: tuple[Any, ...]  # see `add_option_q_gradient`
    dueling: bool
    double: bool
    values: NDArray[np.float32]  # Huber's bound, what a row counts for, the margin of copies

    @staticmethod
    def of(
        net: OptionQ, flat: FlatWeights, target: FlatWeights, double: bool, values: NDArray[np.float32]
    ) -> OptionShare:
        """Of a network and its target."""
        advantage = (flat.first(net.first), flat.tower(net.advantage))
        value = advantage
        if net.value is not None and net.value_first is not None:
            value = (flat.first(net.value_first), flat.tower(net.value))
        vectors = flat.vector.detach().numpy(), target.vector.detach().numpy()
        return OptionShare(
            net.seen, *vectors, (advantage, value, net.max_parts, net.dueling), net.dueling, double, values
        )

    def add(
        self,
        drawn: Drawn,
        here: Described | None,
        beyond: Described | None,
        error: NDArray[np.float32],
        rows: NDArray[np.int64],
        gradient: NDArray[np.float32],
    ) -> NDArray[np.float64]:
        """Add the gradient of neighbouring rows of a minibatch; returns sums of figures. Writes error, gradient.

        `here` and `beyond` are all that was drawn, if it was described ahead.
        """
        part = slice(rows[0], rows[-1] + 1)
        mine = here.of(part.start, part.stop) if here else None
        goal = self._goals(drawn, part, beyond.of(part.start, part.stop) if beyond else None)
        known = (drawn.action[part], goal, drawn.weight[part], drawn.shown[part])
        if self.dueling or known[3].all():
            return self._over_options(drawn.view[part], known, gradient, error[part], mine)
        view, off, found = drawn.view[part], error[part], np.zeros(0)
        for whole in (True, False):  # what was shown is compared with all other options, the rest is looked at alone
            some = np.flatnonzero(known[3] == whole)
            if not len(some):
                continue
            own, told = np.empty(len(some), np.float32), tuple(column[some] for column in known)
            learn = self._over_options if whole else self._over_choices
            sums = learn(view[some], told, gradient, own)
            found, off[some] = sums + found if len(found) else sums, own
        return found

    def _goals(self, drawn: Drawn, part: slice, beyond: Described | None) -> NDArray[np.float32]:
        """What the rows' values should be."""
        goal = np.empty(part.stop - part.start, np.float32)
        beyond = beyond or self._described(drawn.beyond_view[part])
        led = (drawn.reward[part], drawn.discount[part])
        vectors = (self.weights, self.target, self.plan, beyond.options.lists())
        with span("loss_calculation"):
            option_goals(*vectors, beyond.state.feature, beyond.state.length, led, self.double, goal)
        return goal

    def _over_options(
        self,
        view: NDArray[np.uint64],
        known: tuple[Any, ...],
        gradient: NDArray[np.float32],
        error: NDArray[np.float32],
        here: Described | None = None,
    ) -> NDArray[np.float64]:
        here = here or self._described(view)
        seen = (here.options.lists(), here.options.action, here.state.feature, here.state.length)
        return self._timed(add_option_q_gradient, *seen, known, self.values, gradient, error)

    def _over_choices(
        self,
        view: NDArray[np.uint64],
        known: tuple[Any, ...],
        gradient: NDArray[np.float32],
        error: NDArray[np.float32],
    ) -> NDArray[np.float64]:
        with span("learn_encode"):
            taken = self.seen.choice(view, known[0])
        return self._timed(add_choice_gradient, taken.feature, taken.length, known, self.values, gradient, error)

    def _timed(self, kernel: Any, *args: Any) -> NDArray[np.float64]:
        """Call a kernel, and split its time between the loss and the gradient."""
        began = time.perf_counter()
        found, ahead, back = kernel(self.weights, self.plan, *args)
        share = (time.perf_counter() - began) / (ahead + back)
        split({"loss_calculation": ahead * share, "gradient_calculation": back * share})
        return found  # type: ignore[no-any-return]

    def _described(self, view: NDArray[np.uint64]) -> Described:
        """Decisions in this thread's own buffers; as they stand too, for a dueling head."""
        with span("learn_encode"):
            return self.seen.described(view, self.dueling)
