"""The one place where a run is put together: threads, arena, network, learner, run folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.arena.choose import external_arena
from maple.arena.open import open_arena
from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.errors import ConfigError
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.games.external.game import ExternalGame
from maple.learn.rollout import Rollout
from maple.nets.policy import OptionValue
from maple.nets.seen import Seen
from maple.perf.spans import span
from maple.training.actor import Actor
from maple.training.learners import (
    AfterstateLearner,
    PpoLearner,
    frozen_copy,
    load_weights,
    make_policy,
    weights_of,
)
from maple.training.loop import Budget, Trainer
from maple.training.seating import OpponentMix, Seating

__all__ = ["AUTO_TABLES", "build_trainer", "choose_device", "restore_trainer", "trainer_state"]

AUTO_TABLES = 1024


def choose_device(config: Config) -> torch.device:
    """Where the network lives."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda' cannot be used: torch sees no CUDA device here; leave device at 'auto'")
    return torch.device("cuda" if config.device != "cpu" and torch.cuda.is_available() else "cpu")


def make_training_arena(config: Config, game: Game, team: Team, log: Callable[[str], None]) -> Arena:
    """The tables that a run plays at."""
    tables = config.tables or AUTO_TABLES
    if isinstance(game, ExternalGame):
        limits = config.workers
        return external_arena(
            game,
            tables,
            config.seed,
            limits.count,
            available_cores(),
            step_limit_s=limits.step_limit_s,
            memory_mb=limits.memory_mb,
            max_deaths=limits.max_deaths,
            log=log,
        )
    if config.workers.count != "auto":
        raise ConfigError(f"workers play envs of your own; {config.name} is played by threads: leave --workers out")
    variants = [
        (make_game(config.name, {**config.game, **practice.game}), round(practice.share * tables))
        for practice in config.practice
    ]
    return open_arena(game, tables, config.seed, team, variants=variants, spare=True)


def build_trainer(config: Config, game: Game, team: Team, log: Callable[[str], None] = lambda _: None) -> Trainer:
    """All moving parts of a run, at its start; `log` takes what workers have to say."""
    spec = game.spec
    mix = OpponentMix.parse(config.opponents, spec.opponents)
    if spec.options is None and (config.algo == "afterstate" or config.ppo.policy == "options"):
        raise ConfigError(
            f"{config.name} does not describe its options; train it with --algo ppo --set ppo.policy=index"
        )
    tables = config.tables or AUTO_TABLES
    net = make_policy(config, Seen(game, team), choose_device(config))
    learner = AfterstateLearner(net, config) if isinstance(net, OptionValue) else PpoLearner(net, config)
    signals = len(spec.signals)
    values = signals if isinstance(net, OptionValue) else 1
    with span("env_reset"):
        arena = make_training_arena(config, game, team, log)
    return Trainer(
        arena=arena,
        actor=Actor(learner.policy, [game.bot(name) for name in mix.bots], team, config.seed),
        learner=learner,
        rollout=Rollout(config.horizon, tables, spec.seats, spec.view, values, signals),
        seating=Seating(mix, tables, spec.seats, config.seed),
        budget=Budget(config.steps, config.minutes),
        seed=config.seed,
        snapshot_every=config.snapshots.every_steps,
        snapshot_keep=config.snapshots.keep,
    )


def trainer_state(trainer: Trainer) -> dict[str, NDArray[Any]]:
    """All that resuming needs besides the weights; taken right after an update."""
    state: dict[str, NDArray[Any]] = {}
    state |= {f"optimizer/{name}": array for name, array in trainer.learner.schedule.descent.state().items()}
    state |= {f"arena/{name}": array for name, array in trainer.arena.state().items()}
    state |= {f"rollout/{name}": array for name, array in trainer.rollout.state().items()}
    state["seating/player"] = trainer.seating.player
    for number, policy in trainer.actor.snapshots.items():
        state |= {f"snapshot/{number}/{name}": array for name, array in weights_of(policy).items()}
    return state


def restore_trainer(trainer: Trainer, weights: dict[str, NDArray[Any]], state: dict[str, NDArray[Any]]) -> None:
    """Take over what a checkpoint holds; the counters are the caller's."""
    load_weights(trainer.learner.policy, weights)
    trainer.learner.schedule.descent.restore(_below(state, "optimizer/"))
    trainer.arena.restore(_below(state, "arena/"))
    trainer.rollout.restore(_below(state, "rollout/"))
    trainer.seating.player[:] = state["seating/player"]
    snapshots = _below(state, "snapshot/")
    for number in sorted({int(name.partition("/")[0]) for name in snapshots}):
        copy = frozen_copy(trainer.learner.policy)
        load_weights(copy, _below(snapshots, f"{number}/"))
        trainer.actor.snapshots[number] = copy


def _below(state: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
