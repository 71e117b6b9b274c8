from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple.core import kernels
from maple.core.kernels import clz, ctz, kernel, popcount

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
    kernels.cache_dir.cache_clear()
    yield
    kernels.cache_dir.cache_clear()


@pytest.mark.usefixtures("_fresh_cache_dir")
def test_cache_dir_follows_the_environment_and_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPLE_CACHE_DIR", str(tmp_path))
    folder = kernels.cache_dir()
    assert folder == tmp_path / "maple" / "kernels" / kernels.source_hash()
    assert folder.is_dir()


@pytest.mark.usefixtures("_fresh_cache_dir")
def test_cache_dir_moves_where_it_can_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in the way stands for a folder that cannot be written."""
    (tmp_path / "maple").write_text("in the way")
    monkeypatch.setenv("MAPLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels.tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    folder = kernels.cache_dir()
    assert folder == tmp_path / "elsewhere" / "maple-kernels" / kernels.source_hash()
    assert folder.is_dir()


@pytest.mark.usefixtures("_fresh_cache_dir")
def test_compiled_mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPLE_CACHE_DIR", str(tmp_path))
    assert not kernels.is_compiled("ofc")
    kernels.mark_compiled("ofc")
    assert kernels.is_compiled("ofc")
    assert not kernels.is_compiled("catan")
