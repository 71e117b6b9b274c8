"""A disk that fails for a while, as it is told of: once when it begins and once when it is over."""

from __future__ import annotations

from collections.abc import Callable

from maple.core.errors import CheckpointError, RunError

__all__ = ["Outages"]


class Outages:
    """Lets what cannot be written now be written later; each kind of thing has outages of its own.

    A disk that has no room for a checkpoint may still take a line of a record, so one does not speak for the other.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._failing: set[str] = set()

    def attempt(self, what: str, write: Callable[[], object]) -> bool:
        """Write something; whether that was possible."""
        try:
            write()
        except (CheckpointError, RunError) as error:
            if what not in self._failing:
                self._failing.add(what)
                reason = str(error).partition(";")[0]
                self._warn(f"{reason}; training goes on without {what} and tries again: free some space meanwhile")
            return False
        if what in self._failing:
            self._failing.remove(what)
            self._warn(f"{what} can be written again")
        return True
