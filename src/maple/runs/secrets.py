"""What must never be shown or written: addresses of messages, credentials of storage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["secrets_of", "without_secrets"]

SHORTEST = 8  # characters that a part of an address must have to be looked for by itself
_SECRET_NAMES = re.compile(
    "SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|WEBHOOK|NOTIFY_URL|ACCESS_KEY|API_KEY"
    "|ACCOUNT_KEY|STORAGE_KEY|CONNECTION_STRING|(^|_)SAS(_|$)"  # Azure's
)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that hold credentials and addresses, by their names."""
    return [value for name, value in environment.items() if _SECRET_NAMES.search(name) and len(value) >= SHORTEST]


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """The text with every secret, and every long part of one that is an address, taken out."""
    for secret in secrets:
        parts = [secret, *re.split("[?@:/&=]", secret)]
        for part in sorted((part for part in parts if len(part) >= SHORTEST), key=len, reverse=True):
            text = text.replace(part, "[hidden]")
    return text
