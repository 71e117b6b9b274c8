"""The settings of a run as commands gather them: from all their sources, and for a run that is stored from its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from maple.core.config import validated
from maple.core.errors import ConfigError, UserError
from maple.core.sources import Sourced, gather
from maple.games import chosen_options, entry
from maple.games.settled import settled

if TYPE_CHECKING:
    from maple.games.showdown.game import ShowdownSettings

__all__ = ["Asked", "battle_settings", "settings_asked_for", "settings_of_no_game"]

DEFAULT_MINUTES = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for."""

    run: str | None  # the run's name, where one is known
    found: Sourced


def settings_asked_for(
    game: str, run: str | None, preset: str | None, file: Path | None, settings: list[str] | None, flags: dict[str, Any]
) -> Asked:
    """The settings of a run of a game, or of the run that is mirrored at a URL; one that is told no end gets one.

    Files that they name are not looked for: those of a run that is stored are brought later.
    """
    sources: dict[str, Any] = {"preset": preset, "file": file, "settings": settings, "environment": os.environ}
    if "://" in game:
        run, own = _stored(game, run)
        asked = Asked(run, gather(own.pop("name"), defaults=own, origin="the run", flags=flags, **sources))
    else:
        asked = Asked(run, gather(game, defaults=entry(game).defaults, flags=flags, **sources))
    found = replace(asked.found, config=settled(asked.found.config))
    return replace(asked, found=_with_end(found))


def settings_of_no_game(
    preset: str | None, file: Path | None, settings: list[str] | None, flags: dict[str, Any]
) -> Sourced:
    """The settings that hold where no game says otherwise."""
    found = gather("", preset=preset, file=file, settings=settings, environment=os.environ, flags=flags)
    if found.config.game:
        first = next(iter(found.config.game))
        raise ConfigError(f"game.{first} is an option of a game; name the game too: maple config show GAME")
    return _with_end(found)


def battle_settings(options: Mapping[str, Any]) -> ShowdownSettings:
    """The options of a game of showdown, or a sentence that helps."""
    return cast("ShowdownSettings", chosen_options("showdown", options))


def _stored(url: str, run: str | None) -> tuple[str, dict[str, Any]]:
    """The name and the settings of the run that is mirrored at a URL."""
    from maple.runs.storage import stored_settings

    base, _, name = url.rstrip("/").rpartition("/")
    if run not in (None, name):
        raise ConfigError(f"--run {run}: the run at {url} is called {name}; leave --run out")
    settings = stored_settings(url)
    _check_version(name, settings)
    return name, {**settings, "storage": base}


def _check_version(run: str, settings: dict[str, Any]) -> None:
    """Tell settings that this Maple cannot read from mistakes of whoever types the command."""
    try:
        config = validated(settings)
        chosen_options(config.name, config.game)
    except UserError as error:
        reason = str(error).partition(";")[0]
        raise ConfigError(
            f"run {run!r} was written by another Maple, perhaps a newer one: {reason}; use the Maple that wrote it, or "
            "a newer one"
        ) from None


def _with_end(found: Sourced) -> Sourced:
    if found.config.steps is not None or found.config.minutes is not None:
        return found
    return replace(found, config=found.config.model_copy(update={"minutes": DEFAULT_MINUTES}))
