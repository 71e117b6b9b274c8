"""YAML files that people write: their keys, or a sentence that says where the mistake is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from maple.core.errors import UserError

__all__ = ["read_yaml"]


def read_yaml(path: Path, error: type[UserError], holds: str, advice: str) -> dict[str, Any]:
    """The keys of a file; what is wrong is told as an `error`: that it has no `holds`, and what to do about it."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise error(f"cannot read {path}: {cause.strerror}; name a YAML file that is there") from None
    except (ValueError, yaml.YAMLError) as cause:
        place = getattr(cause, "problem_mark", None)
        where = f", line {place.line + 1}" if place is not None else ""
        raise error(f"{path}{where} is not YAML; {advice}") from None
    if tree is not None and not isinstance(tree, dict):
        raise error(f"{path} has no {holds}; {advice}")
    return tree or {}
