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

from maple.core.kernels import fast_kernel, kernel
from maple.core.step import Options

__all__ = [
    "ByteSum",
    "FeatureSum",
    "OptionSum",
    "Rows",
    "SparseLayer",
    "add_rows",
    "gather_options",
    "spread_bytes",
    "spread_features",
    "spread_row",
    "sum_bytes",
    "sum_features",
    "sum_options",
]

_0 = np.float32(0)


@fast_kernel
def add_rows(weight, feature, length, out):
    """out += the weight rows of a list of features, four at a time. Writes out."""
    width, whole = weight.shape[1], length - length % 4
    for k in range(0, whole, 4):
        a, b, c, d = weight[feature[k]], weight[feature[k + 1]], weight[feature[k + 2]], weight[feature[k + 3]]
        for h in range(width):
            out[h] += (a[h] + b[h]) + (c[h] + d[h])
    for k in range(whole, length):
        a = weight[feature[k]]
        for h in range(width):
            out[h] += a[h]


@fast_kernel
def sum_features(weight, bias, feature, length, relu, out):
    """out = sum of the weight rows of each row's features. Writes out."""
    width = weight.shape[1]
    for i in range(out.shape[0]):
        for h in range(width):
            out[i, h] = bias[h]
        add_rows(weight, feature[i], np.int64(length[i]), out[i])
        if relu:
            for h in range(width):
                out[i, h] = max(out[i, h], _0)


@fast_kernel
def spread_row(feature, length, grad, into):
    """Add a gradient to the rows of a list of features. Writes into."""
    for k in range(length):
        row = into[feature[k]]
        for h in range(into.shape[1]):
            row[h] += grad[h]


@fast_kernel
def spread_features(feature, length, grad, into):
    """The gradient of that sum. Writes into."""
    for i in range(feature.shape[0]):
        spread_row(feature[i], length[i], grad[i], into)


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
def _join(base, sums, parts, first, out):
    """out = base and the sums of an option's parts; four parts, the common case, in one pass. Writes out."""
    if len(parts) == 4:
        a, b, c, d = sums[parts[0] - first], sums[parts[1] - first], sums[parts[2] - first], sums[parts[3] - first]
        for h in range(len(out)):
            out[h] = base[h] + (a[h] + b[h]) + (c[h] + d[h])
        return
    for h in range(len(out)):
        out[h] = base[h]
    for p in parts:
        a = sums[p - first]
        for h in range(len(out)):
            out[h] += a[h]


@fast_kernel
def sum_options(weight, bias, options, max_parts, lo, hi, out):
    """The rectified first layer of every option of decisions [lo, hi). Writes out.

    options: the arrays of `Options` from `offset` on, without the actions.
    """
    offset, shared, shared_length, part, part_length, option_part = options
    width, parts = weight.shape[1], option_part.shape[1]
    base = np.empty(width, np.float32)
    sums = np.empty((max_parts if parts > 1 else 1, width), np.float32)
    ready = np.empty(max_parts, np.bool_)
    for i in range(lo, hi):
        for h in range(width):
            base[h] = bias[h]
        add_rows(weight, shared[i], np.int64(shared_length[i]), base)
        ready[:] = False
        first = i * max_parts
        for n in range(offset[i], offset[i + 1]):
            row = out[n - offset[lo]]
            if parts == 1:
                p = option_part[n, 0]
                for h in range(width):
                    row[h] = base[h]
                add_rows(weight, part[p], np.int64(part_length[p]), row)
            else:
                for k in range(parts):
                    p = option_part[n, k] - first
                    if not ready[p]:
                        ready[p] = True
                        sums[p] = _0
                        add_rows(weight, part[first + p], np.int64(part_length[first + p]), sums[p])
                _join(base, sums, option_part[n], first, row)
            for h in range(width):
                row[h] = max(row[h], _0)


@fast_kernel
def _spread_options(options, max_parts, lo, hi, out, grad, into, bias):
    """The gradient of that layer. Writes into, bias."""
    offset, shared, shared_length, part, part_length, option_part = options
    width, parts = into.shape[1], option_part.shape[1]
    base = np.empty(width, np.float32)
    flow = np.empty(width, np.float32)
    sums = np.empty((max_parts if parts > 1 else 1, width), np.float32)
    used = np.empty(max_parts, np.bool_)
    for i in range(lo, hi):
        base[:] = _0
        used[:] = False
        first = i * max_parts
        for n in range(offset[i], offset[i + 1]):
            at = n - offset[lo]
            for h in range(width):
                flow[h] = grad[at, h] if out[at, h] > _0 else _0
                base[h] += flow[h]
            if parts == 1:
                p = option_part[n, 0]
                spread_row(part[p], part_length[p], flow, into)
                continue
            for k in range(parts):
                p = option_part[n, k] - first
                if not used[p]:
                    used[p] = True
                    sums[p] = _0
                for h in range(width):
                    sums[p, h] += flow[h]
        for h in range(width):
            bias[h] += base[h]
        spread_row(shared[i], shared_length[i], base, into)
        for p in range(max_parts if parts > 1 else 0):
            if used[p]:
                spread_row(part[first + p], part_length[first + p], sums[p], into)


@kernel
def gather_options(rows, each, offset, kept, out):
    """Copy the options of some decisions to where they belong; `each`: 0, or parts of a decision. Writes out."""
    action, shared, shared_length, part, part_length, option_part = kept
    to_action, to_shared, to_shared_length, to_part, to_part_length, to_option_part = out
    at = 0
    for n in range(len(rows)):
        i = rows[n]
        begin, count = offset[i], offset[i + 1] - offset[i]
        to_shared_length[n] = shared_length[i]
        to_shared[n, : shared_length[i]] = shared[i, : shared_length[i]]
        first, parts, place = (begin, count, at) if each == 0 else (i * each, each, n * each)
        for k in range(parts):
            length = part_length[first + k]
            to_part_length[place + k] = length
            to_part[place + k, :length] = part[first + k, :length]
        for k in range(count):
            to_action[at + k] = action[begin + k]
            for which in range(option_part.shape[1]):
                to_option_part[at + k, which] = option_part[begin + k, which] + place - first
        at += count


class Rows:
    """Rows of feature lists."""

    __slots__ = ("feature", "length")

    def __init__(self, feature: NDArray[np.int16], length: NDArray[np.int16]) -> None:
        self.feature = feature  # (n, width)
        self.length = length  # (n,)

    def of(self, lo: int, hi: int) -> Rows:
        """Rows [lo, hi)."""
        return Rows(self.feature[lo:hi], self.length[lo:hi])

    def bags(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """(n, width) the features and whether each is there, 0 or 1: what torch's embedding bags take.

        They travel as they are stored, so that a GPU can read them by itself, and are made longer there.
        """
        feature, length = (torch.from_numpy(x).to(device, non_blocking=True) for x in (self.feature, self.length))
        there = torch.arange(self.feature.shape[1], device=device) < length[:, None]
        return feature.long().masked_fill(~there, 0), there.float()


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
        out = torch.empty(int(options.offset[-1]), weight.shape[1])
        decisions = len(options.offset) - 1
        weights = weight.detach().numpy(), bias.detach().numpy()
        sum_options(*weights, options.lists(), max_parts, 0, decisions, out.numpy())
        ctx.options, ctx.max_parts, ctx.shape = options, max_parts, weight.shape
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        into, bias = torch.zeros(ctx.shape), torch.zeros(ctx.shape[1])
        out, decisions = ctx.saved_tensors[0].numpy(), len(ctx.options.offset) - 1
        flow = grad.contiguous().numpy()
        _spread_options(ctx.options.lists(), ctx.max_parts, 0, decisions, out, flow, into.numpy(), bias.numpy())
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
        decision = np.repeat(np.arange(len(options.offset) - 1), np.diff(options.offset))
        shared = self._bag(Rows(options.shared, options.shared_length))
        parts = self._bag(Rows(options.part, options.part_length))
        chosen = torch.from_numpy(options.option_part[: options.offset[-1]]).to(device, non_blocking=True).long()
        return torch.relu(shared[torch.from_numpy(decision).to(device)] + parts[chosen].sum(1) + self.bias)

    def _bag(self, rows: Rows) -> Tensor:
        feature, there = rows.bags(self.weight.device)
        return nn.functional.embedding_bag(feature, self.weight, mode="sum", per_sample_weights=there)
