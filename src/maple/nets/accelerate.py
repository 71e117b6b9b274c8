"""What torch can do to be faster on some machines: 16-bit products, compiled layers. What does not pay stays off."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

__all__ = ["bfloat16_gain", "choose_precision", "compile_towers", "is_compiled"]

ROWS, WIDTH, TRIALS = 512, 256, 5
WORTH_IT = 1.1


def _product_s(dtype: torch.dtype) -> float:
    """Seconds for a matrix product in this kind of number."""
    a, b = torch.ones(ROWS, WIDTH, dtype=dtype), torch.ones(WIDTH, WIDTH, dtype=dtype)
    torch.mm(a, b)
    times = []
    for _ in range(TRIALS):
        began = time.perf_counter()
        torch.mm(a, b)
        times.append(time.perf_counter() - began)
    return min(times)


def bfloat16_gain() -> float:
    """How many times as fast 16-bit products are on this CPU: far below 1 unless it has instructions for them.

    Tried in a process of its own: some virtual machines announce instructions that they do not have. 0 where it dies.
    """
    tried = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=False)
    return float(tried.stdout) if tried.returncode == 0 else 0.0


def choose_precision(
    device: torch.device, amp: bool | None, tell: Callable[[str], None], gain: Callable[[], float] = bfloat16_gain
) -> torch.dtype | None:
    """The kind of number that dense layers multiply in while they learn; None for plain floats."""
    if device.type == "cuda":
        return None if amp is False else torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if not amp:
        return None
    times = gain()
    if times == 0:
        tell("torch.amp is off: 16-bit products end the process on this CPU; try ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")
        return None
    if times < WORTH_IT:
        tell(f"torch.amp is off: 16-bit products are {times:.2f} times as fast as plain ones on this CPU")
        return None
    return torch.bfloat16


def compile_towers(net: nn.Module, device: torch.device, tell: Callable[[str], None]) -> bool:
    """Compile a network's towers of dense layers, forward and backward; if that fails, say why and go on without."""
    towers = [tower for tower in net.children() if isinstance(tower, nn.Sequential) and isinstance(tower[0], nn.Linear)]
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


def is_compiled(tower: nn.Module) -> bool:
    """Whether torch runs compiled code for it."""
    return getattr(tower, "_compiled_call_impl", None) is not None


if __name__ == "__main__":
    sys.stdout.write(str(_product_s(torch.float32) / _product_s(torch.bfloat16)))
