"""What is wrong with settings, said in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from maple.core.errors import nearest

__all__ = ["sentence"]

_PLAIN = {
    "int_parsing": "it must be a whole number",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_parsing": "it must be a number",
    "float_type": "it must be a number",
    "bool_parsing": "it must be true or false",
    "bool_type": "it must be true or false",
    "string_type": "it must be a text",
    "finite_number": "it must be a finite number",
    "list_type": "it must be a list, such as [128, 64]",
}


def sentence(error: ValidationError, known: Iterable[str], source: Mapping[str, str]) -> str:
    """The first problem of settings that came from `source`, by dotted key."""
    first: Any = error.errors()[0]
    names = [
        str(part) for part in first["loc"] if part not in ("int", "constrained-int") and "literal" not in str(part)
    ]
    key = ".".join(names)
    origin = next((source[name] for name in (key, key.rpartition(".")[0]) if name in source), "")
    origin = f" (from {origin})" if origin.startswith("$") else ""
    if first["type"] == "extra_forbidden":
        return f"there is no setting {key!r}{origin}; {nearest(key, known)}" if key else "a setting needs a name"
    if first["type"] == "value_error":  # two settings that do not go together, or one whose value is not to be shown
        return f"{key}{origin}: {first['ctx']['error']}"
    if first["type"] == "model_type":
        return f"{key} = {first['input']!r}{origin} cannot be used: it is a group of settings, set {key}.NAME instead"
    if first["type"] == "missing":
        return f"{key}{origin} is missing"
    told = _PLAIN.get(first["type"], first["msg"].lower().replace("input should be", "it must be"))
    return f"{key} = {first['input']!r}{origin} cannot be used: {told}"
