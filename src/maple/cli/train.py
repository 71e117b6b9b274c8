"""`maple train`: a run from start, or from where it stopped, to its end."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple.cli.detach import go_on_alone
from maple.cli.evaluate import evaluation, print_evaluations
from maple.cli.messages import Messages
from maple.cli.options import (
    AlgoOption,
    GameArgument,
    JsonOption,
    PresetOption,
    RunsDirOption,
    SeedOption,
    SetOption,
    WorkersOption,
    worker_flag,
)
from maple.cli.output import notes, print_json, warn
from maple.core.config import Config, load_config
from maple.core.kernels import is_compiled
from maple.games import entry, make_game
from maple.runs.notify import addresses, make_notifier
from maple.runs.store import RunFolder, default_runs_dir

if TYPE_CHECKING:
    from maple.runs.storage import Mirror

__all__ = ["train"]

DEFAULT_MINUTES = 5.0
FINAL_OPPONENTS = ("random", "safe", "rollout")


def compile_kernels(config: Config, opponents: tuple[str, ...] = ()) -> float:
    """Have every kernel ready before the clock starts; says so where that takes a while."""
    from maple.training.session import compiled_name, warm_up

    if is_compiled(compiled_name(config, make_game(config.name, config.game))):
        return warm_up(config, opponents)
    with notes.status(f"compiling the kernels of {config.name}: about a minute, the first time only"):
        if not notes.is_terminal:
            notes.print(f"compiling the kernels of {config.name}: about a minute, the first time only")
        return warm_up(config, opponents)


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
    algo: AlgoOption = None,
    opponents: Annotated[
        str | None, typer.Option(help="Who sits opposite, by weight: self:0.5,past:0.3,random:0.2 [default: self].")
    ] = None,
    workers: WorkersOption = None,
    settings: SetOption = None,
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
    json: JsonOption = False,
) -> None:
    """Train an agent.

    Examples:

    - `maple train ofc --minutes 5 --evaluate`
    - `maple train ofc --steps 10000000 --run long` (the same command resumes it)
    - `maple train ofc --algo ppo --preset speed --opponents self:0.7,past:0.3`
    - `maple train ofc --set game.fantasyland=off --set game.seats=2`
    - `maple train ofc --run week --minutes 10000 --detach`, then `maple runs attach week`
    - `maple train ofc --run next --from week@best`
    - `maple train CartPole-v1 --minutes 1` (an id that Gymnasium has registered)
    - `maple train my_package.my_module:make_env --set env.size=9 --workers 4` (an env of your own)
    """
    from maple.training.agent import find_checkpoint

    if steps is None and minutes is None:
        minutes = DEFAULT_MINUTES
    flags: dict[str, Any] = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
    flags["workers"] = worker_flag(workers)
    config = load_config(game, preset, settings, entry(game).defaults, flags)
    spec = make_game(game, config.game).spec
    final = tuple(name for name in FINAL_OPPONENTS if evaluate and name in spec.opponents)
    folder = RunFolder((runs_dir or default_runs_dir()) / (run or time.strftime(f"{run_name(game)}-%Y%m%d-%H%M%S")))
    donor = find_checkpoint(start_from, runs_dir) if start_from else None
    if detach:
        go_on_alone(folder, json)
        return
    urls = addresses(notify or [], os.environ)
    messages = Messages(make_notifier(urls, warn), folder.name, urls)
    with mirrored(folder, storage) as mirror:
        try:
            summary = _train(config, folder, final, donor, messages, mirror, json)
        except BaseException as error:
            messages.failed(error)
            raise
        finally:
            messages.close()
    if price_per_hour is not None:
        summary["cost"] = _cost(summary, price_per_hour)
        notes.print(f"cost: {summary['cost']['total']:.4f}, {summary['cost']['per_million_steps']:.4f} a million steps")
    if json:
        print_json(summary)


def _cost(summary: dict[str, Any], price_per_hour: float) -> dict[str, float]:
    """What the whole run cost, in the price's own currency."""
    total = summary["elapsed_s"] / 3600 * price_per_hour
    return {"total": total, "per_million_steps": total / max(1, summary["steps"]) * 1e6}


def _train(
    config: Config,
    folder: RunFolder,
    final: tuple[str, ...],
    donor: Path | None,
    messages: Messages,
    mirror: Mirror | None,
    json: bool,
) -> dict[str, Any]:
    """Compile, train, evaluate; returns the figures of the run."""
    from maple.cli.progress import LiveTraining
    from maple.training.session import train_run

    def saved(checkpoint: Path) -> None:
        messages.saved(checkpoint)
        if mirror is not None:
            mirror.changed()

    compile_s = compile_kernels(config, final)
    notes.print(f"training {config.name} as run [bold]{folder.name}[/] in {folder.path.parent} ({config.algo})")
    messages.started(config)
    with LiveTraining(show=not json) as live:
        tell = messages.watching(live)
        last = train_run(config, folder, tell, start_from=donor, warn=warn, saved=saved)
    summary: dict[str, Any] = {"run": folder.name, "path": str(folder.path), "compile_s": compile_s, **asdict(last)}
    if last.progress < 1.0:
        notes.print(f"stopped at {last.progress:.0%} and saved; the same command goes on: --run {folder.name}")
    elif final:
        seats = make_game(config.name, config.game).spec.seats
        rows = [evaluation(folder.path, [name] * (seats - 1), None, 0, [], quiet=json) for name in final]
        summary["evaluations"] = rows
        for row in rows:
            folder.append("evaluations.jsonl", row)
        if not json:
            print_evaluations(f"{folder.name} after {last.steps:,} steps, {last.elapsed_s / 60:.1f} minutes", rows)
    messages.ended(summary)
    return summary


@contextmanager
def mirrored(folder: RunFolder, url: str | None) -> Iterator[Mirror | None]:
    """A mirror of the run's folder at `url` while it trains; a run that is there but not here is brought here first."""
    if url is None:
        yield None
        return
    from maple.runs.storage import Mirror, fetch_run, open_place

    place = open_place(f"{url.rstrip('/')}/{folder.name}")
    if not folder.checkpoints.is_dir():
        step = fetch_run(place, folder.path)
        if step is not None:
            notes.print(f"brought the run from {place.shown}, as it was at step {step:,}")
    mirror = Mirror(folder.path, place, warn)
    try:
        yield mirror
    finally:
        with notes.status(f"copying what is left to {place.shown}"):
            mirror.close()
