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

__all__ = [
    "ByteSum",
    "FeatureSum",
    "OptionSum",
    "Rows",
    "SparseLayer",
    "spread_bytes",
    "spread_features",
    "sum_bytes",
    "sum_features",
]

_0 = np.float32(0)


@fast_kernel
def sum_features(weight, bias, feature, length, relu, out):
    """out = sum of the weight rows of each row's features. Writes out."""
    width = weight.shape[1]
    for i in range(out.shape[0]):
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
def spread_features(feature, length, grad, into):
    """The gradient of that sum. Writes into."""
    width = into.shape[1]
    for i in range(feature.shape[0]):
        for k in range(length[i]):
            row = into[feature[i, k]]
            for h in range(width):
                row[h] += grad[i, h]


@fast_kernel
def sum_bytes(weight, bias, observation, relu, out):
    """out = observation @ weight + bias, over the bytes that are not zero. Writes out."""
    width = weight.shape[1]
    at = np.zeros(observation.shape[1] + 3, np.int64)
    x = np.empty(observation.shape[1] + 3, np.float32)
    for i in range(out.shape[0]):
        o = out[i]
        for h in range(width):
            o[h] = bias[h]
        n = 0
        for f in range(observation.shape[1]):
            at[n], x[n] = f, observation[i, f]
            n += observation[i, f] != 0
        x[n : n + 3] = _0
        for k in range(0, n, 4):
            x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
            w0, w1, w2, w3 = weight[at[k]], weight[at[k + 1]], weight[at[k + 2]], weight[at[k + 3]]
            for h in range(width):
                o[h] += x0 * w0[h] + x1 * w1[h] + x2 * w2[h] + x3 * w3[h]
        if relu:
            for h in range(width):
                o[h] = max(o[h], _0)


@fast_kernel
def spread_bytes(observation, grad, into):
    """The gradient of that product. Writes into."""
    width = into.shape[1]
    for i in range(observation.shape[0]):
        for f in range(observation.shape[1]):
            byte = observation[i, f]
            if byte:
                x = np.float32(byte)
                for h in range(width):
                    into[f, h] += x * grad[i, h]


@fast_kernel
def _sum_options(weight, bias, offset, shared, shared_length, part, part_length, option_part, max_parts, out):
    """The rectified first layer of every option. Writes out."""
    width = weight.shape[1]
    base = np.empty(width, np.float32)
    sums = np.empty((max_parts, width), np.float32)
    ready = np.empty(max_parts, np.bool_)
    for i in range(offset.shape[0] - 1):
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
            row = out[n - offset[0]]
            if option_part.shape[1] == 4:  # the common case in one pass
                a, b = sums[option_part[n, 0] - first], sums[option_part[n, 1] - first]
                c, d = sums[option_part[n, 2] - first], sums[option_part[n, 3] - first]
                for h in range(width):
                    row[h] = max(base[h] + (a[h] + b[h]) + (c[h] + d[h]), _0)
                continue
            for h in range(width):
                row[h] = base[h]
            for k in range(option_part.shape[1]):
                a = sums[option_part[n, k] - first]
                for h in range(width):
                    row[h] += a[h]
            for h in range(width):
                row[h] = max(row[h], _0)


@fast_kernel
def _spread_options(offset, shared, shared_length, part, part_length, option_part, max_parts, out, grad, into, bias):
    """The gradient of that layer. Writes into, bias."""
    width = into.shape[1]
    base = np.empty(width, np.float32)
    flow = np.empty(width, np.float32)
    sums = np.empty((max_parts, width), np.float32)
    used = np.empty(max_parts, np.bool_)
    for i in range(offset.shape[0] - 1):
        base[:] = _0
        used[:] = False
        first = i * max_parts
        for n in range(offset[i], offset[i + 1]):
            at = n - offset[0]
            for h in range(width):
                flow[h] = grad[at, h] if out[at, h] > _0 else _0
                base[h] += flow[h]
            for k in range(option_part.shape[1]):
                p = option_part[n, k] - first
                if not used[p]:
                    used[p] = True
                    for h in range(width):
                        sums[p, h] = _0
                for h in range(width):
                    sums[p, h] += flow[h]
        for h in range(width):
            bias[h] += base[h]
        for k in range(shared_length[i]):
            row = into[shared[i, k]]
            for h in range(width):
                row[h] += base[h]
        for p in range(max_parts):
            if used[p]:
                for j in range(part_length[first + p]):
                    row = into[part[first + p, j]]
                    for h in range(width):
                        row[h] += sums[p, h]


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
    def forward(ctx: Any, weight: Tensor, bias: Tensor, rows: Rows, relu: bool) -> Tensor:
        out = torch.empty(len(rows.length), weight.shape[1])
        sum_features(weight.detach().numpy(), bias.detach().numpy(), rows.feature, rows.length, relu, out.numpy())
        ctx.rows, ctx.shape, ctx.relu = rows, weight.shape, relu
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad = grad * (ctx.saved_tensors[0] > 0) if ctx.relu else grad.contiguous()
        into = torch.zeros(ctx.shape)
        spread_features(ctx.rows.feature, ctx.rows.length, grad.numpy(), into.numpy())
        return into, grad.sum(0), None, None


class ByteSum(torch.autograd.Function):
    """Product with a matrix of mostly zero bytes, rectified if asked."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, observation: NDArray[np.uint8], relu: bool) -> Tensor:
        out = torch.empty(len(observation), weight.shape[1])
        sum_bytes(weight.detach().numpy(), bias.detach().numpy(), observation, relu, out.numpy())
        ctx.observation, ctx.shape, ctx.relu = observation, weight.shape, relu
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad = grad * (ctx.saved_tensors[0] > 0) if ctx.relu else grad.contiguous()
        into = torch.zeros(ctx.shape)
        spread_bytes(ctx.observation, grad.numpy(), into.numpy())
        return into, grad.sum(0), None, None


class OptionSum(torch.autograd.Function):
    """The rectified first layer of described options."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, options: Options, max_parts: int) -> Tensor:
        out = torch.empty(int(options.offset[-1] - options.offset[0]), weight.shape[1])
        lists = (options.shared, options.shared_length, options.part, options.part_length, options.option_part)
        weights = weight.detach().numpy(), bias.detach().numpy()
        _sum_options(*weights, options.offset, *lists, max_parts, out.numpy())
        ctx.lists, ctx.offset, ctx.max_parts, ctx.shape = lists, options.offset, max_parts, weight.shape
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        into, bias = torch.zeros(ctx.shape), torch.zeros(ctx.shape[1])
        out = ctx.saved_tensors[0].numpy()
        flow = grad.contiguous().numpy()
        _spread_options(ctx.offset, *ctx.lists, ctx.max_parts, out, flow, into.numpy(), bias.numpy())
        return into, bias, None, None


class SparseLayer(nn.Module):
    """Weights with a row per feature; the sums above, by kernel on the CPU and by torch elsewhere."""

    def __init__(self, features: int, width: int, active: float = 60.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, width) / active**0.5)  # about `active` features are there
        self.bias = nn.Parameter(torch.zeros(width))

    def of_features(self, rows: Rows, relu: bool = True) -> Tensor:
        """(n, H) for rows of feature lists."""
        if self.weight.device.type == "cpu":
            return FeatureSum.apply(self.weight, self.bias, rows, relu)  # type: ignore[no-any-return, no-untyped-call]
        out = self._bag(rows) + self.bias
        return torch.relu(out) if relu else out

    def of_bytes(self, observation: NDArray[np.uint8], relu: bool = True) -> Tensor:
        """(n, H) for rows of bytes."""
        if self.weight.device.type == "cpu":
            return ByteSum.apply(self.weight, self.bias, observation, relu)  # type: ignore[no-any-return, no-untyped-call]
        given = torch.from_numpy(observation).to(self.weight.device, non_blocking=True)
        out = given.float() @ self.weight + self.bias
        return torch.relu(out) if relu else out

    def of_options(self, options: Options, max_parts: int) -> Tensor:
        """(N, H) for the options of a chunk of decisions, rectified."""
        if self.weight.device.type == "cpu":
            return OptionSum.apply(self.weight, self.bias, options, max_parts)  # type: ignore[no-any-return, no-untyped-call]
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
