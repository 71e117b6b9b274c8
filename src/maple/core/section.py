"""What all groups of settings have in common, and the kinds of values that several of them take."""

from __future__ import annotations

import re
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

__all__ = ["Section", "Width", "file_name", "plain_url"]

Width = Annotated[int, Field(ge=1, le=65_536)]


class Section(BaseModel):
    """Settings that go together: frozen, and nothing is in them that they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _yes_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and not _allows(cls.model_fields[str(info.field_name)].annotation, bool):
            raise ValueError(f"it cannot be {value}")
        return value


def _allows(kind: Any, wanted: type) -> bool:
    return kind is wanted or kind is Any or any(_allows(part, wanted) for part in get_args(kind))


def file_name(name: str) -> str:
    """A name that any system takes for a file."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ValueError(f"{name!r} is no name for a file; use letters, digits, - and _")
    return name


def plain_url(url: str) -> str:
    """A URL that holds nothing secret; without showing it where it may."""
    if "?" in url or re.search("://[^/]*@", url):
        raise ValueError(
            "the URL must hold no password and no options after a question mark: give credentials as the provider's "
            "own settings do"
        )
    return url
