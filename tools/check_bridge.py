"""Check the types of the Node bridge's sources with the pinned TypeScript."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from maple.games.showdown.runtime import find_node, installed_modules
from maple.games.showdown.schema import BRIDGE


def main() -> int:
    modules = installed_modules() / "node_modules"
    config = {
        "extends": str(BRIDGE / "tsconfig.json"),
        "compilerOptions": {"typeRoots": [str(modules / "@types")]},
        "include": [str(BRIDGE / folder / "*.js") for folder in ("src", "test")],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tsconfig.json"
        path.write_text(json.dumps(config))
        return subprocess.run([find_node(), str(modules / "typescript" / "bin" / "tsc"), "-p", str(path)]).returncode


if __name__ == "__main__":
    sys.exit(main())
