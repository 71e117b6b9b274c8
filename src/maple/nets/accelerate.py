"""What torch can do to be faster on some machines: 16-bit products, compiled layers. What does not pay stays off."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from maple.nets.dense import add_product

__all__ = ["KERNELS", "TORCH", "bfloat16_gain", "choose_precision", "compile_like", "compile_towers", "is_compiled"]

KERNELS, TORCH = "kernels", "torch"
ROWS, WIDTH, TRIALS = 512, 256, 5
WORTH_IT = 1.1


def _fastest_s(multiply: Callable[[], object]) -> float:
    """Seconds for a matrix product."""
    multiply()
    times = []
    for _ in range(TRIALS):
        began = time.perf_counter()
        multiply()
        times.append(time.perf_counter() - began)
    return min(times)


def _torch_s(dtype: torch.dtype) -> float:
    """Seconds for a matrix product in torch, in this kind of number."""
    a, b = torch.ones(ROWS, WIDTH, dtype=dtype), torch.ones(WIDTH, WIDTH, dtype=dtype)
    return _fastest_s(lambda: torch.mm(a, b))


def _kernels_s() -> float:
    """Seconds for the same product in kernels, in plain floats."""
    a, b, out = np.ones((ROWS, WIDTH), np.float32), np.ones((WIDTH, WIDTH), np.float32), np.zeros((ROWS, WIDTH), "f4")
    return _fastest_s(lambda: add_product(a, b, out))


def _measure(plain: str) -> float:
    torch.set_num_threads(1)  # as threads that learn have it
    return (_kernels_s() if plain == KERNELS else _torch_s(torch.float32)) / _torch_s(torch.bfloat16)


def bfloat16_gain(plain: str) -> float:
    """How many times as fast 16-bit products are on this CPU as `plain` ones, in kernels or in torch.

    Far below 1 unless it has instructions for them. Tried in a process of its own: some virtual machines announce
    instructions that they do not have. 0 where it dies.
    """
    tried = subprocess.run([sys.executable, "-m", __name__, plain], capture_output=True, text=True, check=False)
    return float(tried.stdout) if tried.returncode == 0 else 0.0


def choose_precision(
    device: torch.device,
    amp: bool | None,
    plain: str,
    tell: Callable[[str], None],
    gain: Callable[[str], float] = bfloat16_gain,
) -> torch.dtype | None:
    """The kind of number that dense layers multiply in while they learn; None for plain floats.

    `plain` says what multiplies otherwise, KERNELS or TORCH.
    """
    if device.type == "cuda":
        return None if amp is False else torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if not amp:
        return None
    times = gain(plain)
    if times == 0:
        tell("torch.amp is off: 16-bit products end the process on this CPU; try ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")
        return None
    if times < WORTH_IT:
        tell(f"torch.amp is off: torch's 16-bit products are {times:.2f} times as fast here as plain ones in {plain}")
        return None
    return torch.bfloat16


def compile_towers(net: nn.Module, device: torch.device, tell: Callable[[str], None]) -> bool:
    """Compile a network's towers of dense layers, forward and backward; if that fails, say why and go on without."""
    towers = [tower for tower in net.children() if isinstance(tower, nn.Sequential) and isinstance(tower[0], nn.Linear)]
    if not towers:
        tell("torch.compile is off: this network has no tower of dense layers")
        return False
    try:
        for tower in towers:
            tower.compile(dynamic=True)
            first = next(layer for layer in tower if isinstance(layer, nn.Linear))
            for rows in (64, 96):
                torch.autograd.grad(tower(torch.zeros(rows, first.in_features, device=device)).sum(), first.weight)
    except (RuntimeError, OSError, ImportError, subprocess.SubprocessError) as error:
        for tower in towers:
            tower._compiled_call_impl = None
        tell(f"torch.compile is off: {str(error).strip().splitlines()[0][:160]}")
        return False
    return True


def compile_like(original: nn.Module, copy: nn.Module) -> None:
    """Compile the layers of a copy whose originals are: copying loses that."""
    for ours, theirs in zip(original.modules(), copy.modules(), strict=True):
        if is_compiled(ours):
            theirs.compile(dynamic=True)


def is_compiled(tower: nn.Module) -> bool:
    """Whether torch runs compiled code for it."""
    return getattr(tower, "_compiled_call_impl", None) is not None


if __name__ == "__main__":
    sys.stdout.write(str(_measure(sys.argv[1])))
