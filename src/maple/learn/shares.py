"""Gradients in shares: each thread takes its part of a minibatch forward and backward, and the parts are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.threads import Team

__all__ = ["shared_gradient"]

MIN_SHARE = 64  # rows that are worth a thread of their own

LossOfRows = Callable[[NDArray[np.int64]], tuple[Tensor, dict[str, Tensor]]]


def shared_gradient(net: nn.Module, team: Team, rows: NDArray[np.int64], loss_of: LossOfRows) -> dict[str, Tensor]:
    """Set each parameter's gradient to that of the mean loss over `rows`; returns the figures' means.

    `loss_of` gives the mean loss and figures of some of the rows. Shares are cut by count and added in order, so the
    result depends on the number of threads but never on their timing.
    """
    parameters = [p for p in net.parameters() if p.requires_grad]
    parts = max(1, min(team.threads, len(rows) // MIN_SHARE)) if parameters[0].device.type == "cpu" else 1
    bounds = [len(rows) * part // parts for part in range(parts + 1)]
    gradients: list[Any] = [None] * parts
    figures: list[dict[str, Tensor]] = [{}] * parts

    def share(part: int) -> None:
        mine = rows[bounds[part] : bounds[part + 1]]
        loss, figures[part] = loss_of(mine)
        gradients[part] = torch.autograd.grad(loss * (len(mine) / len(rows)), parameters)

    team.each(share, parts)
    for parameter, *pieces in zip(parameters, *gradients, strict=True):
        total = pieces[0]
        for piece in pieces[1:]:
            total = total.add_(piece)
        parameter.grad = total
    weights = [(bounds[part + 1] - bounds[part]) / len(rows) for part in range(parts)]
    return {
        name: torch.stack([w * f[name] for w, f in zip(weights, figures, strict=True)]).sum() for name in figures[0]
    }
