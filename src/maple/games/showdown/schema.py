"""The layout of a view: bridge/schema.json, which the Node side reads too."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BRIDGE", "REWARD_PARTS", "Field", "Group", "Schema", "ended_dtype", "load_schema", "row_dtype"]

BRIDGE = Path(__file__).resolve().parent / "bridge"
REWARD_PARTS = ("win", "faint", "hp", "status", "turn")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a group."""

    name: str
    size: int  # bytes of one value
    count: int
    offset: int  # within a repetition of its group
    about: str
    source: str


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together, repeated."""

    name: str
    repeat: int
    at: int  # byte of the view
    stride: int
    fields: dict[str, Field]
    about: str

    def byte(self, field: str, number: int = 0) -> int:
        """Where a field of a repetition begins in the view."""
        return self.at + number * self.stride + self.fields[field].offset


@dataclass(frozen=True, slots=True)
class Schema:
    """All of it."""

    groups: dict[str, Group]
    lists: dict[str, list[str]]
    limits: dict[str, int]
    actions: int
    hash: str

    @property
    def bytes(self) -> int:
        """Of one view."""
        return sum(group.stride * group.repeat for group in self.groups.values())

    @property
    def words(self) -> int:
        """64-bit words of one view."""
        return self.bytes // 8


def _group(content: dict[str, Any], at: int) -> Group:
    fields, offset = {}, 0
    for field in content["fields"]:
        size, count = {"u8": 1, "u16": 2}[field["type"]], field.get("count", 1)
        fields[field["name"]] = Field(field["name"], size, count, offset, field["about"], field["source"])
        offset += size * count
    return Group(content["name"], content["repeat"], at, -(-offset // 8) * 8, fields, content.get("about", ""))


@cache
def load_schema() -> Schema:
    """The schema that ships with this version."""
    text = (BRIDGE / "schema.json").read_bytes()
    content, groups, at = json.loads(text), {}, 0
    for part in content["groups"]:
        group = _group(part, at)
        groups[group.name] = group
        at += group.stride * group.repeat
    digest = hashlib.sha256(text).hexdigest()[:16]
    return Schema(groups, content["lists"], content["limits"], content["actions"], digest)


def row_dtype() -> np.dtype[np.void]:
    """A waiting decision as the bridge writes it."""
    fields = [("epoch", "<u4"), ("table", "<i4"), ("game", "<u4"), ("decision", "<u4"), ("seat", "<u4")]
    return np.dtype([*fields, ("earned", "<f4", (len(REWARD_PARTS),)), ("view", "<u8", (load_schema().words,))])


def ended_dtype() -> np.dtype[np.void]:
    """A finished battle as the bridge writes it."""
    return np.dtype(
        [
            ("epoch", "<u4"),
            ("table", "<i4"),
            ("game", "<u4"),
            ("outcome", "<i2"),
            ("winner", "<i2"),
            ("turns", "<u2"),
            ("refused", "<u2"),
            ("decisions", "<u4", (2,)),
            ("unused", "V4"),
            ("earned", "<f4", (2, len(REWARD_PARTS))),
            ("last_view", "<u8", (2, load_schema().words)),
        ]
    )
