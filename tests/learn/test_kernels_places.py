"""What kernels work out does not depend on where their arrays lie: a resumed run has other places for them."""

from __future__ import annotations

import numpy as np
import pytest

from maple.learn.index_gradient import soften


@pytest.mark.parametrize("n", [9, 20, 40, 60, 150])
def test_probabilities_are_the_same_wherever_they_are_written(n: int) -> None:
    memory, rng = np.zeros(4 * n + 1024, np.float32), np.random.default_rng(n)
    for logits in rng.normal(size=(20, n)).astype(np.float32):
        found = set[bytes]()
        for gap in [*range(n, n + 130), *range(-n - 130, -n)]:
            begin = max(0, -gap)
            log_p, p = memory[begin : begin + n], memory[begin + gap : begin + gap + n]
            log_p[:] = logits
            soften(n, log_p, p)
            found.add(log_p.tobytes() + p.tobytes())
        assert len(found) == 1
