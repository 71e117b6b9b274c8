"""Room for what may be larger than memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from maple.core.errors import RunError

__all__ = ["zeros"]


def zeros(shape: tuple[int, int], dtype: DTypeLike, folder: Path | None) -> NDArray[Any]:
    """Zeros in memory, or with a folder in a file there that has no name and disappears with the process.

    The file's space is taken at once: a full disk is noticed now, not in a crash.
    """
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if folder is None or not size:
        return np.zeros(shape, dtype)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix="replay-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype, "r+" if hasattr(os, "posix_fallocate") else "w+", shape=shape)
    except OSError as error:
        raise RunError(
            f"cannot keep the replay's {size / 2**30:.1f} GiB in {folder}: {error.strerror}; free some space or lower "
            "dqn.capacity"
        ) from None
