"""YAML files that people write: their keys, or a sentence that says where the mistake is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from maple.core.errors import UserError

__all__ = ["read_yaml"]


class _TwiceError(Exception):
    """A key that would silently replace an earlier one."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key, line)
        self.key, self.line = key, line


class _OnceEach(yaml.SafeLoader):
    """Reads what is safe, and every key once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if name in seen:
                raise _TwiceError(key.value, key.start_mark.line + 1)
            seen |= {name} - {None}
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, error: type[UserError], holds: str, advice: str) -> dict[str, Any]:
    """The keys of a file; what is wrong is told as an `error`: that it has no `holds`, and what to do about it."""
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), _OnceEach)
    except OSError as cause:
        raise error(f"cannot read {path}: {cause.strerror}; name a YAML file that is there") from None
    except _TwiceError as cause:
        raise error(f"{path}, line {cause.line}: {cause.key!r} is there twice; write it once") from None
    except (ValueError, yaml.YAMLError) as cause:
        place = getattr(cause, "problem_mark", None)
        where = f", line {place.line + 1}" if place is not None else ""
        raise error(f"{path}{where} is not YAML; {advice}") from None
    if tree is not None and not isinstance(tree, dict):
        raise error(f"{path} has no {holds}; {advice}")
    return tree or {}
