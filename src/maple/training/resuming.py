"""Where a run goes on, or with whose weights it begins, and whether it may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from maple.core.config import Config, flat
from maple.core.cores import available_cores
from maple.core.errors import CheckpointError, ConfigError
from maple.games.contract import Game
from maple.games.settled import files_of_run, settled
from maple.runs.own_files import OwnFiles
from maple.runs.store import RunFolder
from maple.training.build import AUTO_TABLES
from maple.training.checkpoint import (
    FORMAT,
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    load_newest,
    read_meta,
    sweep,
)
from maple.training.fitting import fitting_game
from maple.training.preflight import check_memory

__all__ = ["check_room", "check_start", "load_donor", "resume_point"]

# What a resumed run may be told anew: bounds and intervals, which change no decision made before.
FREE_TO_CHANGE = (
    *("steps", "minutes", "checkpoint_every_s", "probe_every_s", "probe_against", "probe_hands", "evaluate", "storage"),
    *("price_per_hour", "profile", "perf_every"),
    *("log.enabled", "log.console", "log.file", "log.every", "log.csv", "log.tensorboard", "log.rewards"),
    *("dqn.prefetch", "dqn.replay", "dqn.save_replay", "torch.pin_memory"),
    *(
        "workers.count",
        "workers.step_limit_s",
        "workers.memory_mb",
        "workers.max_deaths",
        "workers.spares",
        "workers.in_turn",
        "actors.count",
    ),
)


def _check_same(config: Config, stored: Config, run: RunFolder) -> None:
    """A run goes on only with the settings it began with."""
    own = OwnFiles(run.path)
    new, old = (flat(own.by_contents(one.model_dump())) for one in (config, stored))
    for key in sorted(new.keys() | old.keys()):
        automatic = key in ("tables", "threads") and new.get(key) is None
        if new.get(key) != old.get(key) and key not in FREE_TO_CHANGE and not automatic:
            raise ConfigError(
                f"run {run.name!r} was begun with {key} = {old.get(key)!r}, not {new.get(key)!r}; "
                "give the new settings another --run name"
            )


def _check_files(now: dict[str, str], then: dict[str, str], run: RunFolder) -> None:
    """A run goes on only with teams, maps and the like that say what they said when it began."""
    own = OwnFiles(run.path)
    told = {own.name_of(path): path for path in (*then, *now)}
    new, old = ({own.name_of(path): sha256 for path, sha256 in files.items()} for files in (now, then))
    for name, path in sorted(told.items()):
        if new.get(name) != old.get(name):
            raise ConfigError(
                f"{path} is not what it was when run {run.name!r} began; put that back, or give the new contents "
                "another --run name"
            )


def _check_fits(config: Config, checkpoint: Checkpoint, run: RunFolder) -> Config:
    """Refuse to go on with another game, other settings or other files; returns the settings it was made with."""
    if checkpoint.meta["game"] != config.name:
        raise CheckpointError(
            f"run {run.name!r} is of game {checkpoint.meta['game']!r}, not {config.name!r}; choose another --run name"
        )
    stored = settled(checkpoint.config)
    _check_same(config, stored, run)
    if "files" in checkpoint.meta:
        _check_files(files_of_run(config), checkpoint.meta["files"], run)
    return stored


def check_start(config: Config, run: RunFolder, start_from: Path | None) -> None:
    """Refuse what cannot go on or begin so, before anything that takes long; damaged files are left for later."""
    newest = latest_checkpoint(run.checkpoints)
    meta = read_meta(newest) if newest is not None else {}
    if meta.get("format") == FORMAT and "config" in meta and "game" in meta:
        config = _fixed_by(_check_fits(config, Checkpoint(meta, {}, {}), run), config)
    check_room(config, goes_on=newest is not None)
    if newest is None and start_from is not None:
        load_donor(start_from, config.name)


def check_room(config: Config, goes_on: bool) -> Game:
    """The game of a run that can begin, or go on, by its settings and the memory that is left."""
    game = fitting_game(config)
    check_memory(config, game, goes_on=goes_on)
    return game


def _fixed_by(stored: Config, config: Config) -> Config:
    """A config with what was chosen when its run began."""
    return config.model_copy(update={"tables": stored.tables, "threads": stored.threads})


def resume_point(config: Config, run: RunFolder, warn: Callable[[str], None]) -> tuple[Config, Checkpoint | None]:
    """The newest checkpoint of the run, if there is one, and the config with what it fixed."""
    sweep(run.checkpoints)
    checkpoint = load_newest(run.checkpoints, warn)
    if checkpoint is None:
        fixed = {"tables": config.tables or AUTO_TABLES, "threads": config.threads or available_cores()}
        return config.model_copy(update=fixed), None
    return _fixed_by(_check_fits(config, checkpoint, run), config), checkpoint


def load_donor(path: Path, game: str) -> Checkpoint:
    """The checkpoint whose weights a new run begins with."""
    donor = load_checkpoint(path, with_state=False)
    if donor.meta["game"] != game:
        raise CheckpointError(f"{path} is of game {donor.meta['game']!r}, not {game!r}; choose another --from")
    return donor
