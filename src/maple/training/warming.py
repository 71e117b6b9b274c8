"""Kernels are compiled before a run, in a tiny one, so that nobody waits for the compiler unannounced."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from maple.arena.base import Arena
from maple.arena.blank import BlankArena
from maple.arena.choose import evaluation_arena
from maple.core.config import Config, WorkerConfig
from maple.core.kernel_cache import mark_compiled
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.games.external.game import ExternalGame
from maple.training.build import build_trainer
from maple.training.evaluate import bot_player, evaluate, greedy_player
from maple.training.seating import OpponentMix

__all__ = ["compiled_name", "warm_up"]

# Enough to have every kernel compiled.
SMALL_DQN = {
    "horizon": 64,
    "train_every": 64,
    "warmup": 0,
    "minibatch": 16,
    "updates_per_step": 2,
    "n_step": 1,
    "replay": "memory",
    "save_replay": False,
}


def warm_up(config: Config, opponents: Sequence[str] = ()) -> float:
    """Compile, or load from the cache, every kernel that a run and its evaluation need; returns the seconds it took.

    Envs of the user's own are not played for it: what they do to a process is not known yet.
    """
    started = time.monotonic()
    game = make_game(config.name, config.game)
    small = config.model_copy(
        update={
            "tables": 4 * game.spec.seats,
            "steps": 1,
            "minutes": None,
            "opponents": OpponentMix.without_runs(config.opponents),
            "actors": config.actors.model_copy(update={"count": 0}),
            "ppo": config.ppo.model_copy(update={"horizon": 64, "minibatch": 16, "epochs": 1}),
            "afterstate": config.afterstate.model_copy(update={"horizon": 64, "minibatch": 16, "epochs": 1}),
            "dqn": config.dqn.model_copy(update=SMALL_DQN),
        }
    )
    blank = BlankArena(game, 4 * game.spec.seats, 0) if isinstance(game, ExternalGame) else None
    with Team(1) as team:
        trainer = build_trainer(small, game, team, arena=blank)
        with closing(trainer.arena), closing(trainer.learner):
            trainer.run(lambda _: False)
        for name in {config.probe_against, *opponents}:
            player = bot_player(game, name, team)
            others = [player] * (game.spec.seats - 1)
            evaluate(game, greedy_player(trainer.learner.policy), others, 1, 0, team, envs=_without_envs)
    if trainer.counters.minibatches:
        mark_compiled(compiled_name(config, game))
    return time.monotonic() - started


def _without_envs(game: Game, tables: int, seed: int, tables_per_deal: int) -> Arena:
    """Noise where an env of the user's own would be played."""
    if isinstance(game, ExternalGame):
        return BlankArena(game, tables, seed, tables_per_deal)
    return evaluation_arena(game, tables, seed, tables_per_deal, WorkerConfig())


def compiled_name(config: Config, game: Game) -> str:
    """What is_compiled() is asked for: the kernels of a game (of all external ones with such rows) and of an algo."""
    name = config.name if game.spec.options else f"external-{game.spec.dtype}"
    depth = len(config.net.hidden)  # small networks choose in a kernel that is compiled for theirs
    kind = "options" if not config.by_index else f"index-{depth}" if config.net.plain else "segments"
    return f"{name}-{config.algo}-{kind}"
