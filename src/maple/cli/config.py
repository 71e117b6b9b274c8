"""`maple config`: the settings, their values and where they come from."""

from __future__ import annotations

import os
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from maple.cli.options import (
    AlgoOption,
    ConfigOption,
    EvaluateOption,
    JsonOption,
    MinutesOption,
    NotifyOption,
    OpponentsOption,
    PresetOption,
    SeedOption,
    SetOption,
    StepsOption,
    StorageOption,
    WorkersOption,
    worker_flag,
)
from maple.cli.output import print_json, print_table, results
from maple.cli.settings import settings_asked_for, settings_of_no_game
from maple.core.config import AUTO_TABLES, Config
from maple.core.cores import available_cores
from maple.core.sources import ENVIRONMENT, PROVIDERS
from maple.games import GAMES, game_settings, make_game
from maple.runs.notify import address_variable, addresses

__all__ = ["app"]

app = typer.Typer(help="The settings of a run: what is in force, and the reference page.", no_args_is_help=True)


@app.command("show")
def show(
    game: Annotated[
        str | None, typer.Argument(help="The game, as `maple train` takes it; without one, what no game changes.")
    ] = None,
    steps: StepsOption = None,
    minutes: MinutesOption = None,
    seed: SeedOption = None,
    preset: PresetOption = None,
    config_file: ConfigOption = None,
    algo: AlgoOption = None,
    opponents: OpponentsOption = None,
    workers: WorkersOption = None,
    settings: SetOption = None,
    storage: StorageOption = None,
    notify: NotifyOption = None,
    evaluate: EvaluateOption = None,
    json: JsonOption = False,
) -> None:
    """Print every setting that `maple train` with these options would use, and where it came from.

    Later wins: defaults, the game's own, preset, `--config` file, environment, `--set`, flags. Where messages go is
    counted and never shown. Without a game: what holds where no game says otherwise.

    - `maple config show`
    - `maple config show ofc --preset speed --set ppo.clip=0.1`
    """
    flags: dict[str, Any] = {"steps": steps, "minutes": minutes, "seed": seed, "algo": algo, "opponents": opponents}
    flags |= {"evaluate": evaluate, "workers": worker_flag(workers), "storage": storage}
    if game is None:
        found = settings_of_no_game(preset, config_file, settings, flags)
    else:
        found = settings_asked_for(game, None, preset, config_file, settings, flags).found
        if "://" not in game:
            make_game(found.config.name, found.config.game)  # files that it names are there, and make sense
    rows = [*(_filled(row) for row in found.rows() if game or row[0] != "name"), _messages(notify or [])]
    if json:
        print_json({"settings": {key: {"value": value, "source": source} for key, value, source in rows}})
        return
    title = f"settings of {game}" if game else "settings where no game says otherwise"
    print_table(title, ["setting", "value", "from"], [[key, str(value), source] for key, value, source in rows])


def _messages(given: list[str]) -> tuple[str, str, str]:
    """How many addresses messages go to; the addresses themselves are secrets."""
    count, name = len(addresses(given, os.environ)), address_variable(os.environ)
    source = "default" if not count else "flag" if given else f"${name}"
    return "notify", f"{count} addresses" if count != 1 else "1 address", source


def _filled(row: tuple[str, Any, str]) -> tuple[str, Any, str]:
    """What is chosen by itself, as a new run on this machine would choose it."""
    chosen = {"tables": AUTO_TABLES, "threads": available_cores()}
    return (row[0], chosen[row[0]], "automatic") if row[0] in chosen and row[1] is None else row


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
    told = ", ".join(f"`{provider}` for `{bucket}`" for provider, (_, bucket) in PROVIDERS.items())
    lines += [f"| `CLOUD_PROVIDER` | `storage`, with the bucket's name: {told}; not needed where one of them is set |"]
    lines += ["| `MAPLE_NOTIFY_URL`, `DISCORD_WEBHOOK_URL` | as `--notify`; never shown or written |"]
    results.print("\n".join(lines), markup=False, soft_wrap=True)


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            rows += _rows(kind, f"{prefix}{name}.")
            continue
        default = field.get_default(call_default_factory=True)
        shown = "to be given" if default is PydanticUndefined else "not set" if default is None else f"`{default}`"
        rows.append(f"| `{prefix}{name}` | {_kind(kind)} | {shown} | {field.description or ''} |")
        inner = get_args(kind)[0] if get_origin(kind) is list else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            rows += _rows(inner, f"{prefix}{name}[].")
    return rows


def _kind(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Annotated:
        return _kind(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is list:
        return f"list of {_kind(get_args(kind)[0])}"
    words = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return words.get(kind, "mapping")
