"""`maple train`: a run from start, or from where it stopped, to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

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
from maple.cli.profile import save_profile
from maple.core.config import Config, load_config
from maple.core.errors import ConfigError
from maple.core.kernels import is_compiled
from maple.games import entry, make_game
from maple.perf import Profiler, ShortLine
from maple.runs.store import RunFolder, default_runs_dir

if TYPE_CHECKING:
    from maple.training.session import Progress

__all__ = ["train"]

DEFAULT_MINUTES = 5.0
FINAL_OPPONENTS = ("random", "safe", "rollout")


def compile_kernels(config: Config, opponents: tuple[str, ...] = ()) -> float:
    """Have every kernel ready before the clock starts; says so where that takes a while."""
    from maple.training.session import compiled_name, warm_up

    if is_compiled(compiled_name(config)):
        return warm_up(config, opponents)
    with notes.status(f"compiling the kernels of {config.name}: about a minute, the first time only"):
        if not notes.is_terminal:
            notes.print(f"compiling the kernels of {config.name}: about a minute, the first time only")
        return warm_up(config, opponents)


def _train(
    config: Config,
    folder: RunFolder,
    tell: Callable[[Progress], bool],
    profiler: Profiler | None,
    perf_every: float | None,
) -> Progress:
    """Train, with a [PERF] line now and then if that is wanted."""
    from maple.training.session import train_run

    if profiler is None or perf_every is None:
        return train_run(config, folder, tell)
    line = ShortLine(profiler.recorder, perf_every, time.monotonic)

    def tell_both(now: Progress) -> bool:
        text = line.due(now.steps, now.games, now.updates)
        if text is not None:
            notes.print(text, markup=False, soft_wrap=True)
        return tell(now)

    return train_run(config, folder, tell_both)


def _facts(folder: RunFolder, last: Progress) -> dict[str, Any]:
    """What a profile should know of its run; counts are of this process alone."""
    config = Config.model_validate(folder.read_json("config.json"))
    recipe = config.ppo if config.algo == "ppo" else config.afterstate
    now = {"steps": last.steps, "updates": last.updates, "games": last.games}
    counts = {name: count - last.before[name] for name, count in now.items()}
    facts = {"game": config.name, "algo": config.algo, "tables": config.tables, "threads": config.threads}
    return {**facts, **counts, "minibatch": recipe.minibatch, "epochs": recipe.epochs, "cpu_use": last.cpu_use}


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
    """
    if steps is None and minutes is None:
        minutes = DEFAULT_MINUTES
    flags = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
    config = load_config(game, preset, settings, entry(game).defaults, flags)
    if profile_name is not None and not profile_name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"--profile-name {profile_name!r} is no name for a file; use letters, digits, - and _")
    spec = make_game(game, config.game).spec
    final = tuple(name for name in FINAL_OPPONENTS if evaluate and name in spec.opponents)
    folder = RunFolder((runs_dir or default_runs_dir()) / (run or time.strftime(f"{game}-%Y%m%d-%H%M%S")))
    compile_s = compile_kernels(config, final)
    notes.print(f"training {game} as run [bold]{folder.name}[/] in {folder.path.parent} ({config.algo})")
    from maple.cli.progress import LiveTraining

    profiler = Profiler() if profile or profile_name or perf_every else None
    with LiveTraining(show=not json) as live, profiler or nullcontext():
        last = _train(config, folder, live, profiler, perf_every)
    if profiler is not None and (profile or profile_name):
        kept = save_profile(folder, profile_name or "profile", profiler.profile(_facts(folder, last)))
        notes.print(f"profile: {kept} (maple profile {folder.name})", soft_wrap=True)
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
