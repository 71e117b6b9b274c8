"""`maple bench train`, `actors`, `league` and `replay`: learning end to end, where, against whom, from what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated, Any

import typer

from maple.bench.measure import machine_lock
from maple.cli.measuring import SecondsOption, bench_config, show
from maple.cli.options import AlgoOption, GameArgument, JsonOption, PresetOption, SeedOption, SetOption
from maple.cli.output import notes, print_json
from maple.cli.sitting import compile_kernels
from maple.core.config import Config
from maple.core.errors import ConfigError, nearest
from maple.games import is_external

__all__ = ["actors", "league", "replay", "train"]

PEERS = ("sb3", "sb3-recurrent", "bridge")
RECIPES: dict[str, dict[str, Any]] = {
    "same": {"preset": "sb3", "settings": ["opponents=random"]},
    "best": {"preset": "speed", "settings": ["algo=ppo", "ppo.policy=index"]},
}
# What Stable-Baselines3's DQN can do too, so that both do the same work.
SAME_DQN = [
    *("opponents=random", "dqn.policy=index", "dqn.double=false", "dqn.dueling=false", "dqn.prioritized=false"),
    *("dqn.n_step=1", "dqn.gamma=0.99"),
]


def train(
    game: GameArgument,
    peer: Annotated[str | None, typer.Option(help="Measure in the same run: sb3, sb3-recurrent, bridge.")] = None,
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
    - `maple bench train CartPole-v1 --peer sb3` (the same network and recipe), also with `--algo dqn`
    - `maple bench train CartPole-v1 --set net.core=lstm --peer sb3-recurrent` (the same network and recipe)
    - `maple bench train showdown --peer bridge` (the same tables and processes with a random policy)
    """
    from maple.bench.battle_training import bench_battle_training
    from maple.bench.train import bench_train

    if peer not in (None, *PEERS):
        raise ConfigError(f"there is no peer {peer!r}; {nearest(peer, PEERS)}")
    if recipe is not None and recipe not in RECIPES:
        raise ConfigError(f"there is no recipe {recipe!r}; {nearest(recipe, RECIPES)}")
    chosen = RECIPES[recipe] if recipe else {}
    config = _train_config(game, preset or chosen.get("preset"), chosen.get("settings", []), settings, algo, seed, peer)
    if peer == "sb3-recurrent" or (peer == "sb3" and config.algo == "dqn"):
        from maple.bench.peers.sb3_dqn import refuse_bridged

        refuse_bridged(config)
    compile_kernels(config)
    make_peer: Callable[[], AbstractContextManager[Any]] | None = None
    if peer == "sb3-recurrent":
        from maple.bench.peers.sb3_recurrent import Sb3RecurrentSide

        make_peer = partial(Sb3RecurrentSide, config)
    elif peer not in (None, "bridge") and config.algo == "dqn":
        from maple.bench.peers.sb3_dqn import Sb3DqnSide

        make_peer = partial(Sb3DqnSide, config)
    elif peer == "sb3" and is_external(config.name):
        from maple.bench.peers.sb3_ppo import Sb3PpoSide

        make_peer = partial(Sb3PpoSide, config)
    elif peer == "sb3":
        from maple.bench.peers.sb3 import Sb3Side

        make_peer = partial(Sb3Side, game, config.game, config.seed)
    with machine_lock(notes.print), notes.status(f"measuring training for {seconds:g} s a side"):
        found = bench_battle_training(config, seconds) if peer == "bridge" else bench_train(config, seconds, make_peer)
    show(f"training {game}", found, json)


def _train_config(
    game: str,
    preset: str | None,
    recipe: list[str],
    settings: list[str] | None,
    algo: str | None,
    seed: int | None,
    peer: str | None,
) -> Config:
    """What is measured; beside a peer's DQN, however that was asked for, what both can do."""
    config = bench_config(game, preset, [*recipe, *(settings or [])], algo, seed)
    if config.algo == "dqn" and peer == "sb3":
        config = bench_config(game, preset, [*recipe, *SAME_DQN, *(settings or [])], algo, seed)
    return config


def actors(
    step_cost_us: Annotated[
        float | None, typer.Option(min=0, help="What a step of the env burns [default: 0, 10, 50, 200 and 1000].")
    ] = None,
    envs: Annotated[int, typer.Option(min=1, help="Envs side by side.")] = 32,
    count: Annotated[int, typer.Option("--actors", min=1, help="Actor processes.")] = 2,
    seconds: SecondsOption = 20.0,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Where the network decides: actors beside the envs against the trainer, by the cost of an env's step.

    The same training both ways, in turns, on an env of known cost.
    - `maple bench actors --step-cost-us 50`
    - `maple bench actors --set net.hidden=[256,256]`
    """
    from maple.bench.actors import bench_actors
    from maple.bench.arena import STEP_COSTS_US

    costs = STEP_COSTS_US if step_cost_us is None else (step_cost_us,)
    with machine_lock(notes.print), notes.status("measuring actors"):
        results = bench_actors(costs, envs, count, settings or [], seconds, notes.print, seed or 0)
    if json:
        print_json({"results": results} if step_cost_us is None else results[0])
        return
    for found in results:
        show(f"envs of {found['step_cost_us']:g} µs a step", found, json)


def league(
    game: GameArgument,
    policies: Annotated[int, typer.Option(min=2, help="Policies in play, the learner among them.")] = 5,
    opponents: Annotated[str, typer.Option(help="Whom the league meets.")] = "self:0.5,past:0.5",
    seconds: SecondsOption = 30.0,
    preset: PresetOption = None,
    algo: AlgoOption = None,
    settings: SetOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """A league beside plain self-play in one run, in learned decisions a second.

    `learned_share` is the learner's part of the seats, `played_ratio` the ratio of all decisions that were played.

    - `maple bench league ofc`
    - `maple bench league wargame --policies 9 --json`
    """
    from maple.bench.league import bench_league

    config = bench_config(game, preset, settings, algo, seed)
    compile_kernels(config.model_copy(update={"opponents": opponents}))
    with machine_lock(notes.print), notes.status(f"measuring a league for {seconds:g} s a side"):
        found = bench_league(config, seconds, opponents, policies)
    show(f"a league of {game}", found, json)


def replay(
    capacity: Annotated[int, typer.Option(min=8192, help="Transitions that are remembered.")] = 1_000_000,
    batch: Annotated[int, typer.Option(min=2, help="Transitions of a minibatch.")] = 256,
    peers: Annotated[bool, typer.Option("--peers", help="Also TorchRL's and Tianshou's prioritized buffers.")] = False,
    seconds: Annotated[float, typer.Option(min=0.1, help="About how long all of it is measured.")] = 30.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of learning [default: one a core].")] = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Replay: batches drawn, weighed anew and learned from a second, prioritized beside uniform and beside peers.

    - `maple bench replay`
    - `maple bench replay --peers --json`
    """
    from maple.bench.replay import bench_replay
    from maple.core.cores import available_cores

    with machine_lock(notes.print), notes.status("measuring replay") as status:
        found = bench_replay(capacity, batch, seconds, peers, seed or 0, threads or available_cores(), status.update)
    show(f"replay of {capacity:,} transitions", found, json)
