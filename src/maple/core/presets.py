"""Presets: settings that go together, shipped with Maple or the user's own."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

from maple.core.errors import ConfigError, nearest
from maple.core.yaml_file import read_yaml

__all__ = ["preset_names", "preset_settings", "settings_of", "user_presets"]


def user_presets(game: str) -> Path:
    """Where the user's own presets of a game are: `presets/GAME/` of the config folder."""
    home = os.environ.get("MAPLE_CONFIG_DIR")
    folder = Path(home) if home else Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "maple"
    # the import path of an env has a colon, which Windows does not allow in a name
    return folder.expanduser() / "presets" / re.sub(r"[^A-Za-z0-9_.-]+", "-", game)


def preset_names(game: str | None = None) -> list[str]:
    """The presets that ship with Maple, and with a game's name also the user's own for it."""
    own = user_presets(game).glob("*.yml") if game is not None else ()
    shipped = resources.files("maple.presets").iterdir()
    return sorted({p.name.removesuffix(".yml") for p in [*shipped, *own] if p.name.endswith(".yml")})


def preset_settings(name: str, game: str) -> dict[str, Any]:
    """The settings of a preset: a YAML file's, the user's own or one that ships with Maple."""
    path = Path(name) if name.endswith((".yml", ".yaml")) else user_presets(game) / f"{name}.yml"
    if not path.is_file():
        known = preset_names(game)
        if path.suffix == ".yaml" or name.endswith(".yml") or name not in known:
            raise ConfigError(f"there is no preset {name!r}; {nearest(name, known)}")
        path = Path(str(resources.files("maple.presets") / f"{name}.yml"))
    return settings_of(path)


def settings_of(path: Path) -> dict[str, Any]:
    """The settings in a YAML file."""
    return read_yaml(path, ConfigError, "settings", "write settings as `key: value`, a line each")
