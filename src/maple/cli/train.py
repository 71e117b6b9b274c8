"""`maple train`: a run from start, or from where it stopped, to its end."""

from __future__ import annotations

import os
import re
import time
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import typer

from maple.cli.detach import go_on_alone
from maple.cli.interruptions import Interruptions
from maple.cli.options import (
    AlgoOption,
    ConfigOption,
    EvaluateOption,
    GameArgument,
    JsonOption,
    MinutesOption,
    NotifyOption,
    OpponentsOption,
    PresetOption,
    RunsDirOption,
    SeedOption,
    SetOption,
    StepsOption,
    StorageOption,
    WorkersOption,
    worker_flag,
)
from maple.cli.output import notes, print_json
from maple.cli.settings import settings_asked_for
from maple.cli.sitting import Company, sit
from maple.core.config import Config
from maple.core.errors import ConfigError
from maple.games import make_game
from maple.runs.notify import addresses
from maple.runs.own_files import FILES, OwnFiles
from maple.runs.store import RunFolder, default_runs_dir

__all__ = ["train"]

RunOption = Annotated[str | None, typer.Option(help="The run's name; a run of that name goes on. [default: made up]")]
FormatOption = Annotated[str | None, typer.Option("--format", help="showdown: the battle format.")]
FromOption = Annotated[
    str | None, typer.Option("--from", help="Begin a new run with another run's weights: NAME, NAME@best, a path.")
]
DetachOption = Annotated[
    bool, typer.Option("--detach", help="Go on in the background; `maple runs attach NAME` shows its progress.")
]
PriceOption = Annotated[
    float | None, typer.Option(min=0, help="What this machine costs an hour; the end then says what the run cost.")
]
ProfileOption = Annotated[bool, typer.Option("--profile", help="Record where time goes; see maple profile.")]
ProfileNameOption = Annotated[str | None, typer.Option(help="The profile's name [default: profile].")]
PerfEveryOption = Annotated[
    float | None, typer.Option(min=0.1, help="Print a [PERF] line every so many seconds.", metavar="SECONDS")
]


def new_name(game: str, base: Path) -> str:
    """A name for a run that nobody has named: the game and the time, and never that of a run that is there already."""
    name = time.strftime(re.sub(r"[^A-Za-z0-9_.-]+", "-", game).replace("%", "%%") + "-%Y%m%d-%H%M%S")
    others = (f"{name}-{number}" for number in count(2))
    return next(one for one in chain([name], others) if not (base / one).exists())  # a clock may be set back


def train(
    game: GameArgument,
    run: RunOption = None,
    runs_dir: RunsDirOption = None,
    steps: StepsOption = None,
    minutes: MinutesOption = None,
    seed: SeedOption = None,
    preset: PresetOption = None,
    config_file: ConfigOption = None,
    algo: AlgoOption = None,
    opponents: OpponentsOption = None,
    workers: WorkersOption = None,
    settings: SetOption = None,
    battle_format: FormatOption = None,
    start_from: FromOption = None,
    storage: StorageOption = None,
    notify: NotifyOption = None,
    detach: DetachOption = False,
    price_per_hour: PriceOption = None,
    evaluate: EvaluateOption = None,
    profile: ProfileOption = False,
    profile_name: ProfileNameOption = None,
    perf_every: PerfEveryOption = None,
    json: JsonOption = False,
) -> None:
    """Train an agent.

    Examples:

    - `maple train ofc --minutes 5`
    - `maple train ofc --steps 10000000 --run long` (the same command resumes it)
    - `maple train ofc --algo ppo --preset speed --opponents self:0.7,past:0.3`
    - `maple train ofc --minutes 1 --run first --profile` (then `maple profile first`)
    - `maple train ofc --run week --minutes 10000 --detach` (then `maple runs attach week`)
    - `maple train CartPole-v1 --minutes 1` (an id that Gymnasium has registered)
    - `maple train my_package.my_module:make_env --set env.size=9 --workers 4` (an env of your own)
    - `maple train s3://bucket/runs/week` (goes on with a run that was mirrored there, on a new machine)
    - `maple train showdown --format gen9randombattle --minutes 60`
    """
    with Interruptions() as interruptions:
        flags: dict[str, Any] = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
        flags |= {"evaluate": evaluate, "workers": worker_flag(workers), "storage": storage}
        profiled = profile_name or profile or None
        flags |= {"profile": profiled, "perf_every": perf_every, "price_per_hour": price_per_hour}
        settings = _with_format(game, settings, battle_format)
        asked = settings_asked_for(game, run, preset, config_file, settings, flags)
        config, base = asked.found.config, runs_dir or default_runs_dir()
        folder = RunFolder(base / (asked.run or new_name(config.name, base)))
        config = _with_files(config, folder.path, game if "://" in game else None)
        spec = make_game(config.name, config.game).spec
        company = Company(
            opponents=spec.opponents if config.evaluate else (),
            start_from=start_from,
            addresses=tuple(addresses(notify or [], os.environ)),
            quiet=json,
        )
        _check_rivals(config, folder, base)
        if detach:
            return go_on_alone(folder, json)
        return _tell(sit(config, folder, company, interruptions), config.price_per_hour, json)


def _with_files(config: Config, run: Path, url: str | None) -> Config:
    """The settings with the run's own copies of files that are gone, which come from `url` for a run that is there."""
    from maple.runs.storage import bring_files

    if url is not None:
        bring_files(url, run)
    found = Config.model_validate(OwnFiles(run).at_hand(config.model_dump()))
    if found != config:
        notes.print(f"files that the settings name are gone; the run's own copies in {run / FILES} are used")
    return found


def _check_rivals(config: Config, folder: RunFolder, base: Path) -> None:
    """See to it that the runs whose agents play are there, unless they may be in the run's own checkpoint."""
    from maple.training.rivals import check_rivals

    if config.storage is None and not folder.checkpoints.is_dir():
        check_rivals(config, base)


def _with_format(game: str, settings: list[str] | None, battle_format: str | None) -> list[str]:
    """The settings with the battle format among them, if one was given."""
    if battle_format is not None and game != "showdown":
        raise ConfigError(f"--format is of showdown; {game} has none, leave it out")
    return [*(settings or []), *([f"game.format={battle_format}"] if battle_format else [])]


def _tell(summary: dict[str, Any], price_per_hour: float | None, json: bool) -> None:
    """Say what the run cost, and all of its figures where JSON was asked for."""
    if price_per_hour is not None:
        cost = summary["cost"] = _cost(summary, price_per_hour)
        told = f"cost: {cost['total']:.4f}, {cost['per_million_steps']:.4f} a million steps, of training alone"
        notes.print(f"{told}: compiling and the evaluation at the end are not counted", soft_wrap=True)
    if json:
        print_json(summary)


def _cost(summary: dict[str, Any], price_per_hour: float) -> dict[str, float]:
    """What the run's training cost, in all its sittings, in the price's own currency."""
    total = summary["elapsed_s"] / 3600 * price_per_hour
    return {"total": total, "per_million_steps": total / max(1, summary["steps"]) * 1e6}
