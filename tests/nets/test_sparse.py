"""The sparse layers against the same sums written in torch."""

from __future__ import annotations

import numpy as np
import torch

from maple.core.threads import Team
from maple.nets.seen import Seen
from maple.nets.sparse import SparseLayer
from tests.conftest import Decisions


def _gradients(layer: SparseLayer, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    return torch.autograd.grad((out * torch.rand(out.shape, generator=generator)).sum(), [layer.weight, layer.bias])


def test_options_by_kernel_equal_options_by_torch(decisions: Decisions, team: Team) -> None:
    seen = Seen(decisions.game, team)
    layer = SparseLayer(seen.spec.features, 24)
    options = seen.options(decisions.view)
    assert len(options.action) == seen.count(decisions.view).sum()
    fast, slow = layer.of_options(options, seen.spec.max_parts), layer.of_options_in_torch(options)
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-4)
    for a, b in zip(_gradients(layer, fast), _gradients(layer, slow), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-2)


def test_features_by_kernel_equal_embedding_bag(decisions: Decisions, team: Team) -> None:
    seen = Seen(decisions.game, team)
    layer = SparseLayer(seen.spec.features, 24)
    rows = seen.state(decisions.view)
    keep = np.arange(rows.feature.shape[1]) < rows.length[:, None]
    index = torch.from_numpy(rows.feature[keep].astype(np.int64))
    start = torch.from_numpy(np.concatenate([[0], np.cumsum(rows.length[:-1], dtype=np.int64)]))
    slow = torch.relu(torch.nn.functional.embedding_bag(index, layer.weight, start, mode="sum") + layer.bias)
    fast = layer.of_features(rows)
    torch.testing.assert_close(torch.relu(layer._bag(rows) + layer.bias), slow, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-4)
    for a, b in zip(_gradients(layer, fast), _gradients(layer, slow), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_bytes_by_kernel_equal_matrix_product(decisions: Decisions, team: Team) -> None:
    seen = Seen(decisions.game, team)
    observation, _ = seen.observation(decisions.view)
    layer = SparseLayer(observation.shape[1], 24)
    for relu in (True, False):
        dense = torch.from_numpy(observation).float() @ layer.weight + layer.bias
        slow = torch.relu(dense) if relu else dense
        fast = layer.of_bytes(observation, relu)
        torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-3)
        for a, b in zip(_gradients(layer, fast), _gradients(layer, slow), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-2)


def test_an_option_is_what_describe_choice_says_of_it(decisions: Decisions, team: Team) -> None:
    seen = Seen(decisions.game, team)
    layer = SparseLayer(seen.spec.features, 16)
    options = seen.options(decisions.view)
    by_parts = layer.of_options(options, seen.spec.max_parts).detach()
    last = options.offset[1:] - 1
    rows = seen.choice(decisions.view, options.action[last])
    whole = layer.of_features(rows).detach()
    torch.testing.assert_close(by_parts[torch.from_numpy(last)], whole, rtol=1e-4, atol=1e-4)
    assert np.all(rows.length > 0)
