"""The command `maple`."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from maple.cli.output import notes
from maple.core.errors import MapleError, UserError

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """All commands; one that is given up half-way ends as a shell expects it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Abort, KeyboardInterrupt):
            notes.print("given up")
            raise typer.Exit(130) from None


app = typer.Typer(
    name="maple",
    cls=_Commands,
    help="Train agents for turn-based games as fast as this machine allows, and see how strong they got.",
    epilog="Start with: maple train ofc --minutes 3",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,  # some are addresses and passwords
)


def _add_commands() -> None:
    from maple.cli import (
        balance,
        bench,
        bench_learning,
        compare,
        config,
        doctor,
        evaluate,
        export,
        games,
        ladder,
        league,
        profile,
        runs,
        show,
        showdown,
        train,
        tune,
    )

    app.command("games")(games.games)
    app.command("train")(train.train)
    app.command("eval")(evaluate.evaluate_run)
    app.command("ladder")(ladder.ladder)
    app.command("league")(league.league)
    app.command("show")(show.show)
    app.command("export", cls=export.Export)(export.export_run)
    app.command("compare")(compare.compare)
    app.command("profile")(profile.profile)
    app.command("tune")(tune.tune)
    app.command("doctor")(doctor.doctor)
    bench.app.command("balance")(balance.balance)
    bench.app.command("train")(bench_learning.train)
    bench.app.command("actors")(bench_learning.actors)
    bench.app.command("league")(bench_learning.league)
    bench.app.command("replay")(bench_learning.replay)
    app.add_typer(bench.app, name="bench")
    app.add_typer(runs.app, name="runs")
    app.add_typer(config.app, name="config")
    app.add_typer(showdown.app, name="showdown")


_add_commands()


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # an env of the user's own is looked for where maple is started
    try:
        app()  # says by itself what is wrong with an option; whose exceptions those are changes with typer
    except MapleError as error:
        notes.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2 if isinstance(error, UserError) else 1)
