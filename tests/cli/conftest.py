"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_evaluation_unless_asked_for() -> Iterator[None]:
    """Tiny runs end at once; the tests of the evaluation at the end ask for it with --evaluate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPLE_EVALUATE", "false")
        yield
