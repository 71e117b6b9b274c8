"""`maple ladder`: how runs and scripted opponents rank."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from maple.cli.options import GameArgument, JsonOption, RunsDirOption, SetOption
from maple.cli.output import notes, print_json, print_table, warn
from maple.core.errors import GameError, UserError
from maple.core.sources import load_config
from maple.runs.listing import list_runs
from maple.runs.store import default_runs_dir

if TYPE_CHECKING:
    from maple.core.threads import Team
    from maple.games.contract import Game

__all__ = ["ladder"]


def ladder(
    game: GameArgument,
    hands: Annotated[int, typer.Option(min=1, help="Hands of each meeting, each way round.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the deals.")] = 0,
    settings: SetOption = None,
    runs_dir: RunsDirOption = None,
    json: JsonOption = False,
) -> None:
    """Rate all runs of a game and its scripted opponents against each other; results are kept, so only new ones play.

    - `maple ladder ofc`
    - `maple ladder ofc --set game.fantasyland=off --hands 3000`
    """
    from maple.core.cores import available_cores
    from maple.core.threads import Team
    from maple.games import make_game
    from maple.training.ladder import Ladder

    chosen = make_game(game, load_config(game, settings=settings).game)
    if chosen.spec.seats < 2:
        raise GameError(f"{game} has one seat, so nobody meets anybody there; compare runs of it with maple eval")
    base = runs_dir or default_runs_dir()
    name = re.sub(r"[^\w.=-]+", "-", "-".join([game, *sorted(settings or [])]))
    with Team(available_cores()) as team:
        players = _players(chosen, base, team)
        kept = Ladder(base / f"ladder-{name}.json", hands, seed)
        base.mkdir(parents=True, exist_ok=True)
        with Progress(console=notes, disable=json or not notes.is_terminal, transient=True) as bar:
            task = bar.add_task("meetings", total=None)

            def tell(text: str, done: int, total: int) -> None:
                bar.update(task, description=text, completed=done, total=total)

            kept.play(chosen, players, team, tell)
    ranks = kept.ranks(list(players))
    if json:
        print_json({"game": game, "hands": hands, "seed": seed, "ranks": [asdict(rank) for rank in ranks]})
        return
    rows = [
        [
            rank.name,
            f"{rank.rating:.1f}",
            f"{rank.interval[0]:.1f} … {rank.interval[1]:.1f}",
            f"{rank.won:.1%}",
            f"{rank.deals:,}",
        ]
        for rank in ranks
    ]
    print_table(f"ladder of {name}", ["player", "rating", "95 % interval", "deals won", "deals"], rows)


def _players(game: Game, base: Path, team: Team) -> dict[str, Any]:
    """The scripted opponents, and the newest agent of every run of this game whose agent can play it."""
    from maple.training.agent import load_agent_for
    from maple.training.evaluate import bot_player
    from maple.training.ladder import version

    players: dict[str, Any] = {name: bot_player(game, name, team) for name in game.spec.opponents}
    for run in list_runs(base):
        if run.game == game.spec.name and any((Path(run.path) / "checkpoints").glob("[0-9]*")):
            try:
                agent = load_agent_for(game, run.path, None, team)
            except UserError as error:
                warn(f"run {run.name!r} is left out: {error}")
                continue
            players[version(run.name, agent.steps, agent.weights_sha256)] = agent
    return players
