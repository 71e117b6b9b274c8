"""Where things are written: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["notes", "print_json", "print_table", "results", "warn"]


class _LastingConsole(Console):
    """A console that may go away: once a pipe is closed, a terminal gone or a disk full, it writes to nowhere.

    A run on the other end of an SSH line would otherwise end with the line.
    """

    def on_broken_pipe(self) -> None:
        """Left to `_check_buffer`: rich calls this where it caught the error, and would itself end the process."""
        raise

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError:
            self.quiet = True
            with suppress(OSError):  # where it is no file of the system
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.file.fileno())  # what is still buffered would fail again at the end
                os.close(nowhere)


# without emoji: a weight such as `self:-1:` would be shown as a thumb
results = _LastingConsole(highlight=False, emoji=False)
notes = _LastingConsole(stderr=True, highlight=False, emoji=False)


def warn(sentence: str) -> None:
    """Something that a user should know, though the work goes on."""
    notes.print(f"[bold yellow]warning:[/] {escape(sentence)}", soft_wrap=True)


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on stdout, and nothing else there."""
    sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")


def print_table(title: str, columns: list[str], rows: list[list[str]], spare: int = 0) -> None:
    """A table of figures: the first column names, the others are aligned to the right.

    Of the last `spare` columns, as many are left out as the screen has no room for.
    """
    widths = [max(len(cell) for cell in column) + 3 for column in zip(columns, *rows, strict=True)]
    shown = len(columns)
    while shown > len(columns) - spare and sum(widths[:shown]) + 1 > results.width:
        shown -= 1
    left_out = ", ".join(columns[shown:])
    table = Table(title=title, title_justify="left", header_style="bold")
    table.caption = f"no room here for {left_out}; see --json" if left_out else None
    for i, column in enumerate(columns[:shown]):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row[:shown])
    results.print(table)
