"""Whether a run fits into memory, before it starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise

import psutil

from maple.core.config import Config, NetConfig
from maple.core.cores import available_cores
from maple.core.errors import ConfigError
from maple.core.room import container_room
from maple.core.spec import GameSpec
from maple.games.bridged import Bridged
from maple.games.contract import Game
from maple.games.external.game import ExternalGame
from maple.learn.ppo import KEPT_BYTES
from maple.training.build import AUTO_TABLES
from maple.training.fitting import least_replay
from maple.training.seating import OpponentMix

__all__ = ["Need", "check_memory", "estimate"]

PROCESS = 700 * 2**20  # Python, torch, compiled kernels
WORKER = 64 * 2**20  # a process that plays envs: Python and numpy (41 MiB with CartPole); what envs hold is not known
NODE = 520 * 2**20  # a process of the battle simulator (525 MiB with 8 battles, 816 MiB with 512, after 72 s)
BATTLE = 600 * 2**10  # each battle in it
SPARE = 0.9  # of what is free; the rest is for everything else
SAMPLE = 16  # tables that are made to see how large one is
COPIES = 2  # of everything that a checkpoint holds, while its bytes are put together


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes, by what they are for."""

    tables: int
    memory: int
    network: int
    encoding: int
    saving: int
    workers: int  # processes that play and do not decide, those that stand by among them
    process: int = PROCESS

    @property
    def total(self) -> int:
        """All of it."""
        return self.tables + self.memory + self.network + self.encoding + self.saving + self.workers + self.process


def estimate(config: Config, game: Game) -> Need:
    """What a run of this config will need."""
    spec, tables, threads = game.spec, config.tables or AUTO_TABLES, config.threads or available_cores()
    signals, view = len(spec.signals), 8 * spec.view
    values = signals if config.algo == "afterstate" else 1
    row = view + 8 * values + 4 * signals + 11 + 4 * _remembered(config)
    rows = config.horizon + 2 * tables * spec.seats
    memory, kept = rows * row, 2 * tables * spec.seats * row  # of a rollout, what still waits for its outcome
    if config.algo == "dqn":
        memory = _replay_size(config, view) + 8 * tables * spec.seats * config.dqn.n_step
        kept = memory if config.dqn.saves_replay else 0
        rows = 4 * config.dqn.draw_ahead * config.dqn.minibatch  # two groups, and what each led to or came after
    if config.by_index:
        encoding = rows * (spec.observation * spec.dtype.itemsize + spec.actions)
    else:
        width = spec.options.state_width if spec.options else 0
        encoding = rows * 2 * (width + 1) + _kept_options(config, spec)
    actors = config.actors.count
    if actors:
        memory += (config.actors.lag + 1) * rows * row  # blocks on their way
    learning = 2 if config.league.exploiter_every else 1  # an exploiter has tables, memory and network of its own
    weights, frozen = 4 * _weights(config, spec), _frozen(config, spec)
    own, battles = 3 + (config.algo == "dqn"), tables * BATTLE if isinstance(game, Bridged) else 0
    tables *= _table_size(game) + view + 64 + 4 * spec.seats * _remembered(config)
    return Need(
        tables=learning * tables,
        memory=learning * memory,
        network=weights * (learning * (own + threads) + frozen),
        encoding=learning * encoding,
        saving=COPIES * (tables + weights * (own + frozen) + kept),
        workers=_processes(config, game) * (NODE if isinstance(game, Bridged) else WORKER) + battles,
        process=PROCESS * (1 + actors + (config.workers.spares if actors else 0)),  # and those that stand by
    )


def _processes(config: Config, game: Game) -> int:
    """How many processes play without deciding, with those that stand by."""
    if isinstance(game, Bridged):
        return (config.threads or available_cores()) + config.workers.spares
    if not isinstance(game, ExternalGame) or config.actors.count:
        return 0
    count = available_cores() if config.workers.count == "auto" else config.workers.count
    return count + config.workers.spares if count else 0


def _kept_options(config: Config, spec: GameSpec) -> int:
    """Bytes of described options that PPO keeps between its epochs, at the most."""
    if config.algo != "ppo" or config.by_index or spec.options is None or config.ppo.epochs == 1 or config.ppo.augment:
        return 0
    most = spec.options.max_options
    each = 2 * (spec.options.part_width + 1) * spec.options.part_rows(1, most) + 2 * spec.options.shared_width
    return min(KEPT_BYTES, config.horizon * (each + (4 * spec.options.option_parts + 2) * most))


def _remembered(config: Config) -> int:
    """Numbers that a seat remembers."""
    return {"none": 0, "gru": 1, "lstm": 2}[config.net.core] * config.net.core_width


def _frozen(config: Config, spec: GameSpec) -> int:
    """Networks that play and do not learn: the pool, one that is on its way out, and other runs' agents."""
    mix = OpponentMix.parse(config.opponents, spec.opponents)
    kinds = 2 if config.league.exploiter_every else 1
    return len(mix.runs) + (kinds * config.snapshots.keep + 1 if mix.uses_past else 0)


def _replay_size(config: Config, view: int) -> int:
    """Bytes of a replay in memory."""
    c = config.dqn
    kept = 0 if c.replay == "file" else view + 4 * _remembered(config)
    tree = 16 * 8 / 7 if c.prioritized else 0.0
    links = 0 if config.net.plain else 28
    return int(c.capacity * (kept + 19 + tree + links))


def _weights(config: Config, spec: GameSpec) -> int:
    """Numbers of a network: a tower or two."""
    by_index, signals = config.by_index, len(spec.signals)
    inputs = spec.observation if by_index or spec.options is None else spec.options.features
    if config.algo != "dqn":
        outputs = [spec.actions if by_index else signals]
        outputs += outputs if config.algo == "ppo" else []
        if config.net.plain:
            return sum(_tower([inputs, *config.net.hidden, out]) for out in outputs)
        body, width = _body_weights(config.net, spec, inputs)
        if by_index:
            return body + sum(_tower([width, *config.net.hidden[1:], out]) for out in (spec.actions, 1))
        options = _tower([inputs, *config.net.hidden, 1]) + _tower([width, config.net.hidden[0]])
        return body + options + _tower([width, *config.net.hidden[1:], 1])
    c = config.dqn
    atoms, hidden = max(1, c.quantiles), config.net.hidden
    outputs = [atoms * (spec.actions if by_index else 1), *([atoms] if c.dueling else [])]
    noisy = 2 if c.exploration == "noisy" else 1
    if not config.net.plain:
        body, width = _body_weights(config.net, spec, inputs)
        if by_index:
            return body + noisy * sum(_tower([width, *hidden[1:], out]) for out in outputs)
        options = _tower([inputs, hidden[0]]) + _tower([width, hidden[0]]) + noisy * _tower([*hidden, outputs[0]])
        return body + options + noisy * sum(_tower([width, *hidden[1:], out]) for out in outputs[1:])
    towers = sum(_tower([*hidden, out]) for out in outputs) * noisy
    return towers + _tower([inputs, hidden[0]]) * (1 if by_index else len(outputs))


def _body_weights(net: NetConfig, spec: GameSpec, inputs: int) -> tuple[int, int]:
    """Numbers of what attends or remembers, and how many it gives on."""
    gates = {"none": 0, "gru": 3, "lstm": 4}[net.core]
    width = net.core_width if gates else net.hidden[0]
    first = _tower([inputs, net.hidden[0]])
    if net.attention:
        token = net.attention_width
        blocks = net.attention_blocks * (_tower([token, 4 * token]) + _tower([token, 2 * token, token]) + 4 * token)
        first = spec.observation * token + len(spec.entities) * token + blocks + _tower([2 * token, net.hidden[0]])
    return first + gates * width * (net.hidden[0] + width + 2), width


def _tower(widths: list[int]) -> int:
    return sum(a * b + b for a, b in pairwise(widths))


def _table_size(game: Game) -> int:
    """Bytes of one table; of a game in other processes only what Maple holds beside them."""
    if isinstance(game, ExternalGame | Bridged):
        return 8 * game.spec.view * game.spec.seats + game.spec.figures.itemsize
    sample = game.tables(SAMPLE, 0)
    return (sample.state.nbytes + sample.ended.nbytes + sample.last_view.nbytes) // SAMPLE


def check_memory(config: Config, game: Game, free: int | None = None, goes_on: bool = False) -> Need:
    """Refuse a run that does not fit, and say what would; `free` is what the machine has left, if not given.

    A run that `goes_on` keeps the settings that decide what it learns.
    """
    free = _free() if free is None else free
    need, room = estimate(config, game), int(SPARE * free)
    if need.total <= room:
        return need
    parts = {name: size for name, size in asdict(need).items() if name != "process"}
    largest = ", ".join(f"{name} {_gib(size)}" for name, size in sorted(parts.items(), key=lambda part: -part[1])[:2])
    fits = _what_still_fits(config, game, room) if goes_on else _what_fits(config, game, room)
    raise ConfigError(f"this run needs about {_gib(need.total)} ({largest}), but {_gib(room)} are free here; {fits}")


def _free() -> int:
    """Bytes that this machine, or the container that this process is in, has left."""
    machine, container = int(psutil.virtual_memory().available), container_room()
    return machine if container is None else min(machine, container)


def _fewer_actors(config: Config, game: Game, room: int) -> str | None:
    """The most actors that fit, by halves, none at the least; None where they are not what takes the room."""
    count = config.actors.count
    while count:
        count //= 2
        fewer = {
            "actors": config.actors.model_copy(update={"count": count}),
            "workers": config.workers.model_copy(update={"spares": 0}),
        }
        if estimate(config.model_copy(update=fewer), game).total <= room:
            return f"--set actors.count={count} --set workers.spares=0 would fit"
    return None


def _fewer_processes(config: Config, game: Game, room: int) -> str | None:
    """The most processes that fit, by halves; None where they are not what takes the room."""
    count = _processes(config, game) - config.workers.spares
    while count > 1:
        count //= 2
        workers = config.workers.model_copy(update={"count": count, "spares": 0})
        setting = f"--set threads={count}" if isinstance(game, Bridged) else f"--workers {count}"
        changed = {"workers": workers, **({"threads": count} if isinstance(game, Bridged) else {})}
        if estimate(config.model_copy(update=changed), game).total <= room:
            return f"{setting} --set workers.spares=0 would fit"
    return None


def _what_still_fits(config: Config, game: Game, room: int) -> str:
    """What a run that goes on may do with less of."""
    fewer = _fewer_actors(config, game, room)
    if fewer is None and not isinstance(game, Bridged):
        fewer = _fewer_processes(config, game, room)
    if fewer is not None:
        return fewer
    filed = {"dqn": config.dqn.model_copy(update={"replay": "file"})}
    if config.algo == "dqn" and estimate(config.model_copy(update=filed), game).total <= room:
        return "--set dqn.replay=file would fit"
    return "free some memory, take the run to a larger machine, or begin another --run with smaller settings"


def _what_fits(config: Config, game: Game, room: int) -> str:
    """The most processes or tables that fit, by halves, and if not even one table does a shorter horizon."""
    fewer = _fewer_actors(config, game, room) or _fewer_processes(config, game, room)
    if fewer is not None:
        return fewer
    smaller = _smaller_replay(config, game, room) if config.algo == "dqn" else None
    if smaller is not None:
        return smaller
    tables = config.tables or AUTO_TABLES
    while tables > 1:
        tables //= 2
        fewer_tables = config.model_copy(update={"tables": tables})
        if estimate(fewer_tables, game).total <= room:
            return f"--set tables={tables} would fit"
        smaller = _smaller_replay(fewer_tables, game, room) if config.algo == "dqn" else None
        if smaller is not None:
            return f"--set tables={tables} {smaller}"
    if config.algo == "dqn":
        return "free some memory, choose a smaller network, or try --set tables=1 --set dqn.replay=file"
    section, recipe = config.algo, config.recipe
    horizon = recipe.horizon
    while horizon > recipe.minibatch:
        horizon = max(recipe.minibatch, horizon // 2)
        changed = recipe.model_copy(update={"horizon": horizon})
        if estimate(config.model_copy(update={"tables": 1, section: changed}), game).total <= room:
            return f"--set tables=1 --set {section}.horizon={horizon} would fit"
    return "free some memory, or choose a smaller network"


def _smaller_replay(config: Config, game: Game, room: int) -> str | None:
    """The largest replay that fits, by halves; None where it is not what takes the room."""
    capacity, c = config.dqn.capacity, config.dqn
    while capacity // 2 >= max(c.warmup, c.minibatch, least_replay(config, game)):
        capacity //= 2
        changed = config.dqn.model_copy(update={"capacity": capacity})
        if estimate(config.model_copy(update={"dqn": changed}), game).total <= room:
            others = "--set dqn.save_replay=false or dqn.replay=file" if c.saves_replay else "--set dqn.replay=file"
            return f"--set dqn.capacity={capacity} would fit, and so may {others}"
    return None


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
