"""Other libraries' prioritized buffers over the same rows: what a batch costs to draw and to weigh anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["PEERS", "PeerReplay", "TianshouReplay", "TorchrlReplay"]

ALPHA, BETA = 0.6, 0.4


class PeerReplay(Protocol):
    """A full buffer of rows of bytes."""

    def sample(self) -> Any:
        """Draw and copy out a batch; returns its rows."""

    def update(self, rows: Any, error: NDArray[np.float32]) -> None:
        """Give those rows new priorities."""


class TorchrlReplay:
    """TorchRL's buffer of tensors with its prioritized sampler, a segment tree in C++."""

    def __init__(self, observation: NDArray[np.uint8], batch: int) -> None:
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
        from torchrl.data.replay_buffers.samplers import PrioritizedSampler

        n = len(observation)
        sampler = PrioritizedSampler(n, ALPHA, BETA)
        self._buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(n), sampler=sampler, batch_size=batch)
        seen = torch.from_numpy(observation)
        columns = {"action": torch.zeros(n, dtype=torch.int16), "reward": torch.zeros(n), "discount": torch.zeros(n)}
        self._buffer.extend(TensorDict({"seen": seen, "beyond": seen.clone(), **columns}, batch_size=[n]))

    def sample(self) -> Any:
        """Draw a batch."""
        return self._buffer.sample()["index"]

    def update(self, rows: Any, error: NDArray[np.float32]) -> None:
        """Write priorities."""
        self._buffer.update_priority(rows, torch.from_numpy(error).abs())


class TianshouReplay:
    """Tianshou's prioritized buffer, a segment tree in Numba."""

    def __init__(self, observation: NDArray[np.uint8], batch: int) -> None:
        from tianshou.data import PrioritizedReplayBuffer, ReplayBuffer

        n = len(observation)
        no = np.zeros(n, np.bool_)
        columns = {"act": np.zeros(n, np.int16), "rew": np.zeros(n), "terminated": no, "truncated": no, "done": no}
        rows = ReplayBuffer.from_data(obs=observation, obs_next=observation.copy(), **columns)
        self._buffer = PrioritizedReplayBuffer(n, ALPHA, BETA)
        self._buffer.update(rows)  # row by row with add(), a million would take an hour
        self._batch = batch

    def sample(self) -> Any:
        """Draw a batch."""
        return self._buffer.sample(self._batch)[1]

    def update(self, rows: Any, error: NDArray[np.float32]) -> None:
        """Write priorities."""
        self._buffer.update_weight(rows, error)


PEERS: dict[str, Callable[[NDArray[np.uint8], int], PeerReplay]] = {
    "torchrl": TorchrlReplay,
    "tianshou": TianshouReplay,
}
