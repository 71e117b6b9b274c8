"""How compiled code is made here: one decorator, one cache, a few bit instructions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from maple.core.kernel_cache import KernelCache

__all__ = [
    "add_shared",
    "clz",
    "ctz",
    "cycles",
    "fast_kernel",
    "float_from_bits",
    "kernel",
    "let_others_run",
    "load_shared",
    "popcount",
]

let_others_run = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())

_DEFINED_AT_ZERO = ir.Constant(ir.IntType(1), 0)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile to machine code that releases the GIL, cached on disk."""
    return _cached(numba.njit(nogil=True, error_model="numpy")(function))


def fast_kernel(function: Callable[..., Any]) -> Any:
    """The same for sums of floats, which may then be reordered into vector instructions.

    Always made part of its caller: each caller's copy adds up in an order of its own, and which copy a call meets would
    depend on what else the process has loaded. A run that is resumed would not be exact.
    """
    return _cached(numba.njit(nogil=True, error_model="numpy", fastmath=True, forceinline=True)(function))


def _cached(compiled: Any) -> Any:
    compiled._cache = KernelCache(compiled.py_func)
    return compiled


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
