"""From a name to an environment: `package.module:make_env`, or an id that Gymnasium has registered."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import gymnasium

from maple.core.errors import GameError, nearest
from maple.games.external.spaces import FAILURES

__all__ = ["make_env"]


def make_env(name: str, arguments: Mapping[str, Any]) -> Any:
    """A new environment; what cannot be made is told in a sentence."""
    factory = _factory(name)
    try:
        return factory(**arguments)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items()) or "no arguments"
        raise GameError(
            f"{name} cannot be made with {given}: {error}; set its arguments with --set env.NAME=VALUE"
        ) from (error)
    except FAILURES as error:
        raise GameError(f"{name} cannot be made: {type(error).__name__}: {error}") from error


def _factory(name: str) -> Any:
    module_name, colon, attribute = name.partition(":")
    module = _module(module_name, name) if colon else None
    if module is not None and attribute in vars(module):
        factory = vars(module)[attribute]
        if not callable(factory):
            raise GameError(f"{name} is no function that makes an env, it is a {type(factory).__name__}")
        return factory
    gym_id = attribute if colon else name
    if gym_id in gymnasium.registry:
        return lambda **arguments: gymnasium.make(gym_id, disable_env_checker=True, **arguments)
    if module is not None:
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise GameError(f"module {module_name!r} has no {attribute!r}; {nearest(attribute, known)}")
    raise GameError(
        f"Gymnasium has no env {name!r} registered; {nearest(name, gymnasium.registry)}; an env of your own is given "
        "as package.module:make_env"
    )


def _module(module_name: str, name: str) -> Any:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise GameError(
                f"there is no module {module_name!r} for the game {name!r}; start maple in the folder that holds it, "
                "or install it"
            ) from None
        raise GameError(f"module {module_name!r} cannot be imported: {error}; install what it needs") from error
    except FAILURES as error:
        raise GameError(f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}") from error
