"""One sitting of a run, and all that goes with it: progress, profile, messages, a mirror, the evaluation at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple.cli.evaluate import evaluation, print_comparison, print_evaluations, print_where_to_watch
from maple.cli.interruptions import Interruptions, PreemptedError
from maple.cli.messages import Messages
from maple.cli.output import notes, warn
from maple.cli.profiling import Profiled
from maple.core.config import Config, StudyConfig
from maple.core.errors import CheckpointError
from maple.core.kernel_cache import is_compiled
from maple.games import make_game
from maple.runs.listing import best_before
from maple.runs.notify import make_notifier
from maple.runs.storage import mirrored
from maple.runs.store import RunFolder

if TYPE_CHECKING:
    from maple.training.session import Progress

__all__ = ["Company", "compile_kernels", "sit"]

MESSAGES_S, LAST_WORDS_S = 15.0, 4.0  # for messages that are still to be sent; the less where a machine is taken away


@dataclass(frozen=True, slots=True)
class Company:
    """What goes with a run."""

    opponents: tuple[str, ...] = ()  # of the evaluation at the end
    start_from: str | None = None  # the run or checkpoint to begin with
    addresses: tuple[str, ...] = ()  # where messages go
    quiet: bool = False


def compile_kernels(config: Config, opponents: tuple[str, ...] = ()) -> float:
    """Have every kernel ready before the clock starts; says so where that takes a while."""
    from maple.training.warming import compiled_name, warm_up

    if is_compiled(compiled_name(config, make_game(config.name, config.game))):
        return warm_up(config, opponents)
    with notes.status(f"compiling the kernels of {config.name}: about a minute, the first time only"):
        if not notes.is_terminal:
            notes.print(f"compiling the kernels of {config.name}: about a minute, the first time only")
        return warm_up(config, opponents)


def _study(config: Config) -> str:
    """Whom the learner copies first, if anybody."""
    recipe = config.recipe
    if not isinstance(recipe, StudyConfig) or recipe.study is None:
        return ""
    return f"; it copies {recipe.study} for its first {recipe.study_steps:,} decisions"


def _pool_text(pool: Mapping[str, float], folder: RunFolder) -> str:
    """What happened to the processes that played, in a line."""
    told = [
        f"{pool['starts']:,} Node processes started, {pool['crashes'] + pool['hangs']:,} died or hung",
        f"{pool['battles']:,} battles, {pool['lost']:,} lost",
        f"{pool['bytes_per_decision']:,.0f} bytes and {pool['frames_per_decision']:.3f} frames a decision",
        f"{pool['refusals']:,} choices refused, {pool['anomalies']:,} anomalies",
    ]
    kept = f" (kept in {folder.path / 'anomalies.jsonl'}; maple showdown repeat {folder.name})"
    return "; ".join(told) + (kept if pool["anomalies"] else "")


def _begin(config: Config, folder: RunFolder, company: Company) -> Path | None:
    """See that nothing keeps the run from training, and leave word of it; returns the checkpoint to begin with.

    Whose weights it began with does not matter to a run that goes on: they may be gone by then.
    """
    from maple.arena.node_process import try_program
    from maple.games.bridged import Bridged
    from maple.training.checkpoint import find_checkpoint, latest_checkpoint
    from maple.training.resuming import check_start

    begins = company.start_from is not None and latest_checkpoint(folder.checkpoints) is None
    donor = find_checkpoint(str(company.start_from), folder.path.parent) if begins else None
    check_start(config, folder, donor)
    game = make_game(config.name, config.game)
    if isinstance(game, Bridged):
        try_program(game)
    folder.mark_started()
    return donor


def sit(config: Config, folder: RunFolder, company: Company, interruptions: Interruptions) -> dict[str, Any]:
    """Compile, train, evaluate; returns the figures of the run. Nobody else has its folder meanwhile."""
    messages = Messages(make_notifier(company.addresses, warn), folder.name, company.addresses)
    try:
        note = partial(notes.print, soft_wrap=True, markup=False)
        mirror = mirrored(folder.path, config.storage, warn, note, lambda: interruptions.preempted)
        with folder.locked(), mirror as copy_soon:
            donor = _begin(config, folder, company)
            compile_s = compile_kernels(config, company.opponents)
            how = f"({config.algo}{_study(config)})"
            where = f"as run [bold]{folder.name}[/] in {folder.path.parent}"
            notes.print(f"training {config.name} {where} {how}", soft_wrap=True)
            messages.started(config)
            last = _train(config, folder, company, donor, messages, copy_soon, interruptions)
            summary = {"run": folder.name, "path": str(folder.path), "compile_s": compile_s, **asdict(last)}
            if last.pool and not company.quiet:
                notes.print(_pool_text(last.pool, folder), soft_wrap=True)
            if last.progress < 1.0:
                reached = f"at {last.progress:.0%} and saved" if last.updates else "before its first update had ended"
                notes.print(f"stopped {reached}; the same command goes on: --run {folder.name}")
            else:
                summary |= _evaluate_unless_stopped(config, folder, company, last, interruptions)
            messages.ended(summary)
    except PreemptedError:
        raise
    except BaseException as error:
        messages.failed(error)
        raise
    finally:
        messages.close(LAST_WORDS_S if interruptions.preempted else MESSAGES_S)
    return summary


def _evaluate_unless_stopped(
    config: Config, folder: RunFolder, company: Company, last: Progress, interruptions: Interruptions
) -> dict[str, Any]:
    """The evaluation at the end; a machine that is taken away meanwhile leaves it to the next start."""
    try:
        if not interruptions.stop:
            return _evaluate(config, folder, company, last)
    except PreemptedError:
        pass
    notes.print(f"stopped before its evaluation; the same command evaluates it: --run {folder.name}")
    return {}


def _train(
    config: Config,
    folder: RunFolder,
    company: Company,
    donor: Path | None,
    messages: Messages,
    copy_soon: Callable[[], None],
    interruptions: Interruptions,
) -> Progress:
    """Train, with everything that listens."""
    from maple.cli.progress import LiveTraining
    from maple.training.session import train_run

    shown = config.log.enabled and config.log.console and not company.quiet
    with (
        interruptions.training(),
        LiveTraining(interruptions, config.probe_against, shown) as live,
        Profiled(folder, config.profile, config.perf_every) as profiled,
    ):

        def saved(checkpoint: Path) -> None:
            messages.saved(checkpoint)
            profiled.saved()
            copy_soon()

        tell = profiled.watching(messages.watching(live))
        note = partial(notes.print, soft_wrap=True, markup=False)
        profiled.last = train_run(
            config,
            folder,
            tell,
            start_from=donor,
            warn=warn,
            saved=saved,
            note=note,
            hurry=interruptions.hurry,
            held=True,
        )
    return profiled.last


def _evaluate(config: Config, folder: RunFolder, company: Company, last: Progress) -> dict[str, Any]:
    """The evaluation at the end, if it is wanted, beside the best that runs of this folder had before."""
    if not company.opponents:
        return {}
    seats = make_game(config.name, config.game).spec.seats
    rows = [
        evaluation(folder.path, [name] * (seats - 1), None, 0, [], quiet=company.quiet) for name in company.opponents
    ]
    hardest = min(rows, key=lambda row: float(row[row["metric"]]))
    before = best_before(folder.path.parent, hardest)
    for row in rows:
        folder.append("evaluations.jsonl", row)
    _offer(config, folder, rows)
    if not company.quiet:
        print_evaluations(f"{folder.name} after {last.steps:,} steps, {last.elapsed_s / 60:.1f} minutes", rows)
        if before is not None:
            print_comparison(hardest, before)
        print_where_to_watch(folder, rows)
    return {"evaluations": rows, "lowest": hardest, "best_before": before}


def _offer(config: Config, folder: RunFolder, rows: list[dict[str, Any]]) -> None:
    """Keep the agent as the run's best if it is, by the opponent whom looks on the way are against.

    Runs that are too short for a look, and games where none is taken, have a best agent by this alone.
    """
    from maple.training.keeper import offer_newest

    row = next((row for row in rows if set(row["against"]) <= {config.probe_against}), None)
    if row is None:
        return
    try:
        offer_newest(folder.checkpoints, float(row[row["metric"]]))
    except CheckpointError as error:
        warn(str(error))
