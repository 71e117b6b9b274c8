"""A network's weights as one vector: one optimizer step, one norm, one sum over threads, whatever the layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.nets.sparse import SparseLayer

__all__ = ["FlatWeights"]


class FlatWeights:
    """Moves a network's parameters into one vector, of which each becomes a view; gradients likewise."""

    def __init__(self, net: nn.Module) -> None:
        self.parameters = [p for p in net.parameters() if p.requires_grad]
        self.vector = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in self.parameters]))
        self.vector.grad = torch.zeros_like(self.vector)
        self._begin: dict[int, int] = {}
        begin = 0
        for parameter in self.parameters:
            self._begin[id(parameter)] = begin
            place = slice(begin, begin + parameter.numel())
            parameter.data = self.vector.data[place].view_as(parameter)
            parameter.grad = self.vector.grad[place].view_as(parameter)
            begin = place.stop

    @property
    def gradient(self) -> Tensor:
        """The gradient of all weights, which the optimizer reads."""
        assert self.vector.grad is not None
        return self.vector.grad

    @property
    def on_cpu(self) -> bool:
        """Whether kernels can read the weights."""
        return self.vector.device.type == "cpu"

    def begin(self, parameter: Tensor | nn.Module) -> int:
        """Where a parameter begins in the vector."""
        return self._begin[id(parameter)]

    def first(self, layer: SparseLayer) -> NDArray[np.int64]:
        """Where a first layer's weight and bias begin, and its shape (features, width)."""
        return np.array([self.begin(layer.weight), self.begin(layer.bias), *layer.weight.shape], np.int64)

    def tower(self, layers: nn.Sequential) -> NDArray[np.int64]:
        """The table of a tower of dense layers, as `maple.nets.dense` reads it."""
        rows: list[list[Any]] = []
        before = 0
        for layer in layers:
            if isinstance(layer, nn.Linear):
                height, width = layer.weight.shape
                rows.append([self.begin(layer.weight), self.begin(layer.bias), width, height, before])
                before += width
        return np.array(rows, np.int64)
