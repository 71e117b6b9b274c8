"""`maple train`: a run from start, or from where it stopped, to its end."""

from __future__ import annotations

import os
import re
import time
from typing import Annotated, Any

import typer

from maple.cli.detach import go_on_alone
from maple.cli.options import (
    AlgoOption,
    ConfigOption,
    GameArgument,
    JsonOption,
    PresetOption,
    RunsDirOption,
    SeedOption,
    SetOption,
    WorkersOption,
    worker_flag,
)
from maple.cli.output import notes, print_json
from maple.cli.sitting import Company, sit
from maple.core.errors import ConfigError
from maple.core.sources import gather
from maple.games import entry, make_game
from maple.runs.notify import addresses
from maple.runs.storage import storage_url
from maple.runs.store import RunFolder, default_runs_dir

__all__ = ["train"]

DEFAULT_MINUTES = 5.0


def run_name(game: str) -> str:
    """A game's name as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", game)


def train(
    game: GameArgument,
    run: Annotated[
        str | None, typer.Option(help="The run's name; a run of that name goes on. [default: made up]")
    ] = None,
    runs_dir: RunsDirOption = None,
    steps: Annotated[int | None, typer.Option(help="End after so many decisions, counted over the whole run.")] = None,
    minutes: Annotated[float | None, typer.Option(help="End after so many minutes of training. [default: 5]")] = None,
    seed: SeedOption = None,
    preset: PresetOption = None,
    config_file: ConfigOption = None,
    algo: AlgoOption = None,
    opponents: Annotated[
        str | None, typer.Option(help="Who sits opposite, by weight: self:0.5,past:0.3,random:0.2 [default: self].")
    ] = None,
    workers: WorkersOption = None,
    settings: SetOption = None,
    battle_format: Annotated[str | None, typer.Option("--format", help="showdown: the battle format.")] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", help="Begin a new run with another run's weights: NAME, NAME@best, a path.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Copy the run there in the background, and start from there on a new machine: s3://… gs://…"),
    ] = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(help="Where to send messages, as Apprise writes it [default: $MAPLE_NOTIFY_URL]."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Go on in the background; `maple runs attach NAME` shows its progress.")
    ] = False,
    price_per_hour: Annotated[
        float | None, typer.Option(min=0, help="What this machine costs an hour; the end then says what the run cost.")
    ] = None,
    evaluate: Annotated[bool, typer.Option("--evaluate", help="Evaluate the agent at the end, with a table.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Record where time goes; see maple profile.")] = False,
    profile_name: Annotated[str | None, typer.Option(help="The profile's name [default: profile].")] = None,
    perf_every: Annotated[
        float | None, typer.Option(min=0.1, help="Print a [PERF] line every so many seconds.", metavar="SECONDS")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Train an agent.

    Examples:

    - `maple train ofc --minutes 5 --evaluate`
    - `maple train ofc --steps 10000000 --run long` (the same command resumes it)
    - `maple train ofc --algo ppo --preset speed --opponents self:0.7,past:0.3`
    - `maple train ofc --set game.fantasyland=off --set game.seats=2`
    - `maple train ofc --minutes 1 --run first --profile` (then `maple profile first`)
    - `maple train ofc --run week --minutes 10000 --detach` (then `maple runs attach week`)
    - `maple train ofc --run next --from week@best`
    - `maple train CartPole-v1 --minutes 1` (an id that Gymnasium has registered)
    - `maple train my_package.my_module:make_env --set env.size=9 --workers 4` (an env of your own)
    - `maple train showdown --format gen9randombattle --minutes 60`
    """
    from maple.training.agent import find_checkpoint

    if steps is None and minutes is None:
        minutes = DEFAULT_MINUTES
    flags: dict[str, Any] = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
    flags["workers"] = worker_flag(workers)
    if battle_format is not None:
        if game != "showdown":
            raise ConfigError(f"--format is of showdown; {game} has none, leave it out")
        settings = [*(settings or []), f"game.format={battle_format}"]
    config = gather(
        game,
        defaults=entry(game).defaults,
        preset=preset,
        file=config_file,
        environment=os.environ,
        settings=settings,
        flags=flags,
    ).config
    if profile_name is not None and not profile_name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"--profile-name {profile_name!r} is no name for a file; use letters, digits, - and _")
    spec = make_game(game, config.game).spec
    folder = RunFolder((runs_dir or default_runs_dir()) / (run or time.strftime(f"{run_name(game)}-%Y%m%d-%H%M%S")))
    company = Company(
        opponents=spec.opponents if evaluate else (),
        donor=find_checkpoint(start_from, runs_dir) if start_from else None,
        addresses=tuple(addresses(notify or [], os.environ)),
        storage=storage_url(storage, os.environ),
        profile=profile_name or ("profile" if profile else None),
        perf_every=perf_every,
        quiet=json,
    )
    if detach:
        go_on_alone(folder, json)
        return
    summary = sit(config, folder, company)
    if price_per_hour is not None:
        summary["cost"] = _cost(summary, price_per_hour)
        notes.print(f"cost: {summary['cost']['total']:.4f}, {summary['cost']['per_million_steps']:.4f} a million steps")
    if json:
        print_json(summary)


def _cost(summary: dict[str, Any], price_per_hour: float) -> dict[str, float]:
    """What the whole run cost, in the price's own currency."""
    total = summary["elapsed_s"] / 3600 * price_per_hour
    return {"total": total, "per_million_steps": total / max(1, summary["steps"]) * 1e6}
