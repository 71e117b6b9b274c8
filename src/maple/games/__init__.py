"""The games in the box, found by name and imported only when asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from maple.core.errors import GameError, nearest

if TYPE_CHECKING:  # worker processes read this file and do without pydantic, a sixth of what they would import
    from pydantic import BaseModel

    from maple.games.contract import Game

__all__ = ["GAMES", "GameEntry", "chosen_options", "entry", "game_settings", "is_external", "make_game"]

_GYM_ID = re.compile(r"-v\d+$")


@dataclass(frozen=True, slots=True)
class GameEntry:
    """Where a game lives, and what it is trained with unless told otherwise."""

    module: str
    game: str
    settings: str
    summary: str
    defaults: Mapping[str, Any] = field(default_factory=dict)


GAMES: Mapping[str, GameEntry] = {
    "ofc": GameEntry(
        module="maple.games.ofc.game",
        game="OfcGame",
        settings="OfcSettings",
        summary="open-face Chinese poker: pineapple or regular, 2-3 seats, fantasyland",
        defaults={
            "practice": [{"share": 0.5, "game": {"fantasyland": "off"}}],
            "dqn": {"gamma": 1.0, "dueling": False},
        },
    ),
    "showdown": GameEntry(
        module="maple.games.showdown.game",
        game="ShowdownGame",
        settings="ShowdownSettings",
        summary="Pokémon Showdown singles in the real simulator, in a pool of Node processes",
        defaults={
            "algo": "ppo",
            "tables": 64,
            "opponents": "self:0.5,random:0.1,power:0.2,heuristic:0.2",
            "probe_every_s": 0,
            "net": {"hidden": [128, 64]},
            "optimizer": {"learning_rate": 1e-3},
            "ppo": {
                "policy": "options",
                "horizon": 8192,
                "epochs": 2,
                "minibatch": 1024,
                "gamma": 0.995,
                "entropy": 0.02,
                "study": "heuristic",
                "study_steps": 200_000,
                "study_minibatch": 512,
            },
            "dqn": {"policy": "index", "gamma": 0.995},
        },
    ),
    "wargame": GameEntry(
        module="maple.games.wargame.game",
        game="WargameGame",
        settings="WargameSettings",
        summary="a tabletop skirmish: squads, dice, phases, objectives; rosters, maps and missions as data",
        defaults={
            "algo": "ppo",
            "opponents": "self:0.2,past:0.1,veteran:0.2,tactician:0.2,greedy:0.15,racer:0.15",
            "probe_against": "greedy",
            "probe_hands": 256,
            "net": {"hidden": [128, 64]},
            "optimizer": {"learning_rate": 1e-3},
            "ppo": {
                "horizon": 32768,
                "epochs": 2,
                "minibatch": 4096,
                "gamma": 0.998,
                "lam": 0.9,
                "entropy": 0.003,
                "study": "veteran",
                "study_steps": 200_000,
                "study_minibatch": 512,
            },
            "dqn": {
                "updates_per_step": 16,
                "gamma": 0.998,
                "n_step": 10,
                "dueling": False,
                "epsilon": 0.1,
                "epsilon_final": 0.03,
                "study": "veteran",
                "study_steps": 150_000,
                "study_share": 0.25,
                "study_margin": 0.05,
            },
        },
    ),
}


def is_external(name: str) -> bool:
    """Whether a name is the import path of an env of the user's own, or looks like a Gymnasium id."""
    return name not in GAMES and (":" in name or _GYM_ID.search(name) is not None)


def entry(name: str) -> GameEntry:
    """The entry of a game, or a sentence that helps."""
    if is_external(name):
        place = import_module("maple.games.external.game")
        return GameEntry(place.__name__, "ExternalGame", "EnvArguments", "an env of the user's own", place.DEFAULTS)
    if name not in GAMES:
        raise GameError(f"there is no game {name!r}; {nearest(name, GAMES)}")
    return GAMES[name]


def game_settings(name: str) -> type[BaseModel]:
    """The options that a game has."""
    place = entry(name)
    return getattr(import_module(place.module), place.settings)  # type: ignore[no-any-return]


def _place(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[list[str], list[str]]:
    """The keys of a mistake as a user writes them, and those that are allowed where the last of them stands."""
    from pydantic import BaseModel

    path, at = [str(loc[0])], model
    for part in loc[1:]:
        inner = at.model_fields[path[-1]].annotation if path[-1] in at.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        at = inner
        path.append(str(part))
    return path, list(at.model_fields)


def chosen_options(name: str, options: Mapping[str, Any] | None = None) -> BaseModel:
    """All options of a game, those that are not chosen as well; files that they name are not looked for."""
    from pydantic import ValidationError

    model = game_settings(name)
    try:
        return model.model_validate(dict(options or {}))
    except ValidationError as error:
        first = error.errors()[0]
        path, known = _place(model, first["loc"])
        key = ".".join(path)
        if first["type"] == "extra_forbidden":
            raise GameError(f"{name} has no option {key!r}; {nearest(path[-1], known)}") from None
        own = first["type"] == "value_error"
        reason = first["msg"].removeprefix("Value error, ") if own else first["msg"].lower()
        raise GameError(f"game.{key} = {first['input']!r} cannot be used: {reason}") from None


def make_game(name: str, options: Mapping[str, Any] | None = None) -> Game:
    """The rules of a game with these options."""
    place, settings = entry(name), chosen_options(name, options)
    maker = getattr(import_module(place.module), place.game)
    return maker(settings) if name in GAMES else maker(name, settings)  # type: ignore[no-any-return]
