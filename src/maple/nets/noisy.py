"""Layers whose weights carry learned noise (NoisyNet): exploration that the network itself turns down."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.rng import Purpose, words

__all__ = ["NoisyLinear", "renew_noise", "silence"]

SPREAD = 0.5  # of the noise at first, in units of 1 / sqrt(inputs)


class NoisyLinear(nn.Linear):
    """A dense layer with factorised Gaussian noise: a number for each input and one for each output."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        start = SPREAD / inputs**0.5
        self.weight_spread = nn.Parameter(torch.full((outputs, inputs), start))
        self.bias_spread = nn.Parameter(torch.full((outputs,), start))
        self.register_buffer("noise_in", torch.zeros(inputs), persistent=False)
        self.register_buffer("noise_out", torch.zeros(outputs), persistent=False)
        self.noise_in: Tensor
        self.noise_out: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """The layer with the noise of now."""
        weight = self.weight + self.weight_spread * torch.outer(self.noise_out, self.noise_in)
        return nn.functional.linear(x, weight, self.bias + self.bias_spread * self.noise_out)


def _normals(n: int, seed: int, counter: int) -> NDArray[np.float64]:
    """`n` normal numbers, by Box and Muller."""
    bits = words(2 * n, seed, Purpose.NOISE, counter)
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53
    normal: NDArray[np.float64] = np.sqrt(-2 * np.log(uniform[:n])) * np.cos(2 * np.pi * uniform[n:])
    return normal


def renew_noise(net: nn.Module, seed: int, counter: int) -> None:
    """Draw new noise for every noisy layer, a function of seed and counter alone."""
    noisy = [module for module in net.modules() if isinstance(module, NoisyLinear)]
    if noisy:
        drawn = _normals(sum(m.in_features + m.out_features for m in noisy), seed, counter)
        rooted = torch.from_numpy(np.sign(drawn) * np.sqrt(np.abs(drawn))).float()
        for module in noisy:
            for buffer in (module.noise_in, module.noise_out):
                buffer.copy_(rooted[: len(buffer)])
                rooted = rooted[len(buffer) :]


def silence(net: nn.Module) -> None:
    """No noise: play by what was learned."""
    for module in net.modules():
        if isinstance(module, NoisyLinear):
            module.noise_in.zero_()
            module.noise_out.zero_()
