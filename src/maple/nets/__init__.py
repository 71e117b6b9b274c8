"""Networks: sparse first layers, sampling, policies."""

import os

# OpenMP's threads must sleep between torch's calls, not spin: the kernels' own threads use the same cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
