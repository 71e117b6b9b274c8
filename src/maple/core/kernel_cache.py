"""Where compiled code is kept: one place for the same sources, whichever copy of them a process runs.

Numba's own cache does not notice a change in a file that a kernel calls into or takes a constant from, and keeps a
folder for each place that the sources lie in. Here a module's folder is named after a hash of all that its kernels are
made of, so an edit costs the compiling of what depends on it, and no more.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from filelock import FileLock
from numba.core import caching

__all__ = ["KernelCache", "cache_dir", "is_compiled", "kernel_sources", "mark_compiled", "source_hash"]

PACKAGE = Path(__file__).resolve().parents[1]
_KERNEL = re.compile(rb"^@(?:fast_)?kernel\b", re.MULTILINE)
_IMPORT = re.compile(rb"^from maple\.([\w.]+) import", re.MULTILINE)


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


def kernel_sources(module: Path, package: Path = PACKAGE) -> list[Path]:
    """The file itself, what it imports of the package, directly or not, and the tables that constants come from."""
    found, waiting = {module}, [module]
    while waiting:
        for name in _IMPORT.findall(_text(waiting.pop())):
            path = package.joinpath(*name.decode().split(".")).with_suffix(".py")
            if path not in found and path.is_file():
                found.add(path)
                waiting.append(path)
    return sorted(found | {table for path in found for table in path.parent.glob("*/schema.json")})


@cache
def source_hash(module: Path) -> str:
    """A hash of all that the kernels of a module are made of: sources, and what compiles them."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for path in kernel_sources(module):
        digest.update(os.path.relpath(path, PACKAGE).encode() if path.is_relative_to(PACKAGE) else b"")
        digest.update(_text(path))
    return digest.hexdigest()[:16]


@cache
def _all_sources() -> str:
    """A hash of the sources of every kernel in the package."""
    holders = (path for path in sorted(PACKAGE.rglob("*.py")) if _KERNEL.search(_text(path)))
    return hashlib.sha256("".join(map(source_hash, holders)).encode()).hexdigest()[:16]


@cache
def cache_dir() -> Path:
    """The folder of compiled code: under the user's cache, or a temporary one where that cannot be written."""
    base = os.environ.get("MAPLE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "maple" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        fallback = Path(tempfile.gettempdir()) / "maple-kernels"
        fallback.mkdir(parents=True, exist_ok=True)
        return fallback


def _mark(name: str) -> Path:
    return cache_dir() / f"{name}-{_all_sources()}.compiled"


def is_compiled(name: str) -> bool:
    """Whether the kernels called `name` were compiled on this machine before, from these very sources."""
    return _mark(name).exists()


def mark_compiled(name: str) -> None:
    """Remember that the kernels called `name` are in the cache."""
    _mark(name).touch()


class _Place(caching._CacheLocator):  # type: ignore[misc]
    """Says where the code of a function is kept; whatever makes it out of date moves it elsewhere."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self._line = function.__code__.co_firstlineno
        module = file.relative_to(PACKAGE).parts if file.is_relative_to(PACKAGE) else (file.name,)
        self._folder = f"{'.'.join(module).removesuffix('.py')}-{source_hash(file)}"

    def get_cache_path(self) -> str:
        return str(cache_dir() / self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Place:
        place = cls(py_func, Path(py_file).resolve())
        place.ensure_cache_path()
        return place


class _Kept(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Place,)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The compiled code of one function, a file for each kind of arguments."""

    _impl_class = _Kept

    def _save_overload(self, sig: Any, data: Any) -> None:
        """One process at a time: two that save at once would give their code the same number, and one the other's.

        Where there is no space, the code is used and not kept.
        """
        with suppress(OSError), FileLock(Path(self.cache_path) / "saving.lock"):
            super()._save_overload(sig, data)
