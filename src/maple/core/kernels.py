"""How compiled code is made here: one decorator, one cache, a few bit instructions.

Numba's own cache does not notice a change in a file that a kernel calls into, so the cache folder is named
after a hash of every source file that holds kernels; an edit anywhere makes a new folder.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = [
    "add_shared",
    "cache_dir",
    "clz",
    "ctz",
    "cycles",
    "fast_kernel",
    "float_from_bits",
    "is_compiled",
    "kernel",
    "let_others_run",
    "load_shared",
    "mark_compiled",
    "popcount",
]

let_others_run = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())

_DEFINED_AT_ZERO = ir.Constant(ir.IntType(1), 0)
_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def source_hash() -> str:
    """A hash of every kernel source in the package and of the Numba version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"@kernel" in text or b"@fast_kernel" in text:
            digest.update(str(path.relative_to(_PACKAGE)).encode())
            digest.update(text)
    return digest.hexdigest()[:16]


@cache
def cache_dir() -> Path:
    """The folder of compiled code: under the user's cache, or a temporary one where that cannot be written."""
    base = os.environ.get("MAPLE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "maple" / "kernels" / source_hash()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        fallback = Path(tempfile.gettempdir()) / "maple-kernels" / source_hash()
        fallback.mkdir(parents=True, exist_ok=True)
        return fallback


def is_compiled(name: str) -> bool:
    """Whether the kernels called `name` were compiled on this machine before, from these very sources."""
    return (cache_dir() / f"{name}.compiled").exists()


def mark_compiled(name: str) -> None:
    """Remember that the kernels called `name` are in the cache."""
    (cache_dir() / f"{name}.compiled").touch()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile to machine code that releases the GIL, cached on disk."""
    numba.config.CACHE_DIR = str(cache_dir())
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def fast_kernel(function: Callable[..., Any]) -> Any:
    """The same for sums of floats, which may then be reordered into vector instructions."""
    numba.config.CACHE_DIR = str(cache_dir())
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=True)(function)


@intrinsic
def popcount(_context: Any, word: Any) -> Any:
    """Number of set bits of a uint64, as int64."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@intrinsic
def ctz(_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a uint64 (64 for zero), as int64."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], _DEFINED_AT_ZERO)

    return types.int64(types.uint64), generate


@intrinsic
def clz(_context: Any, word: Any) -> Any:
    """Number of zero bits above the highest set bit of a uint64 (64 for zero), as int64."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], _DEFINED_AT_ZERO)

    return types.int64(types.uint64), generate


@intrinsic
def float_from_bits(_context: Any, bits: Any) -> Any:
    """The float32 with the bit pattern of an int32."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def load_shared(_context: Any, address: Any) -> Any:
    """The int64 at an address that another thread may write, read anew each time."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def cycles(_context: Any) -> Any:
    """The processor's own clock, as int64."""

    def generate(_ctx: Any, builder: Any, _sig: Any, _args: Any) -> Any:
        counter = builder.module.declare_intrinsic("llvm.readcyclecounter", fnty=ir.FunctionType(ir.IntType(64), []))
        return builder.call(counter, [])

    return types.int64(), generate


@intrinsic
def add_shared(_context: Any, address: Any, amount: Any) -> Any:
    """Add to the int64 at an address that other threads may write; what was there before."""

    def generate(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate
