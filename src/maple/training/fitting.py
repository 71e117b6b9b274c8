"""Whether a game can be trained with the settings of a run, as far as the two tell before anything begins."""

from __future__ import annotations

from maple.core.config import AUTO_TABLES, Config, StudyConfig
from maple.core.errors import ConfigError, nearest
from maple.core.spec import GameSpec
from maple.games import make_game
from maple.games.bridged import Bridged
from maple.games.contract import Game
from maple.games.external.game import ExternalGame
from maple.training.seating import OpponentMix

__all__ = ["check_fitting", "fitting_game", "least_replay"]


def fitting_game(config: Config) -> Game:
    """The game of a run that can begin, as far as its settings tell."""
    if config.steps is None and config.minutes is None:
        raise ConfigError("a run needs an end: give it --steps or --minutes")
    game = make_game(config.name, config.game)
    if config.log.rewards and "parts" not in (game.spec.figures.names or ()):
        raise ConfigError(f"log.rewards: the reward of {config.name} is not made of parts; leave it out")
    _check_opponent("probe_against", config.probe_against, config, game.spec)
    check_fitting(config, game)
    return game


def check_fitting(config: Config, game: Game) -> None:
    """Refuse settings that this game cannot be trained with."""
    spec = game.spec
    mix = OpponentMix.parse(config.opponents, spec.opponents)
    if spec.options is None and not config.by_index:
        algo = "dqn" if config.algo == "dqn" else "ppo"
        raise ConfigError(
            f"{config.name} does not describe its options; train it with --algo {algo} --set {algo}.policy=index"
        )
    _check_net(config, spec)
    _check_study(config, spec)
    if config.league.exploiter_every and not mix.uses_past:
        raise ConfigError(
            f"league.exploiter_every adds to a pool that --opponents {config.opponents} never draws from; "
            "let them draw from it, such as self:0.5,hard:0.5"
        )
    _check_tables(config, game)
    if config.algo == "dqn" and config.dqn.capacity < (least := least_replay(config, game)):
        raise ConfigError(
            f"dqn.capacity = {config.dqn.capacity} is too small for {config.tables or AUTO_TABLES} tables: decisions "
            f"would be forgotten before their outcome is known; make it at least {least}"
        )


def least_replay(config: Config, game: Game) -> int:
    """The decisions that a replay has to hold so that none is forgotten before its outcome is known."""
    segment = config.dqn.segment if config.net.core != "none" else 1
    return 2 * (config.tables or AUTO_TABLES) * game.spec.seats * (config.dqn.n_step + segment)


def _check_opponent(setting: str, name: str, config: Config, spec: GameSpec) -> None:
    if name not in spec.opponents:
        raise ConfigError(f"{setting}: {config.name} has no opponent {name!r}; {nearest(name, spec.opponents)}")


def _check_net(config: Config, spec: GameSpec) -> None:
    """Refuse a memory or attention where it cannot be had."""
    if config.net.plain:
        return
    wanted = "net.attention" if config.net.attention else f"net.core={config.net.core}"
    if config.algo == "afterstate":
        raise ConfigError(f"{wanted} is not for after-state values; use --algo ppo, or leave it out")
    if config.net.attention and not spec.entities:
        raise ConfigError(f"net.attention: {config.name} does not say what entities it shows; leave it out")
    if config.algo == "ppo" and config.ppo.augment:
        raise ConfigError(f"ppo.augment renames each decision by itself, for plain networks; turn it or {wanted} off")


def _check_study(config: Config, spec: GameSpec) -> None:
    recipe = config.recipe
    if not isinstance(recipe, StudyConfig) or recipe.study is None:
        return
    _check_opponent(f"{config.algo}.study", recipe.study, config, spec)
    if config.actors.count:
        raise ConfigError(f"{config.algo}.study: actors decide by themselves; leave it or actors.count out")


def _check_tables(config: Config, game: Game) -> None:
    """Refuse ways to play that are for games of another kind."""
    if isinstance(game, ExternalGame):
        return
    if config.actors.count:
        raise ConfigError(f"actors play envs of your own; {config.name} is played by threads: leave actors.count at 0")
    if config.workers.count not in ("auto", 0):
        raise ConfigError(
            f"workers.count = {config.workers.count}: workers play envs of your own, and {config.name} is played by "
            "threads; leave it (--workers) out"
        )
    if isinstance(game, Bridged) and config.practice:
        raise ConfigError(f"practice cannot be used with {config.name}: all its tables play by the same options")
