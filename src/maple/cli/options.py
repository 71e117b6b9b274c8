"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from maple.core.errors import ConfigError

__all__ = [
    "AlgoOption",
    "ConfigOption",
    "EvaluateOption",
    "GameArgument",
    "JsonOption",
    "MinutesOption",
    "NotifyOption",
    "OpponentsOption",
    "PresetOption",
    "RunsDirOption",
    "SeedOption",
    "SetOption",
    "StepsOption",
    "StorageOption",
    "WorkersOption",
    "refuse_unused",
    "worker_flag",
]

GameArgument = Annotated[
    str,
    typer.Argument(
        help="The game; `maple games` lists them. Or an env of your own, package.module:make_env, or a Gymnasium id.",
        metavar="GAME",
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(help="Processes that play an env of your own: a number, 0 for none, or auto [default: auto]."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]
RunsDirOption = Annotated[Path | None, typer.Option(help="Where runs live [default: runs, or $MAPLE_RUNS_DIR].")]
SeedOption = Annotated[int | None, typer.Option(help="The seed of everything random.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="A YAML file of settings.", metavar="FILE", dir_okay=False)
]
PresetOption = Annotated[
    str | None,
    typer.Option(help="Settings that go together: speed, balance, debug, sb3, tuned (by maple tune), or a YAML file."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any setting, such as game.fantasyland=off or net.hidden=[256,64]."
    ),
]
AlgoOption = Annotated[
    str | None, typer.Option(help="How to learn: afterstate, ppo or dqn [default: the game's strongest].")
]

StepsOption = Annotated[int | None, typer.Option(help="End after so many decisions, counted over the whole run.")]
MinutesOption = Annotated[float | None, typer.Option(help="End after so many minutes of training. [default: 5]")]
OpponentsOption = Annotated[
    str | None, typer.Option(help="Who sits opposite, by weight: self:0.5,past:0.3,random:0.2 [default: self].")
]
StorageOption = Annotated[
    str | None,
    typer.Option(help="Copy the run there in the background, and start from there on a new machine: s3://… gs://…"),
]
NotifyOption = Annotated[
    list[str] | None,
    typer.Option(help="Where to send messages, as Apprise writes it [default: $MAPLE_NOTIFY_URL]."),
]
EvaluateOption = Annotated[
    bool | None,
    typer.Option("--evaluate/--no-evaluate", help="Play against every opponent at the end [default: evaluate]."),
]


def refuse_unused(given: Mapping[str, Any], what: str) -> None:
    """Say which of the options that were given, those that are not None, changes nothing."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"{name} does nothing with {what}; leave it out")


def worker_flag(workers: str | None) -> dict[str, Any] | None:
    """What `--workers` means in a config."""
    if workers is None:
        return None
    if workers != "auto" and not workers.isdigit():
        raise ConfigError(f"--workers {workers!r} cannot be used; give a number of processes, 0 for none, or auto")
    return {"count": workers if workers == "auto" else int(workers)}
