"""Anomalies of battles once more, from what was kept of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from maple.core.errors import GameError
from maple.games.showdown.runtime import find_node, installed_modules
from maple.games.showdown.schema import BRIDGE

__all__ = ["repeat_anomalies"]


def repeat_anomalies(anomalies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What becomes of each in a battle that is told the same: its `error` now, and whether it `repeats` what was kept.

    Those of battles on servers have no such battle; for them both are None.
    """
    told = [anomaly for anomaly in anomalies if "input" in anomaly]
    script = [find_node(), str(BRIDGE / "src" / "repeat_main.js"), str(installed_modules())]
    lines = "".join(json.dumps(anomaly) + "\n" for anomaly in told)
    done = subprocess.run(script, input=lines, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        why = next((line for line in done.stderr.splitlines() if "Error" in line), "it does not say why")
        raise GameError(f"these are no anomalies that can be repeated: {why.strip()}; give a file that a run wrote")
    found = iter([json.loads(line) for line in done.stdout.splitlines()])
    nothing = {"error": None, "repeats": None, "simulator": None}
    return [next(found) if "input" in anomaly else dict(nothing) for anomaly in anomalies]
