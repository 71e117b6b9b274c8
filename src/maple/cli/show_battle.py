"""`maple show showdown`: a battle as a replay for Showdown's viewer, as its log and as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple.cli.output import notes
from maple.cli.settings import battle_settings
from maple.core.errors import ConfigError, RunError
from maple.core.sources import load_config
from maple.runs.store import write_atomically

if TYPE_CHECKING:
    from maple.arena.record import GameRecord

__all__ = ["show_battle", "show_battle_again"]


def show_battle(
    names: list[str], seed: int, out: Path, settings: list[str], runs_dir: Path | None, record: Path | None = None
) -> dict[str, Any]:
    """Play one battle and write it as files; returns where they are and how it ended.

    It is a battle of the first player's own format, if that is a run.
    """
    from maple.cli.evaluate import find_player
    from maple.core.cores import available_cores
    from maple.core.threads import Team
    from maple.games.showdown.game import ShowdownGame
    from maple.training.agent import load_agent
    from maple.training.exhibit import play_recorded

    if len(names) != 2:
        raise ConfigError(f"--players names {len(names)} players; showdown has 2 seats")
    asked = load_config("showdown", settings=settings).game
    with Team(available_cores()) as team, notes.status("playing"):
        scripted = names[0] in ShowdownGame().spec.opponents
        config = None if scripted else load_agent(names[0], runs_dir, team).config
        stored = config.game if config is not None and config.name == "showdown" else {}  # of others, find_player tells
        game = ShowdownGame(battle_settings({**stored, "servers": "", **asked}), record=True)
        players = [(name, find_player(name, game, runs_dir, team, "--players")) for name in names]
        lines, played = play_recorded(game, players, seed)
    if record is not None:
        write_atomically(record, played.text(), "--record")
    return _write(lines, played, out)


def show_battle_again(played: GameRecord, out: Path) -> dict[str, Any]:
    """Write a recorded battle as files."""
    from maple.games.showdown.game import ShowdownGame
    from maple.training.exhibit import play_again

    with notes.status("playing again"):
        game = ShowdownGame(battle_settings(played.settings), record=True)
        return _write(play_again(game, played), played, out)


def _write(lines: list[str], played: GameRecord, out: Path) -> dict[str, Any]:
    from maple.games.showdown.show import readable, replay_html, replay_log

    first, second = played.players
    shown = (first[:18], second[:18] if second != first else f"{second[:14]} (2)")
    log = replay_log(lines, shown)
    texts = {"html": replay_html(log, f"{shown[0]} against {shown[1]}"), "log": log, "readable": readable(log)}
    name = f"{played.settings['format']}-{played.seed}"
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot use --out {out}: {error.strerror}; choose another folder") from None
    paths = {"html": out / f"{name}.html", "log": out / f"{name}.log", "readable": out / f"{name}.txt"}
    for kind, path in paths.items():
        write_atomically(path, texts[kind], "--out")
    return {
        "game": "showdown",
        "players": list(shown),
        "seed": played.seed,
        "score": played.end["score"],
        "turns": played.end["turns"],
        **{kind: str(path) for kind, path in paths.items()},
        "text": texts["readable"],
    }
