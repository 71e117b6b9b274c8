"""First layers that do not pay for zeros.

An input is a list of binary features (or a row of mostly zero bytes), so the first layer is a sum of weight rows, one
per feature that is there. Over options it goes further: what the options of a decision share is summed once, each part
once, and an option costs four vector additions, as in the incremental networks of chess engines.

On the CPU these are kernels; elsewhere, and as the tests' oracle, the same sums are written in torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.kernels import fast_kernel
from maple.core.step import Options
from maple.core.threads import Team

__all__ = ["ByteSum", "FeatureSum", "OptionSum", "Rows", "SparseLayer"]

_0 = np.float32(0)


@fast_kernel
def _sum_features(weight, bias, feature, length, relu, out, lo, hi):
    """out = sum of the weight rows of each row's features. Writes out."""
    width = weight.shape[1]
    for i in range(lo, hi):
        for h in range(width):
            out[i, h] = bias[h]
        for k in range(length[i]):
            row = weight[feature[i, k]]
            for h in range(width):
                out[i, h] += row[h]
        if relu:
            for h in range(width):
                out[i, h] = max(out[i, h], _0)


@fast_kernel
def _spread_features(feature, length, grad, into, lo, hi):
    """The gradient of that sum, over columns [lo, hi) so that threads never meet. Writes into."""
    for i in range(feature.shape[0]):
        for k in range(length[i]):
            f = feature[i, k]
            for h in range(lo, hi):
                into[f, h] += grad[i, h]


@fast_kernel
def _sum_bytes(weight, bias, observation, relu, out, lo, hi):
    """out = observation @ weight + bias, over the bytes that are not zero. Writes out."""
    width = weight.shape[1]
    for i in range(lo, hi):
        for h in range(width):
            out[i, h] = bias[h]
        for f in range(observation.shape[1]):
            byte = observation[i, f]
            if byte:
                x = np.float32(byte)
                for h in range(width):
                    out[i, h] += x * weight[f, h]
        if relu:
            for h in range(width):
                out[i, h] = max(out[i, h], _0)


@fast_kernel
def _spread_bytes(observation, grad, into, lo, hi):
    """The gradient of that product, over columns [lo, hi). Writes into."""
    for i in range(observation.shape[0]):
        for f in range(observation.shape[1]):
            byte = observation[i, f]
            if byte:
                x = np.float32(byte)
                for h in range(lo, hi):
                    into[f, h] += x * grad[i, h]


@fast_kernel
def _sum_options(weight, bias, offset, shared, shared_length, part, part_length, option_part, max_parts, out, lo, hi):
    """The rectified first layer of every option of decisions [lo, hi). Writes out from offset[0] on."""
    width = weight.shape[1]
    base = np.empty(width, np.float32)
    sums = np.empty((max_parts, width), np.float32)
    ready = np.empty(max_parts, np.bool_)
    for i in range(lo, hi):
        for h in range(width):
            base[h] = bias[h]
        for k in range(shared_length[i]):
            row = weight[shared[i, k]]
            for h in range(width):
                base[h] += row[h]
        ready[:] = False
        first = i * max_parts
        for n in range(offset[i], offset[i + 1]):
            for k in range(option_part.shape[1]):
                p = option_part[n, k] - first
                if not ready[p]:
                    ready[p] = True
                    for h in range(width):
                        sums[p, h] = _0
                    for j in range(part_length[first + p]):
                        row = weight[part[first + p, j]]
                        for h in range(width):
                            sums[p, h] += row[h]
            a, b = sums[option_part[n, 0] - first], sums[option_part[n, 1] - first]
            c, d = sums[option_part[n, 2] - first], sums[option_part[n, 3] - first]
            at = n - offset[0]
            for h in range(width):
                out[at, h] = max(base[h] + (a[h] + b[h]) + (c[h] + d[h]), _0)


@fast_kernel
def _spread_options(
    offset, shared, shared_length, part, part_length, option_part, max_parts, out, grad, into, bias, lo, hi
):
    """The gradient of that layer, over columns [lo, hi). Writes into, bias."""
    width = hi - lo
    base = np.empty(width, np.float32)
    sums = np.empty((max_parts, width), np.float32)
    used = np.empty(max_parts, np.bool_)
    for i in range(offset.shape[0] - 1):
        base[:] = _0
        used[:] = False
        first = i * max_parts
        for n in range(offset[i], offset[i + 1]):
            at = n - offset[0]
            for k in range(option_part.shape[1]):
                p = option_part[n, k] - first
                if not used[p]:
                    used[p] = True
                    sums[p] = _0
                for h in range(width):
                    if out[at, lo + h] > _0:
                        sums[p, h] += grad[at, lo + h]
            for h in range(width):
                if out[at, lo + h] > _0:
                    base[h] += grad[at, lo + h]
        for h in range(width):
            bias[lo + h] += base[h]
        for k in range(shared_length[i]):
            f = shared[i, k]
            for h in range(width):
                into[f, lo + h] += base[h]
        for p in range(max_parts):
            if used[p]:
                for j in range(part_length[first + p]):
                    f = part[first + p, j]
                    for h in range(width):
                        into[f, lo + h] += sums[p, h]


class Rows:
    """Rows of feature lists."""

    __slots__ = ("feature", "length")

    def __init__(self, feature: NDArray[np.int16], length: NDArray[np.int16]) -> None:
        self.feature = feature  # (n, width)
        self.length = length  # (n,)

    def indices(self) -> tuple[Tensor, Tensor]:
        """The features one after the other, and where each row's begin: what torch's embedding bags take."""
        keep = np.arange(self.feature.shape[1]) < self.length[:, None]
        start = np.concatenate([[0], np.cumsum(self.length[:-1], dtype=np.int64)])
        return torch.from_numpy(self.feature[keep].astype(np.int64)), torch.from_numpy(start)


class FeatureSum(torch.autograd.Function):
    """Sum of weight rows over feature lists, rectified if asked."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, rows: Rows, relu: bool, team: Team) -> Tensor:
        out = torch.empty(len(rows.length), weight.shape[1])
        args = (weight.detach().numpy(), bias.detach().numpy(), rows.feature, rows.length, relu, out.numpy())
        team.run(_sum_features, len(rows.length), *args)
        ctx.rows, ctx.team, ctx.shape, ctx.relu = rows, team, weight.shape, relu
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        grad = grad * (ctx.saved_tensors[0] > 0) if ctx.relu else grad.contiguous()
        into = torch.zeros(ctx.shape)
        args = (ctx.rows.feature, ctx.rows.length, grad.numpy(), into.numpy())
        ctx.team.run(_spread_features, ctx.shape[1], *args, grain=8)
        return into, grad.sum(0), None, None, None


class ByteSum(torch.autograd.Function):
    """Product with a matrix of mostly zero bytes, rectified if asked."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor, observation: NDArray[np.uint8], relu: bool, team: Team
    ) -> Tensor:
        out = torch.empty(len(observation), weight.shape[1])
        args = (weight.detach().numpy(), bias.detach().numpy(), observation, relu, out.numpy())
        team.run(_sum_bytes, len(observation), *args)
        ctx.observation, ctx.team, ctx.shape, ctx.relu = observation, team, weight.shape, relu
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        grad = grad * (ctx.saved_tensors[0] > 0) if ctx.relu else grad.contiguous()
        into = torch.zeros(ctx.shape)
        ctx.team.run(_spread_bytes, ctx.shape[1], ctx.observation, grad.numpy(), into.numpy(), grain=8)
        return into, grad.sum(0), None, None, None


class OptionSum(torch.autograd.Function):
    """The rectified first layer of described options."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, options: Options, max_parts: int, team: Team) -> Tensor:
        decisions = len(options.offset) - 1
        out = torch.empty(int(options.offset[-1] - options.offset[0]), weight.shape[1])
        lists = (options.shared, options.shared_length, options.part, options.part_length, options.option_part)
        args = (weight.detach().numpy(), bias.detach().numpy(), options.offset, *lists, max_parts, out.numpy())
        team.run(_sum_options, decisions, *args, grain=8)
        ctx.lists, ctx.offset, ctx.max_parts, ctx.team, ctx.shape = lists, options.offset, max_parts, team, weight.shape
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        into, bias = torch.zeros(ctx.shape), torch.zeros(ctx.shape[1])
        out = ctx.saved_tensors[0].numpy()
        args = (ctx.offset, *ctx.lists, ctx.max_parts, out, grad.contiguous().numpy(), into.numpy(), bias.numpy())
        ctx.team.run(_spread_options, ctx.shape[1], *args, grain=8)
        return into, bias, None, None, None


class SparseLayer(nn.Module):
    """Weights with a row per feature; the sums above, by kernel on the CPU and by torch elsewhere."""

    def __init__(self, features: int, width: int, team: Team, active: float = 60.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, width) / active**0.5)  # about `active` features are there
        self.bias = nn.Parameter(torch.zeros(width))
        self.team = team

    def of_features(self, rows: Rows, relu: bool = True) -> Tensor:
        """(n, H) for rows of feature lists."""
        if self.weight.device.type == "cpu":
            return FeatureSum.apply(self.weight, self.bias, rows, relu, self.team)  # type: ignore[no-any-return]
        out = self._bag(rows) + self.bias
        return torch.relu(out) if relu else out

    def of_bytes(self, observation: NDArray[np.uint8], relu: bool = True) -> Tensor:
        """(n, H) for rows of bytes."""
        if self.weight.device.type == "cpu":
            return ByteSum.apply(self.weight, self.bias, observation, relu, self.team)  # type: ignore[no-any-return]
        out = torch.from_numpy(observation).to(self.weight.device).float() @ self.weight + self.bias
        return torch.relu(out) if relu else out

    def of_options(self, options: Options, max_parts: int) -> Tensor:
        """(N, H) for the options of a chunk of decisions, rectified."""
        if self.weight.device.type == "cpu":
            return OptionSum.apply(self.weight, self.bias, options, max_parts, self.team)  # type: ignore[no-any-return]
        return self.of_options_in_torch(options)

    def of_options_in_torch(self, options: Options) -> Tensor:
        """The same without kernels: for other devices, and as an oracle."""
        device = self.weight.device
        first, last = int(options.offset[0]), int(options.offset[-1])
        decision = np.repeat(np.arange(len(options.offset) - 1), np.diff(options.offset))
        shared = self._bag(Rows(options.shared, options.shared_length))
        parts = self._bag(Rows(options.part, options.part_length))
        chosen = torch.from_numpy(options.option_part[first:last].astype(np.int64)).to(device)
        return torch.relu(shared[torch.from_numpy(decision).to(device)] + parts[chosen].sum(1) + self.bias)

    def _bag(self, rows: Rows) -> Tensor:
        index, start = (x.to(self.weight.device) for x in rows.indices())
        return nn.functional.embedding_bag(index, self.weight, start, mode="sum")
