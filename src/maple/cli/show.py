"""`maple show`: a game to look at, decision by decision, as text or as a picture; recorded and played again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple.cli.options import GameArgument, JsonOption, RunsDirOption, SetOption, refuse_unused
from maple.cli.output import notes, print_json, results
from maple.core.errors import ConfigError, GameError
from maple.core.sources import load_config
from maple.games import chosen_options
from maple.runs.own_files import OwnFiles
from maple.runs.store import write_atomically

if TYPE_CHECKING:
    from maple.arena.record import GameRecord, Moment
    from maple.games.contract import Game

__all__ = ["show"]


def _players(game: Game, text: str | None, runs_dir: Path | None) -> list[Any]:
    """A name and a way to choose for each seat."""
    from maple.cli.evaluate import find_player
    from maple.core.threads import Team

    names = [name.strip() for name in text.split(",")] if text else [game.spec.opponents[-1]]
    names = names * game.spec.seats if len(names) == 1 else names
    if len(names) != game.spec.seats:
        raise ConfigError(f"--players names {len(names)} players; {game.spec.name} has {game.spec.seats} seats")
    team = Team(1)
    return [(name, find_player(name, game, runs_dir, team, "--players")) for name in names]


def _frame(game: Game, moment: Moment, number: int) -> str:
    """A decision, what was chosen and what came of it, as text."""
    from maple.games.contract import Readable, Watchable

    head = f"── decision {number}, seat {moment.seat} "
    if isinstance(game, Watchable):
        chosen = [game.say(moment.table, moment.action), *game.tell(moment.table, moment.action, moment.after)]
        return "\n".join([head.ljust(60, "─"), game.frame(moment.table), "→ " + "\n  ".join(chosen), ""])
    assert isinstance(game, Readable)
    return f"{head.ljust(60, '─')}\n{game.show(moment.view)}\n→ action {moment.action}\n"


def _drawn(game: Game, moment: Moment) -> str:
    from maple.games.contract import Watchable

    if not isinstance(game, Watchable):
        raise GameError(f"{game.spec.name} has no pictures; leave --svg out and read the frames")
    return game.picture(moment.table, moment.action, moment.after)


def _record(
    name: str, settings: list[str] | None, players: str | None, seed: int, table: int, runs_dir: Path | None
) -> GameRecord:
    from maple.arena.record import record_game
    from maple.games import make_game

    game = make_game(name, load_config(name, settings=settings).game)
    with notes.status("playing") as status:
        who = _players(game, players, runs_dir)
        return record_game(game, who, seed, table, lambda n: status.update(f"playing, decision {n}"))


def _show_battle(found: dict[str, Any], json: bool) -> None:
    """A battle is written as files that Showdown's own viewer opens."""
    if json:
        print_json({key: value for key, value in found.items() if key != "text"})
        return
    results.print(found["text"], markup=False, soft_wrap=True)
    notes.print(f"wrote {found['html']}, {found['log']} and {found['readable']}", soft_wrap=True)


def _show_frames(played: GameRecord, frame: int | None, svg: Path | None, json: bool) -> None:
    """A game of this process, decision by decision, and a picture of one of them."""
    from maple.arena.record import replay
    from maple.games import make_game

    if frame is not None and frame >= len(played.actions):
        raise ConfigError(f"--frame {frame}: the game has {len(played.actions)} decisions, counted from 0")
    rules, chosen = make_game(played.game, played.settings), frame if frame is not None else len(played.actions) - 1
    for number, moment in enumerate(replay(played)):
        if not json and (frame is None or number == frame):
            results.print(_frame(rules, moment, number), markup=False, soft_wrap=True)
        if svg is not None and number == chosen:
            write_atomically(svg, _drawn(rules, moment), "--svg")
    if json:
        print_json({"game": played.game, "seed": played.seed, "table": played.table, "players": played.players,
                    "decisions": len(played.actions), "actions": played.actions, "end": played.end})  # fmt: skip
        return
    results.print(f"{' against '.join(played.players)}: {_ending(rules, played.end)}", markup=False, soft_wrap=True)


def _saved(game: str, file: Path) -> GameRecord:
    from maple.arena.record import load_record

    saved = load_record(file)
    saved = replace(saved, settings=OwnFiles.around(file).at_hand({"game": saved.settings})["game"])
    if saved.game != game:
        raise GameError(f"{file} is a game of {saved.game}, not of {game}; write maple show {saved.game}")
    try:
        chosen_options(saved.game, saved.settings)
    except GameError as error:
        reason = str(error).partition(";")[0]
        raise GameError(
            f"{file} was recorded by another version of Maple: {reason}; show it with that one, or record a new game"
        ) from None
    return saved


def show(
    game: GameArgument,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of the game [default: 0].")] = None,
    table: Annotated[int | None, typer.Option(min=0, help="Which table of that seed [default: 0].")] = None,
    players: Annotated[
        str | None, typer.Option(help="Who plays, by seat: opponents or runs [default: the strongest opponent].")
    ] = None,
    frame: Annotated[int | None, typer.Option(min=0, help="Show this decision alone.")] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write a picture of that decision (the last, if none is named).")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Save the whole game here.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Play a saved game again instead of a new one.")] = None,
    out: Annotated[Path | None, typer.Option(help="showdown: the folder for the replay [default: here].")] = None,
    settings: SetOption = None,
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Watch a game as text frames, write a picture of a position, save it, play it again.

    - `maple show wargame --seed 7 --players tactician,greedy`
    - `maple show wargame --seed 7 --frame 40 --svg position.svg`
    - `maple show ofc --seed 1 --record game.json`, then `maple show ofc --replay game.json`
    - `maple show CartPole-v1 --players poles` (an env of your own, with what the agent saw and chose)
    - `maple show showdown --seed 7 --players battles,heuristic` (a replay for Showdown's viewer, its log, and text)
    - `maple show ofc --replay runs/first/games/1000000-random-random.json` (a game of an evaluation)
    """
    if replay is not None:
        made = {"--seed": seed, "--table": table, "--players": players, "--set": settings, "--record": record}
        refuse_unused(made, "--replay: a saved game has its own")
    saved = _saved(game, replay) if replay is not None else None
    if game == "showdown":
        from maple.cli.show_battle import show_battle, show_battle_again

        looks = {"--table": table, "--frame": frame, "--svg": svg}
        refuse_unused(looks, "showdown, whose battles are written as replays (--out)")
        names, out = [name.strip() for name in (players or "heuristic,heuristic").split(",")], out or Path()
        if saved is not None:
            _show_battle(show_battle_again(saved, out), json)
        else:
            _show_battle(show_battle(names, seed or 0, out, settings or [], runs_dir, record), json)
        return
    refuse_unused({"--out": out}, f"{game}; write --svg or --record")
    played = saved or _record(game, settings, players, seed or 0, table or 0, runs_dir)
    _show_frames(played, frame, svg, json)
    if record is not None:
        write_atomically(record, played.text(), "--record")


def _ending(game: Game, end: dict[str, Any]) -> str:
    """How a game ended, in a line."""
    from maple.games.contract import Watchable

    return game.ending(end) if isinstance(game, Watchable) else ", ".join(f"{name} {end[name]}" for name in end)
