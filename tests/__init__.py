"""Tests, a room for each of the package's.

Some virtual machines announce matrix tiles that end a process which uses them: 16-bit products do without here.
"""

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
