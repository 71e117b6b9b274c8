"""Steps down a gradient that the threads of a team work out together, each for its share of a minibatch.

Shares are cut by count and added in order, so the result depends on the number of threads but never on their timing.
Where the gradient is a kernel, whole epochs run without Python: the threads meet after each minibatch, and each moves
its part of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.kernels import cycles, fast_kernel
from maple.core.threads import Team, meet
from maple.nets.accelerate import is_compiled
from maple.nets.flat import FlatWeights
from maple.perf.spans import span

__all__ = ["COUNTED", "GRADIENT", "LOSS", "OPTIMIZER", "Descent", "GradientOfRows", "LossOfRows", "descend", "share_of"]

MIN_SHARE = 64  # rows that are worth a thread of their own
BETA1, BETA2 = 0.9, 0.999
COUNTED = ("loss_calculation", "gradient_calculation", "optimizer_step")  # spans, and where a crew counts their cycles
LOSS, GRADIENT, OPTIMIZER = 5, 6, 7
CHUNK = 128  # weights that are looked at together
EVER, NOW = 1, 2  # when they had a gradient
SIZE_BITS = np.uint32(0x7FFFFFFF)  # of a float: all but its sign

_0 = np.float32(0)
_1 = np.float32(1)

LossOfRows = Callable[[NDArray[np.int64]], tuple[Tensor, dict[str, Tensor]]]
GradientOfRows = Callable[[NDArray[np.int64], NDArray[np.float32]], NDArray[np.float64]]  # added; sums of figures


@fast_kernel
def share_of(crew, rows):
    """The rows that this thread takes."""
    n = len(rows)
    return rows[n * crew[0] // crew[1] : n * (crew[0] + 1) // crew[1]]


@fast_kernel
def _gather(gradients, bits, threads, lo, hi):
    """Add up the shares' gradients of some weights in the first share's; whether there is any. Writes gradients."""
    some = np.uint32(0)
    for share in range(threads):
        for i in range(lo, hi):
            some |= bits[share, i]
    if some & SIZE_BITS == 0:  # all are zero, of either sign
        return False
    for other in range(1, threads):
        for i in range(lo, hi):
            gradients[0, i] += gradients[other, i]
            gradients[other, i] = _0
    return True


@fast_kernel
def descend(crew, state, max_norm, learning_rate, eps):
    """Add up the shares' gradients and take a step of Adam, each thread for its part of the weights. Writes state.

    Returns False if another thread has failed. `state` holds the weights (P,), the shares' gradients (threads, P),
    which are zero again afterwards, Adam's two moments (P,), its number of steps (1,), room for norms (threads,), the
    bits of the gradients, and of each CHUNK of weights whether it ever had a gradient. Until it has one, Adam would
    leave it where it is: so it is with most features of a large game.
    """
    weights, gradients, mean, square, step, norms, bits, pulled = state
    me, threads, size, chunks = crew[0], crew[1], len(weights), len(pulled)
    first, last, total = chunks * me // threads, chunks * (me + 1) // threads, gradients[0]
    if not meet(crew):
        return False
    began = cycles()
    norm = _0
    for chunk in range(first, last):
        lo, hi = chunk * CHUNK, min(size, (chunk + 1) * CHUNK)
        if _gather(gradients, bits, threads, lo, hi):
            pulled[chunk] = NOW
            for i in range(lo, hi):
                norm += total[i] * total[i]
    norms[me] = norm
    steps = step[0] + _1
    crew[OPTIMIZER] += cycles() - began
    if not meet(crew):
        return False
    began = cycles()
    norm = np.sqrt(norms[:threads].sum())
    scale = max_norm / (norm + np.float32(1e-6)) if max_norm > _0 and norm > max_norm else _1
    rate = learning_rate / (1.0 - BETA1**steps)
    shrink = np.float32(1.0 / np.sqrt(1.0 - BETA2**steps))
    beta1, beta2, length = np.float32(BETA1), np.float32(BETA2), np.float32(rate)
    for chunk in range(first, last):
        lo, hi = chunk * CHUNK, min(size, (chunk + 1) * CHUNK)
        if pulled[chunk]:
            for i in range(lo, hi):
                g = total[i] * scale
                mean[i] = beta1 * mean[i] + (_1 - beta1) * g
                square[i] = beta2 * square[i] + (_1 - beta2) * g * g
                weights[i] -= length * mean[i] / (np.sqrt(square[i]) * shrink + eps)
        if pulled[chunk] == NOW:
            total[lo:hi] = _0
            pulled[chunk] = EVER
    crew[OPTIMIZER] += cycles() - began
    if not meet(crew):
        return False
    if me == 0:
        step[0] = steps  # the others read it after the next meeting
    return True


@fast_kernel
def _one_step(crew, state, learning_rate, eps, max_norm):
    """Descend along gradients that are there. Writes state."""
    descend(crew, state, max_norm, learning_rate, eps)


PRECISIONS = (None, torch.bfloat16, torch.float16)
SCALER = ("scale", "_growth_tracker")  # what a scaler of 16-bit losses has learned


class Descent:
    """A network's weights, their gradient and Adam."""

    def __init__(
        self, net: nn.Module, team: Team, learning_rate: float, eps: float, precision: torch.dtype | None = None
    ) -> None:
        self.flat = FlatWeights(net)
        self.team = team
        self._compiled = any(is_compiled(module) for module in net.modules())
        self._device = self.flat.vector.device.type
        self._set_precision(precision)
        self._eps = eps
        self.adam = torch.optim.Adam([self.flat.vector], learning_rate, (BETA1, BETA2), eps, fused=True)
        self._gradients = np.zeros((team.threads, len(self.flat.vector)), np.float32)  # zero between steps
        self._pulled = np.zeros(-(-len(self.flat.vector) // CHUNK), np.uint8)
        zeros = torch.zeros_like(self.flat.gradient)
        start = {"step": torch.zeros((), device=zeros.device), "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
        self.adam.state[self.flat.vector] = start

    @property
    def learning_rate(self) -> float:
        """The length of a step."""
        return float(self.adam.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.adam.param_groups[0]["lr"] = value

    @property
    def in_kernels(self) -> bool:
        """Whether kernels can take the place of torch: plain floats in memory, and layers that it did not compile."""
        return self.flat.on_cpu and self._precision is None and not self._compiled

    def state(self) -> dict[str, NDArray[np.float32]]:
        """Adam's moments and number of steps, and the numbers that layers multiply in, for checkpoints."""
        moments = {name: value.cpu().numpy() for name, value in self.adam.state[self.flat.vector].items()}
        scaler = self._scaler.state_dict()
        kept = [PRECISIONS.index(self._precision), *(scaler[name] for name in SCALER if scaler)]
        return moments | {"numbers": np.array(kept, np.float32)}

    def restore(self, state: dict[str, NDArray[np.float32]]) -> None:
        """Take over what state() gave; a run goes on with the numbers that it began with."""
        for name, value in self.adam.state[self.flat.vector].items():
            value.copy_(torch.from_numpy(np.array(state[name])).reshape(value.shape))
        there = np.logical_or(*(np.array(state[name]).reshape(-1) != 0 for name in ("exp_avg", "exp_avg_sq")))
        self._pulled[:] = np.logical_or.reduceat(there, np.arange(0, len(there), CHUNK)) * EVER
        if "numbers" not in state:
            return
        precision, *scaler = np.array(state["numbers"]).tolist()
        self._set_precision(PRECISIONS[int(precision)])
        if scaler:
            own = dict(zip(SCALER, (scaler[0], int(scaler[1])), strict=True))
            self._scaler.load_state_dict(self._scaler.state_dict() | own)

    def _set_precision(self, precision: torch.dtype | None) -> None:
        self._precision = precision
        self._scaler = torch.amp.GradScaler(self._device, enabled=precision is torch.float16)

    def by_kernel(self, epoch: Callable[..., Any], minibatch: int, *args: Any) -> None:
        """Run epoch(crew, state, learning_rate, eps, *args) on as many threads as a minibatch is worth."""
        moments = self.adam.state[self.flat.vector]
        arrays = [self.flat.vector.detach(), moments["exp_avg"], moments["exp_avg_sq"], moments["step"].reshape(1)]
        weights, mean, square, step = (tensor.numpy() for tensor in arrays)
        threads = self._shares(minibatch)
        norms, bits = np.zeros(self.team.threads, np.float32), self._gradients.view(np.uint32)
        state = (weights, self._gradients, mean, square, step, norms, bits, self._pulled)
        rates = (np.float32(self.learning_rate), np.float32(self._eps))
        self.team.together(epoch, threads, state, *rates, *args, counted=COUNTED)

    def _shares(self, minibatch: int) -> int:
        return max(1, min(self.team.threads, minibatch // MIN_SHARE)) if self.flat.on_cpu else 1

    def by_share(self, rows: NDArray[np.int64], add_gradient: GradientOfRows, max_norm: float) -> NDArray[np.float64]:
        """One step for the loss over `rows`, whose gradient each thread adds up for its share in kernels of its own.

        Returns the sums of the loss's figures.
        """
        parts = self._shares(len(rows))
        bounds = [len(rows) * part // parts for part in range(parts + 1)]
        figures = [np.zeros(0)] * parts

        def share(part: int) -> None:
            figures[part] = add_gradient(rows[bounds[part] : bounds[part + 1]], self._gradients[part])

        self.team.each(share, parts)
        self.by_kernel(_one_step, len(rows), np.float32(max_norm))
        return np.sum(figures, axis=0)  # type: ignore[no-any-return]

    def by_autograd(
        self, rows: NDArray[np.int64], loss_of: LossOfRows, max_norm: float = 0.0, worth: int | None = None
    ) -> dict[str, float]:
        """One step for the mean loss over `rows`; returns the means of its figures.

        `loss_of` gives the mean loss and figures of some of the rows. The gradient is scaled down to `max_norm` if
        that is given and exceeded. `worth` says how many rows' work this is, where it is more than a row each.
        """
        parts = min(self._shares(worth or len(rows)), len(rows))
        bounds = [len(rows) * part // parts for part in range(parts + 1)]
        gradients: list[tuple[Tensor, ...]] = [()] * parts
        figures: list[dict[str, Tensor]] = [{}] * parts

        def share(part: int) -> None:
            mine = rows[bounds[part] : bounds[part + 1]]
            with span("loss_calculation"), self._numbers():
                loss, figures[part] = loss_of(mine)
            with span("gradient_calculation"):
                share = self._scaler.scale(loss * (len(mine) / len(rows)))
                gradients[part] = torch.autograd.grad(share, self.flat.parameters)

        self.team.each(share, parts)
        with span("optimizer_step"):
            self._step(gradients, max_norm)
        weights = np.diff(bounds) / len(rows)
        return {
            name: float(sum(w * float(f[name]) for w, f in zip(weights, figures, strict=True))) for name in figures[0]
        }

    def _numbers(self) -> AbstractContextManager[Any]:
        """Dense layers in the numbers they were told to use."""
        return torch.autocast(self._device, self._precision) if self._precision is not None else nullcontext()

    def _step(self, gradients: list[tuple[Tensor, ...]], max_norm: float) -> None:
        """Add up the shares' gradients and take a step of Adam."""
        total = self.flat.gradient
        self._pulled[:] = EVER
        torch.cat([piece.reshape(-1) for piece in gradients[0]], out=total)
        for share in gradients[1:]:
            total.add_(torch.cat([piece.reshape(-1) for piece in share]))
        self._scaler.unscale_(self.adam)
        if max_norm:
            total.mul_((max_norm / (torch.linalg.vector_norm(total) + 1e-6)).clamp(max=1.0))
        self._scaler.step(self.adam)
        self._scaler.update()
