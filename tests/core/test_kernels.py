from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.caching import NullCache

from maple.core import kernel_cache
from maple.core.kernel_cache import kernel_sources
from maple.core.kernels import clz, ctz, fast_kernel, kernel, popcount
from maple.nets.dense import add_product

WORD = st.integers(0, 2**64 - 1)


@kernel
def bits(word):
    """All three bit instructions of a word."""
    return popcount(word), ctz(word), clz(word)


@settings(max_examples=100, deadline=None)
@given(word=WORD)
def test_bit_instructions_match_plain_python(word: int) -> None:
    low = (word & -word).bit_length() - 1 if word else 64
    assert bits(np.uint64(word)) == (word.bit_count(), low, 64 - word.bit_length())


@pytest.mark.parametrize("word", [0, 1, 1 << 63, 2**64 - 1])
def test_bit_instructions_at_the_ends(word: int) -> None:
    low = (word & -word).bit_length() - 1 if word else 64
    assert bits(np.uint64(word)) == (word.bit_count(), low, 64 - word.bit_length())


@pytest.fixture
def _fresh_cache_dir() -> Iterator[None]:
    kernel_cache.cache_dir.cache_clear()
    yield
    kernel_cache.cache_dir.cache_clear()


@pytest.mark.usefixtures("_fresh_cache_dir")
def test_cache_dir_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPLE_CACHE_DIR", str(tmp_path))
    folder = kernel_cache.cache_dir()
    assert folder == tmp_path / "maple" / "kernels"
    assert folder.is_dir()


@pytest.mark.usefixtures("_fresh_cache_dir")
def test_cache_dir_moves_where_it_can_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in the way stands for a folder that cannot be written."""
    (tmp_path / "maple").write_text("in the way")
    monkeypatch.setenv("MAPLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    folder = kernel_cache.cache_dir()
    assert folder == tmp_path / "elsewhere" / "maple-kernels"
    assert folder.is_dir()


@pytest.mark.usefixtures("_fresh_cache_dir")
def test_compiled_mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPLE_CACHE_DIR", str(tmp_path))
    assert not kernel_cache.is_compiled("ofc")
    kernel_cache.mark_compiled("ofc")
    assert kernel_cache.is_compiled("ofc")
    assert not kernel_cache.is_compiled("catan")


def _made_of(module: str) -> set[str]:
    found = kernel_sources(kernel_cache.PACKAGE / module)
    return {path.relative_to(kernel_cache.PACKAGE).as_posix() for path in found}


def test_the_sources_are_all_that_kernels_are_made_of() -> None:
    wargame, showdown = _made_of("games/wargame/rules.py"), _made_of("games/showdown/encode.py")
    assert {"games/wargame/rules.py", "games/wargame/combat.py", "core/rng.py"} <= wargame  # hold kernels
    assert {"games/wargame/state.py", "games/wargame/content.py"} <= wargame  # hold constants of kernels
    assert "games/showdown/bridge/schema.json" in showdown  # is where constants of kernels come from
    assert not any("showdown" in name or "learn" in name for name in wargame)


def test_a_constant_that_a_kernel_uses_counts(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "rules.py").write_text("from maple.core.sizes import SIZE\n\n@kernel\ndef f(): ...\n")
    (tmp_path / "core" / "sizes.py").write_text("from maple.core.deeper import SIZE\n")
    (tmp_path / "core" / "deeper.py").write_text("SIZE = 3\n")
    (tmp_path / "core" / "other.py").write_text("from maple.core.rules import f\n")
    found = kernel_sources(tmp_path / "core" / "rules.py", tmp_path)
    assert [path.name for path in found] == ["deeper.py", "rules.py", "sizes.py"]


DRAWS = """
import numpy as np
from maple.core.rng import bounded
bounded(np.uint64(7), np.{kind}(5))
print(len(bounded.stats.cache_hits), len(bounded.stats.cache_misses))
"""


def test_another_copy_of_the_sources_compiles_nothing_again_and_processes_save_side_by_side(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "maple"
    for name in ("__init__.py", "core", "perf"):
        source = kernel_cache.PACKAGE / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            copy.mkdir(parents=True)
            shutil.copy(source, copy)

    def start(kind: str, place: Path) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(place), "MAPLE_CACHE_DIR": str(tmp_path / "cache")}
        code = [sys.executable, "-c", DRAWS.format(kind=kind)]
        return subprocess.Popen(code, env=environment, stdout=subprocess.PIPE, text=True)

    first = [start(kind, kernel_cache.PACKAGE.parent) for kind in ("int32", "int64")]
    assert [child.communicate()[0].split() for child in first] == [["0", "1"]] * 2
    again = [start(kind, copy.parent) for kind in ("int32", "int64")]
    assert [child.communicate()[0].split() for child in again] == [["1", "0"]] * 2


def test_fast_kernels_call_no_code_that_another_may_have_put_there() -> None:
    @fast_kernel
    def products(a, b, out):
        for _ in range(2):
            add_product(a, b, out)
            add_product(b, a, out)

    products._cache = NullCache()  # code from the cache cannot be looked at
    ones, out = np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
    products(ones, ones, out)
    assert (out == 32).all()
    (code,) = products.inspect_llvm().values()
    called = [line for line in code.splitlines() if " call " in line and "add_product" in line]
    assert called == []
