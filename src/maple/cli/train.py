"""`maple train`: a run from start, or from where it stopped, to its end."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from maple.cli.evaluate import evaluation, print_evaluations
from maple.cli.options import (
    AlgoOption,
    GameArgument,
    JsonOption,
    PresetOption,
    RunsDirOption,
    SeedOption,
    SetOption,
)
from maple.cli.output import notes, print_json
from maple.core.config import Config, load_config
from maple.core.kernels import is_compiled
from maple.games import entry, make_game
from maple.runs.store import RunFolder, default_runs_dir

__all__ = ["train"]

DEFAULT_MINUTES = 5.0


def compile_kernels(config: Config, opponents: tuple[str, ...] = ()) -> float:
    """Have every kernel ready before the clock starts; says so where that takes a while."""
    from maple.training.session import compiled_name, warm_up

    if is_compiled(compiled_name(config)):
        return warm_up(config, opponents)
    with notes.status(f"compiling the kernels of {config.name}: about a minute, the first time only"):
        if not notes.is_terminal:
            notes.print(f"compiling the kernels of {config.name}: about a minute, the first time only")
        return warm_up(config, opponents)


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
    settings: SetOption = None,
    evaluate: Annotated[bool, typer.Option("--evaluate", help="Evaluate the agent at the end, with a table.")] = False,
    json: JsonOption = False,
) -> None:
    """Train an agent.

    Examples:

    - `maple train ofc --minutes 5 --evaluate`
    - `maple train ofc --steps 10000000 --run long` (the same command resumes it)
    - `maple train ofc --algo ppo --preset speed --opponents self:0.7,past:0.3`
    - `maple train ofc --set game.fantasyland=off --set game.seats=2`
    - `maple train showdown --set game.format=gen9randombattle --minutes 60`
    """
    from maple.training.session import train_run

    if steps is None and minutes is None:
        minutes = DEFAULT_MINUTES
    flags = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
    config = load_config(game, preset, settings, entry(game).defaults, flags)
    spec = make_game(game, config.game).spec
    final = spec.opponents if evaluate else ()
    folder = RunFolder((runs_dir or default_runs_dir()) / (run or time.strftime(f"{game}-%Y%m%d-%H%M%S")))
    compile_s = compile_kernels(config, final)
    notes.print(f"training {game} as run [bold]{folder.name}[/] in {folder.path.parent} ({config.algo})")
    from maple.cli.progress import LiveTraining

    with LiveTraining(show=not json) as live:
        last = train_run(config, folder, live)
    summary: dict[str, Any] = {"run": folder.name, "path": str(folder.path), "compile_s": compile_s, **asdict(last)}
    if last.progress < 1.0:
        notes.print(f"stopped at {last.progress:.0%} and saved; the same command goes on: --run {folder.name}")
    if final:
        rows = [evaluation(folder.path, [name] * (spec.seats - 1), None, 0, [], quiet=json) for name in final]
        summary["evaluations"] = rows
        if not json:
            print_evaluations(f"{folder.name} after {last.steps:,} steps, {last.elapsed_s / 60:.1f} minutes", rows)
    if json:
        print_json(summary)
