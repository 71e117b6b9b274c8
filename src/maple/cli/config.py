"""`maple config`: the settings, their values and where they come from."""

from __future__ import annotations

import os
import types
from typing import Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from maple.cli.options import ConfigOption, GameArgument, JsonOption, PresetOption, SetOption
from maple.cli.output import print_json, print_table, results
from maple.core.config import Config
from maple.core.sources import ENVIRONMENT, gather
from maple.games import GAMES, entry, game_settings

__all__ = ["app"]

app = typer.Typer(help="The settings of a run: what is in force, and the reference page.", no_args_is_help=True)


@app.command("show")
def show(
    game: GameArgument,
    preset: PresetOption = None,
    config_file: ConfigOption = None,
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Print every setting that `maple train` with these options would use, and where it came from.

    Later wins: defaults, the game's own, preset, `--config` file, environment, `--set`.

    - `maple config show ofc --preset speed --set ppo.clip=0.1`
    """
    found = gather(
        game, defaults=entry(game).defaults, preset=preset, file=config_file, environment=os.environ, settings=settings
    )
    rows = found.rows()
    if json:
        print_json({"settings": {key: {"value": value, "source": source} for key, value, source in rows}})
        return
    print_table(
        f"settings of {game}", ["setting", "value", "from"], [[key, str(value), source] for key, value, source in rows]
    )


@app.command("docs")
def docs() -> None:
    """Print the reference page of all settings, in Markdown."""
    lines = [
        "# Settings",
        "",
        "Set by `--set KEY=VALUE`, in a `--config` file, or as `MAPLE_KEY` in the environment with",
        "`__` for each dot. `maple config show GAME` prints what is in force.",
        "",
    ]
    lines += ["| setting | type | default | what it is |", "|---|---|---|---|"]
    lines += _rows(Config, "")
    for name in GAMES:
        lines += ["", f"## Options of {name}", "", "| setting | type | default | what it is |", "|---|---|---|---|"]
        lines += _rows(game_settings(name), "game.")
    lines += ["", "## Names that other programs use", "", "| in the environment | setting |", "|---|---|"]
    lines += [f"| `{name}` | `{key}` |" for name, key in ENVIRONMENT.items()]
    results.print("\n".join(lines), markup=False, soft_wrap=True)


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            rows += _rows(kind, f"{prefix}{name}.")
            continue
        default = field.get_default(call_default_factory=True)
        shown = "" if default is PydanticUndefined else "not set" if default is None else f"`{default}`"
        rows.append(f"| `{prefix}{name}` | {_kind(kind)} | {shown} | {field.description or ''} |")
    return rows


def _kind(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is list:
        return f"list of {_kind(get_args(kind)[0])}"
    words = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return words.get(kind, "mapping")
