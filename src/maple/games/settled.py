"""A run's settings with the options of its game as they are meant."""

from __future__ import annotations

from maple.core.config import Config
from maple.games import chosen_options, make_game
from maple.games.contract import files_of

__all__ = ["files_of_run", "settled"]


def settled(config: Config) -> Config:
    """With all of the game's options, those that nobody chose as well, and files by their absolute paths."""
    options = chosen_options(config.name, config.game).model_dump()
    practice = []
    for variant in config.practice:
        chosen = chosen_options(config.name, {**options, **variant.game}).model_dump()
        practice.append(variant.model_copy(update={"game": {key: chosen[key] for key in variant.game}}))
    return config.model_copy(update={"game": options, "practice": practice})


def files_of_run(config: Config) -> dict[str, str]:
    """The files of the user's own that a run's game and its variants are played with, and the SHA-256 of each."""
    variants = [{}, *(variant.game for variant in config.practice)]
    games = [make_game(config.name, {**config.game, **variant}) for variant in variants]
    return {path: sha256 for game in games for path, sha256 in files_of(game).items()}
