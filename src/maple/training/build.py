"""The one place where a run is put together: threads, arena, network, learner, run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.arena.choose import external_arena
from maple.arena.open import open_arena
from maple.core.config import AUTO_TABLES, Config, LeagueConfig, StudyConfig
from maple.core.cores import available_cores
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Bot, Game
from maple.games.external.game import ExternalGame
from maple.learn.chains import Chains
from maple.learn.replay import Priorities, Replay
from maple.learn.rollout import Rollout
from maple.nets.accelerate import KERNELS, TORCH, choose_precision, compile_towers
from maple.nets.policy import OptionValue
from maple.nets.q import IndexQ, OptionQ
from maple.nets.seen import Seen
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.nets.sequence_q import RecurrentQ
from maple.perf.spans import span
from maple.runs.outages import Outages
from maple.runs.store import RunFolder
from maple.training.actor import Actor
from maple.training.fitting import check_fitting
from maple.training.fleet.fleet import Fleet
from maple.training.league import League
from maple.training.learners import (
    AfterstateLearner,
    DqnLearner,
    Learner,
    Net,
    PpoLearner,
    frozen_copy,
    learns_in_kernels,
    load_weights,
    make_policy,
    weights_of,
)
from maple.training.loop import Budget, Exploiter, Trainer
from maple.training.networks import choose_device
from maple.training.rivals import Rival, find_rivals, rival_nets, rival_state, stored_rivals
from maple.training.seating import OpponentMix, Seating

__all__ = [
    "AUTO_TABLES",
    "build_trainer",
    "checkpoint_rivals",
    "keeps_anomalies",
    "restore_trainer",
    "stored_league",
    "trainer_state",
]


def make_training_arena(
    config: Config,
    game: Game,
    net: Net,
    team: Team,
    log: Callable[[str], None],
    note: Callable[[str], None],
    keep: Callable[[Mapping[str, Any]], None],
) -> Arena | Fleet:
    """The tables that a run plays at; `note` is told where they are played, if that was to be chosen.

    `keep` is given the anomalies of games in other programs.
    """
    tables = config.tables or AUTO_TABLES
    if config.actors.count and isinstance(game, ExternalGame):
        return Fleet(config, game, tables, net, log)
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
            spares=limits.spares,
            in_turn=limits.in_turn,
            log=log,
            note=note,
        )
    variants = [
        (make_game(config.name, {**config.game, **practice.game}), round(practice.share * tables))
        for practice in config.practice
    ]
    return open_arena(
        game,
        tables,
        config.seed,
        team,
        variants=variants,
        limits=config.workers,
        log=log,
        note=note,
        keep=keep,
    )


def keeps_anomalies(run: RunFolder, outages: Outages) -> Callable[[Mapping[str, Any]], None]:
    """Writes anomalies into a run's folder, as far as it takes them."""

    def keep(anomaly: Mapping[str, Any]) -> None:
        outages.attempt("anomalies.jsonl", partial(run.append, "anomalies.jsonl", anomaly))

    return keep


def make_learner(
    config: Config, game: Game, net: Net, folder: Path | None, warn: Callable[[str], None] = lambda _: None
) -> Learner:
    """How a network learns, with the memory that goes with it; `warn` is told what cannot be had here."""
    spec, tables, device = game.spec, config.tables or AUTO_TABLES, next(net.parameters()).device
    wanted = config.torch.compile or (config.torch.compile is None and device.type == "cuda")
    compiled = wanted and compile_towers(net, device, warn)
    plain = KERNELS if learns_in_kernels(net) and not compiled else TORCH
    precision = choose_precision(device, config.torch.amp, plain, warn)
    if config.torch.pin_memory and device.type != "cuda":
        warn("torch.pin_memory has no effect: no GPU learns here")
    if isinstance(net, IndexQ | OptionQ | RecurrentQ):
        replay = _make_replay(config, game, net, folder)
        return DqnLearner(net, config, replay, _prefetches(config), precision)
    signals = len(spec.signals)
    sizes = (config.horizon, tables, spec.seats, spec.view)
    if isinstance(net, OptionValue):
        return AfterstateLearner(net, config, Rollout(*sizes, signals, signals), precision)
    state = net.state_width if isinstance(net, SequencePolicy | OptionSequencePolicy) else 0
    # on a CPU the threads that learn encode what they need: where kernels learn it is nothing, or stays in the cache
    return PpoLearner(net, config, Rollout(*sizes, 1, signals, state), precision, prefetch=device.type == "cuda")


def _make_replay(config: Config, game: Game, net: IndexQ | OptionQ | RecurrentQ, folder: Path | None) -> Replay:
    c, spec, tables = config.dqn, game.spec, config.tables or AUTO_TABLES
    filed = (folder or Path(tempfile.gettempdir())) if c.replay == "file" else None
    chains = None
    if isinstance(net, RecurrentQ):
        spans = (c.segment, c.burn_in) if net.state_width else (1, 0)
        chains = Chains(c.capacity, *spans, c.n_step, net.state_width, filed)
    return Replay(
        c.capacity,
        c.train_every or tables,
        tables,
        spec.seats,
        spec.view,
        n_step=c.n_step,
        gamma=c.gamma,
        priorities=Priorities(alpha=c.alpha) if c.prioritized else None,
        folder=filed,
        saved=c.saves_replay,
        chains=chains,
    )


def _prefetches(config: Config) -> bool:
    """Whether batches are drawn in a thread of its own: where a GPU learns, or a core is free for it."""
    if config.dqn.prefetch is not None:
        return config.dqn.prefetch
    return choose_device(config).type == "cuda" or available_cores() > (config.threads or available_cores())


def _guide(config: Config, game: Game) -> tuple[Bot | None, int, float]:
    """Whom the learner copies first, for how many decisions, and at what share of the tables ever after."""
    recipe = config.recipe
    if not isinstance(recipe, StudyConfig) or recipe.study is None:
        return None, 0, 0.0
    return game.bot(recipe.study), recipe.study_steps, recipe.study_share


def build_trainer(
    config: Config,
    game: Game,
    team: Team,
    log: Callable[[str], None] = lambda _: None,
    folder: Path | None = None,
    warn: Callable[[str], None] = lambda _: None,
    rivals: Sequence[Rival] | None = None,
    note: Callable[[str], None] = lambda _: None,
    arena: Arena | None = None,
) -> Trainer:
    """All moving parts of a run, at its start.

    `log` takes what workers have to say, `folder` is for large files, `warn` is told what cannot be had here, `note`
    what was chosen; `rivals` are the agents that its opponents name, if not those of the runs beside it as they are
    now; `arena` has the tables, if not those that the config says.
    """
    check_fitting(config, game)
    spec = game.spec
    mix = OpponentMix.parse(config.opponents, spec.opponents)
    guide, study_steps, study_share = _guide(config, game)
    tables = config.tables or AUTO_TABLES
    if rivals is None:
        rivals = find_rivals(mix.runs, folder.parent if folder else None)
    nets = rival_nets(rivals, config.name, game, team)
    device = choose_device(config)
    pinned = device.type == "cuda" and config.torch.pin_memory is not False
    net = make_policy(config, Seen(game, team, pinned), device)
    learner = make_learner(config, game, net, folder, warn)
    with span("env_reset"):
        keep = keeps_anomalies(RunFolder(folder), Outages(warn)) if folder else lambda _: None
        tables_of = arena or make_training_arena(config, game, net, team, log, note, keep)

    def exploit(learner: Learner, number: int, stopping: Callable[[], bool]) -> Exploiter | None:
        return _train_exploiter(config, game, team, log, folder, learner, number, stopping)

    return Trainer(
        arena=tables_of,
        actor=Actor(learner.policy, [game.bot(name) for name in mix.bots], team, config.seed, nets),
        learner=learner,
        seating=Seating(tables, spec.seats, config.seed),
        league=League(mix, config.snapshots, config.league),
        budget=Budget(config.steps, config.minutes),
        horizon=config.horizon,
        exploit=exploit,
        guide=guide,
        study_steps=study_steps,
        study_share=study_share,
        rivals=rivals,
    )


def _train_exploiter(
    config: Config,
    game: Game,
    team: Team,
    log: Callable[[str], None],
    folder: Path | None,
    learner: Learner,
    number: int,
    stopping: Callable[[], bool],
) -> Exploiter | None:
    """Train a copy of the learner against the learner as it is now, at tables of its own; None if it has to stop.

    It depends on the learner, the run's seed and `number` alone.
    """
    target = Rival("main", config, weights_of(learner.policy))
    alone = config.model_copy(
        update={
            "opponents": f"run:{target.name}",
            "steps": config.league.exploiter_steps,
            "minutes": None,
            "seed": int(np.random.SeedSequence([config.seed, number]).generate_state(1, np.uint64)[0] >> 1),
            "league": LeagueConfig(window=config.league.window),
            "actors": config.actors.model_copy(update={"count": 0}),  # they do not know of rivals
            "ppo": config.ppo.model_copy(update={"study": None}),
            "dqn": config.dqn.model_copy(update={"study": None}),
        }
    )
    trainer = build_trainer(alone, game, team, log, folder, rivals=[target])
    with closing(trainer.arena), closing(trainer.learner):
        load_weights(trainer.learner.policy, target.weights)
        trainer.learner.restore(learner.state())
        trainer.run(lambda _: not stopping())
        if trainer.progress() < 1.0:
            return None
    records = trainer.league.records
    return Exploiter(frozen_copy(trainer.learner.policy), float(records.games[0, 1]), float(records.wins[0, 1]))


def trainer_state(trainer: Trainer) -> dict[str, NDArray[Any]]:
    """All that resuming needs besides the weights; taken right after an update."""
    state: dict[str, NDArray[Any]] = {}
    state |= {f"optimizer/{name}": array for name, array in trainer.learner.schedule.descent.state().items()}
    state |= {f"arena/{name}": array for name, array in trainer.arena.state().items()}
    state |= {f"memory/{name}": array for name, array in trainer.learner.memory.state().items()}
    state |= {f"learner/{name}": array for name, array in trainer.learner.state().items()}
    state |= {f"league/{name}": array for name, array in trainer.league.state().items()}
    state |= {f"rival/{name}": array for name, array in rival_state(trainer.rivals).items()}
    state["seating/player"], state["seating/guided"] = trainer.seating.player, trainer.seating.guided
    if trainer.actor.memory.state.size:
        state["recall/state"] = trainer.actor.memory.state
    for number, policy in trainer.actor.snapshots.items():
        state |= {f"snapshot/{number}/{name}": array for name, array in weights_of(policy).items()}
    return state


def checkpoint_rivals(state: dict[str, NDArray[Any]]) -> list[Rival]:
    """The agents of other runs that a checkpoint holds."""
    return stored_rivals(_below(state, "rival/"))


def stored_league(config: Config, game: Game, state: dict[str, NDArray[Any]]) -> League:
    """The league that a checkpoint holds."""
    league = League(OpponentMix.parse(config.opponents, game.spec.opponents), config.snapshots, config.league)
    league.restore(_below(state, "league/"))
    return league


def restore_trainer(trainer: Trainer, weights: dict[str, NDArray[Any]], state: dict[str, NDArray[Any]]) -> None:
    """Take over what a checkpoint holds; the counters are the caller's."""
    load_weights(trainer.learner.policy, weights)
    trainer.learner.schedule.descent.restore(_below(state, "optimizer/"))
    trainer.arena.restore(_below(state, "arena/"))
    trainer.learner.memory.restore(_below(state, "memory/"))
    trainer.learner.restore(_below(state, "learner/"))
    trainer.league.restore(_below(state, "league/"))
    trainer.seating.player[:] = state["seating/player"]
    trainer.seating.guided[:] = state.get("seating/guided", np.False_)
    if "recall/state" in state:
        trainer.actor.memory.state = np.array(state["recall/state"])
    snapshots = _below(state, "snapshot/")
    for number in sorted({int(name.partition("/")[0]) for name in snapshots}):
        copy = frozen_copy(trainer.learner.policy)
        load_weights(copy, _below(snapshots, f"{number}/"))
        trainer.actor.snapshots[number] = copy


def _below(state: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
