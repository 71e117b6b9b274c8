"""A step down a gradient of which most is zero, against torch's own Adam."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from maple.core.threads import Team
from maple.learn.descent import CHUNK, Descent

ROWS = np.arange(128)


def _net(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(37, 3 * CHUNK), nn.Linear(3 * CHUNK, 5))


def _pulls(size: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """A gradient that leaves most weights alone, and others each time."""
    pulls, begin = np.zeros(size, np.float32), int(rng.integers(0, size - 300))
    pulls[begin : begin + 300] = rng.normal(size=300)
    return pulls


@pytest.mark.parametrize("max_norm", [0.0, 0.5])
def test_weights_that_nothing_pulls_stand_still_as_adam_leaves_them(max_norm: float, team: Team) -> None:
    net, other, rng = _net(3), _net(3), np.random.default_rng(3)
    descent = Descent(net, team, 1e-2, 1e-8)
    adam = torch.optim.Adam(other.parameters(), 1e-2, eps=1e-8)
    size, begun = len(descent.flat.vector), descent.flat.vector.detach().numpy().copy()
    moved = np.zeros(size, bool)
    for step in range(12):
        pulls = _pulls(size, rng)
        moved |= pulls != 0
        _pull(descent, pulls, max_norm)
        _follow(other, adam, pulls, max_norm)
        if step == 5:  # a run that goes on knows nothing of what was pulled before
            descent.restore(descent.state())
    vector = descent.flat.vector.detach().numpy()
    slow = torch.cat([p.detach().reshape(-1) for p in other.parameters()]).numpy()
    assert np.abs(vector - slow).max() < 1e-5
    assert (vector[~moved] == begun[~moved]).all()
    assert (~moved).any()
    assert (vector[moved] != begun[moved]).all()


def _pull(descent: Descent, pulls: NDArray[np.float32], max_norm: float) -> None:
    """A step for shares of rows that pull alike, each by its part."""

    def add(mine: NDArray[np.int64], gradient: NDArray[np.float32]) -> NDArray[np.float64]:
        assert not gradient.any()
        gradient[:] = pulls * np.float32(len(mine) / len(ROWS))
        return np.array([len(mine)], np.float64)

    assert descent.by_share(ROWS, add, max_norm) == [len(ROWS)]


def _follow(net: nn.Module, adam: torch.optim.Adam, pulls: NDArray[np.float32], max_norm: float) -> None:
    begin = 0
    for parameter in net.parameters():
        part = pulls[begin : begin + parameter.numel()]
        parameter.grad = torch.from_numpy(part.copy()).view_as(parameter)
        begin += parameter.numel()
    if max_norm:
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
    adam.step()


def test_zeros_of_either_sign_are_no_gradient(team: Team) -> None:
    descent = Descent(_net(1), team, 1e-2, 1e-8)
    _pull(descent, np.full(len(descent.flat.vector), -0.0, np.float32), 0.0)
    assert not descent._pulled.any()


def test_a_gradient_that_is_no_number_is_no_zero(team: Team) -> None:
    descent = Descent(_net(1), team, 1e-2, 1e-8)
    pulls = np.zeros(len(descent.flat.vector), np.float32)
    pulls[7] = np.nan
    _pull(descent, pulls, 0.0)
    assert np.isnan(descent.flat.vector.detach().numpy()[7])
