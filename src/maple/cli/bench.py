"""`maple bench`: how fast the parts and the whole are, alone and beside peers."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, cast, get_args

import typer

from maple.bench.measure import machine_lock
from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption
from maple.cli.output import notes, print_json, print_table
from maple.cli.train import compile_kernels
from maple.core.config import Config, load_config
from maple.core.errors import ConfigError, nearest
from maple.games import entry

__all__ = ["app"]

app = typer.Typer(help="Measure: one thing at a time, on this machine, as it is now.", no_args_is_help=True)

SecondsOption = Annotated[float, typer.Option(min=0.1, help="How long to measure (per side, beside a peer).")]
RECIPES: dict[str, dict[str, Any]] = {
    "same": {"preset": "sb3", "settings": ["opponents=random"]},
    "best": {"preset": "speed", "settings": ["algo=ppo", "ppo.policy=index"]},
}


def _config(
    game: str, preset: str | None, settings: list[str] | None, algo: str | None, seed: int | None, **more: Any
) -> Config:
    flags = {"algo": algo, "seed": seed, **more}
    return load_config(game, preset, settings, entry(game).defaults, flags)


def _show(title: str, found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
        return
    rows = [[key, f"{value:,.3f}" if isinstance(value, float) else str(value)] for key, value in _flat(found)]
    print_table(title, ["figure", "value"], rows)


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list) or key == "ratio_ci95":
            pairs.append((prefix + key, value))
    return pairs


@app.command("game")
def game(
    game: GameArgument,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads [default: one a core].")] = None,
    tables: Annotated[int, typer.Option(min=1, help="Games side by side on each thread.")] = 8192,
    seconds: SecondsOption = 5.0,
    options: Annotated[bool, typer.Option("--options", help="Describe every legal option too.")] = False,
    battle_format: Annotated[str | None, typer.Option("--format", help="showdown: the battle format.")] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="showdown: Node processes [default: one a core].")
    ] = None,
    battles: Annotated[int, typer.Option(min=1, help="showdown: battles side by side in each process.")] = 16,
    peer: Annotated[str | None, typer.Option(help="showdown: measure poke-env in the same run.")] = None,
    transport: Annotated[
        str | None, typer.Option(help="showdown: compare ways to carry rows, such as shared,pipe.")
    ] = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """A game by itself: random legal play with observation and mask written for each decision.

    - `maple bench game ofc`
    - `maple bench game showdown --peer poke-env --seconds 30`
    """
    from maple.bench.game import bench_game
    from maple.training.build import available_cores

    lines = [*(settings or []), *([f"game.format={battle_format}"] if battle_format else [])]
    config = _config(game, None, lines, None, seed)
    if game == "showdown":
        pool = processes or available_cores()
        found = _bench_battles(config, pool, battles, seconds, peer, transport)
        _show("battles", found, json)
        return
    with machine_lock(notes.print), notes.status(f"measuring {game} for {seconds:g} s"):
        found = bench_game(game, config.game, threads or available_cores(), tables, seconds, options, config.seed)
    _show(f"{game} alone", found, json)


def _bench_battles(
    config: Config, processes: int, battles: int, seconds: float, peer: str | None, transport: str | None
) -> dict[str, Any]:
    """The bridge beside the simulator alone, as it is, and a peer."""
    from maple.arena.node_process import Transport
    from maple.bench.peers.poke_env import PokeEnvSide
    from maple.bench.showdown import bench_showdown
    from maple.games import make_game

    ways: list[Transport] = []
    for way in (transport or "auto").split(","):
        if way not in get_args(Transport):
            raise ConfigError(f"there is no transport {way!r}; {nearest(way, get_args(Transport))}")
        ways.append(cast(Transport, way))
    if peer not in (None, "poke-env"):
        raise ConfigError(f"there is no peer {peer!r} for battles; {nearest(peer, ['poke-env'])}")
    chosen = make_game("showdown", config.game).settings.model_dump()["format"]
    make_peer = partial(PokeEnvSide, chosen, config.seed) if peer else None
    with machine_lock(notes.print), notes.status("measuring battles") as status:

        def tell(text: str) -> None:
            status.update(text)
            if not notes.is_terminal:
                notes.print(text)

        return bench_showdown(config.game, processes, battles, seconds, config.seed, tell, make_peer, ways)


@app.command("train")
def train(
    game: GameArgument,
    peer: Annotated[str | None, typer.Option(help="Measure a peer in the same run: sb3.")] = None,
    recipe: Annotated[str | None, typer.Option(help="same: the peer's own recipe; best: our speed preset.")] = None,
    seconds: SecondsOption = 60.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Training end to end, in learned decisions a second; with `--peer`, interleaved with a peer on the same game.

    - `maple bench train ofc --peer sb3 --recipe same`
    - `maple bench train ofc --peer sb3 --recipe best`
    - `maple bench train ofc --algo afterstate`
    """
    from maple.bench.train import bench_train

    if peer not in (None, "sb3"):
        raise ConfigError(f"there is no peer {peer!r}; {nearest(peer, ['sb3'])}")
    if recipe is not None and recipe not in RECIPES:
        raise ConfigError(f"there is no recipe {recipe!r}; {nearest(recipe, RECIPES)}")
    chosen = RECIPES[recipe] if recipe else {}
    lines = [*chosen.get("settings", []), *(settings or [])]
    config = _config(game, preset or chosen.get("preset"), lines, algo, seed)
    compile_kernels(config)
    make_peer = None
    if peer is not None:
        from maple.bench.peers.sb3 import Sb3Side

        make_peer = partial(Sb3Side, game, config.game, config.seed)
    with machine_lock(notes.print), notes.status(f"measuring training for {seconds:g} s a side"):
        found = bench_train(config, seconds, make_peer)
    _show(f"training {game}", found, json)


@app.command("roofline")
def roofline(
    game: GameArgument,
    seconds: SecondsOption = 40.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """The parts of training measured alone, the loop, and how much of the bound the loop reaches."""
    from maple.bench.roofline import bench_roofline

    config = _config(game, preset, settings, algo, seed)
    compile_kernels(config)
    with machine_lock(notes.print), notes.status(f"measuring for {seconds:g} s"):
        found = bench_roofline(config, seconds)
    _show(f"roofline of {game}", found, json)


@app.command("strength")
def strength(
    game: GameArgument,
    target: Annotated[float, typer.Option(help="The result to reach, in the game's own metric.")] = 8.0,
    against: Annotated[str, typer.Option(help="Who sits in all other seats.")] = "random",
    minutes: Annotated[float, typer.Option(min=0.01, help="Give up after this; also the learning schedule.")] = 5.0,
    hands: Annotated[int, typer.Option(min=1, help="Hands of each look at the strength.")] = 3000,
    look_every_s: Annotated[float, typer.Option(min=0.1, help="Seconds of training between looks.")] = 2.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Seconds of training until a result against fixed opponents is reached; looking and compiling do not count."""
    from maple.bench.strength import bench_strength

    config = _config(game, preset, settings, algo, seed, minutes=minutes)
    with machine_lock(notes.print):
        found = bench_strength(config, target, against, hands, look_every_s, notes.print)
    _show(f"time to {target:+g} in {game}", found, json)
