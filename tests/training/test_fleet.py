"""Actors: the same play as in the trainer, decision for decision; and nothing that happens to one ends a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil
import pytest

from maple.core.config import Config
from maple.core.errors import ConfigError, GameError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer, restore_trainer, trainer_state
from maple.training.fleet.fleet import Fleet
from maple.training.learners import weights_of
from maple.training.loop import Round, Trainer

HERE = "tests.games.external.envs"
SMALL = [
    *("algo=ppo", "ppo.policy=index", "ppo.horizon=128", "ppo.minibatch=32", "ppo.epochs=2", "net.hidden=[16, 16]"),
    *("tables=8", "workers.count=0"),
]
ALONE = "workers.spares=0"  # where no actor dies, nobody has to stand by


def _config(env: str, *settings: str) -> Config:
    return load_config(f"{HERE}:{env}", settings=[*SMALL, *settings], flags={"steps": 10**9})


@contextmanager
def _trainer(config: Config, team: Team, log: list[str] | None = None) -> Iterator[Trainer]:
    messages = [] if log is None else log
    trainer = build_trainer(config, make_game(config.name, config.game), team, messages.append)
    try:
        yield trainer
    finally:
        trainer.arena.close()
        trainer.learner.close()


def _actors() -> list[psutil.Process]:
    return [p for p in psutil.Process().children(recursive=True) if "fleet.actor_main" in " ".join(p.cmdline())]


def _told(rounds: list[Round]) -> list[tuple[Any, ...]]:
    names = rounds[0].games.dtype.names
    games = [[done.games[name].tolist() for name in names] for done in rounds]
    return [(done.figures["policy_loss"], done.figures["entropy"], *of) for done, of in zip(rounds, games, strict=True)]


@pytest.mark.parametrize("net", [[], ["net.core=lstm", "net.core_width=8", "ppo.segment=4"]], ids=["plain", "lstm"])
def test_actors_without_lag_train_the_same_network_bit_for_bit(net: list[str], team: Team) -> None:
    """With a memory too: every seat goes on from where it was, at whichever actor it sits."""
    with _trainer(_config("Walk", "env.limit=9", *net), team) as alone:
        expected = _told([alone.round() for _ in range(4)])
        weights = weights_of(alone.learner.policy)
    with _trainer(_config("Walk", "env.limit=9", *net, "actors.count=2", "actors.lag=0", ALONE), team) as trainer:
        assert _told([trainer.round() for _ in range(4)]) == expected
        found = weights_of(trainer.learner.policy)
        assert trainer.counters.steps == alone.counters.steps
    assert all(np.array_equal(found[name], weights[name]) for name in weights)
    assert not _actors()


def test_opponents_sit_where_they_would_without_actors(team: Team) -> None:
    mix = "opponents=self:0.3,random:0.7"
    played: list[dict[tuple[int, int], list[Any]]] = []
    for extra in ((), ("actors.count=2", ALONE)):
        with _trainer(_config("Nim", "env.limit=6", mix, *extra), team) as trainer:
            streams: dict[tuple[int, int], list[Any]] = {}
            add = trainer.learner.memory.add

            def noted(
                table: Any, seat: Any, reward: Any, view: Any, choice: Any, into: Any = streams, on: Any = add
            ) -> None:
                for row, where in enumerate(zip(table.tolist(), seat.tolist(), strict=True)):
                    did = (int(choice.action[row]), float(choice.log_prob[row]))
                    into.setdefault(where, []).append((view[row].tobytes(), reward[row].tolist(), *did))
                on(table, seat, reward, view, choice)

            trainer.learner.memory.add = noted  # type: ignore[method-assign]
            trainer.learner.begin(0, 0.0)
            games, seats = trainer.collect()
            assert len(games) == len(seats) > 8
            played.append(streams)
    ours, theirs = played
    assert ours.keys() == theirs.keys()
    for where, stream in ours.items():
        both = min(len(stream), len(theirs[where]))
        assert both > 3
        assert stream[:both] == theirs[where][:both]


LEAGUE = ["opponents=self:0.3,past:0.3,hard:0.2,random:0.2", "snapshots.every_steps=200", "snapshots.keep=2"]


def test_a_league_is_met_at_actors_as_it_is_without_them(team: Team) -> None:
    settings = ("env.limit=6", *LEAGUE, "league.window=20")
    with _trainer(_config("Nim", *settings), team) as alone:
        expected = _told([alone.round() for _ in range(8)])
        weights, league = weights_of(alone.learner.policy), alone.league.state()
        seated = alone.seating.player.copy()
    assert len(league["steps"]) > 3  # some have left the pool again
    with _trainer(_config("Nim", *settings, "actors.count=1", "actors.lag=0", ALONE), team) as trainer:
        assert _told([trainer.round() for _ in range(8)]) == expected
        found = weights_of(trainer.learner.policy)
        assert np.array_equal(trainer.seating.player, seated)
        assert all(np.array_equal(array, league[name]) for name, array in trainer.league.state().items())
    assert all(np.array_equal(found[name], weights[name]) for name in weights)


def test_actors_behind_know_whom_they_met(team: Team) -> None:
    """Games that began by older shares are counted for those who played them, snapshots that have left the pool too."""
    with _trainer(_config("Nim", "env.limit=6", *LEAGUE, "actors.count=2", "actors.lag=2"), team) as trainer:
        fleet, drawn = trainer.arena, dict[int, list[int]]()
        assert isinstance(fleet, Fleet)
        for update in range(10):
            drawn[update] = trainer.league.shares.player.tolist()
            trainer.round()
            assert fleet.shares is not None
            assert fleet.shares.player.tolist() == drawn[max(0, update - 2)]
        assert trainer.league.records.games[0, 2:].any()
        fleet.settle()
        os.kill(fleet.pids[0], signal.SIGKILL)
        for _ in range(4):  # two blocks are there already; whoever takes its place knows the pool
            trainer.round()
        assert fleet.lost_actors == 1
        state, weights = trainer_state(trainer), weights_of(trainer.learner.policy)
        updates, steps = trainer.counters.updates, trainer.counters.steps
    with _trainer(_config("Nim", "env.limit=6", *LEAGUE, "actors.count=2", "actors.lag=2"), team) as again:
        restore_trainer(again, weights, state)
        again.counters.updates, again.counters.steps = updates, steps
        again.round()
        assert again.counters.lost == 8


def test_an_actor_that_dies_or_hangs_loses_its_games_alone(team: Team) -> None:
    log: list[str] = []
    config = _config("Walk", "env.limit=9", "actors.count=2", "workers.step_limit_s=1")
    with _trainer(config, team, log) as trainer:
        fleet = trainer.arena
        assert isinstance(fleet, Fleet)
        lags = [trainer.round().figures["policy_lag"] for _ in range(3)]
        assert lags == [0.0, 1.0, 1.0]
        fleet.settle()
        first, second = fleet.pids
        os.kill(first, signal.SIGKILL)
        for _ in range(3):
            trainer.round()
        assert trainer.counters.lost == 4
        assert fleet.pids[1] == second
        assert any("actor 0" in line and "died by SIGKILL" in line and "its 4 games are lost" in line for line in log)
        fleet.settle()
        os.kill(second, signal.SIGSTOP)
        for _ in range(3):
            trainer.round()
        assert trainer.counters.lost == 8
        assert any("actor 1" in line and "hung for 1 s" in line for line in log)
        assert trainer.counters.steps == 9 * 128
        assert fleet.lost_actors == 2
        state, weights = trainer_state(trainer), weights_of(trainer.learner.policy)
        updates = trainer.counters.updates
    assert not _actors()
    with _trainer(config, team) as again:
        restore_trainer(again, weights, state)
        again.counters.updates, again.counters.steps = updates, 9 * 128
        again.round()
        assert again.counters.lost == 8  # games in flight cannot be saved
        assert again.counters.steps == 10 * 128


def test_a_lost_game_repeats_with_the_seed_and_the_actions_reported(team: Team) -> None:
    log: list[str] = []
    faults = ["env.fault=exit", "env.every=47", "env.at=1"]  # table 5 fails in its fourth game
    with _trainer(_config("Faulty", *faults, "actors.count=1", "ppo.horizon=256"), team, log) as trainer:
        trainer.round()
        assert trainer.processes[0] == sum("ended with exit code 7" in line for line in log) > 0
        assert trainer.counters.steps == 256  # what was played before is kept, and no game is played twice
        assert trainer.counters.lost == 8 * trainer.processes[0]
    death = next(line for line in log if "ended with exit code 7" in line)
    seed, actions = death.split("seed=")[1].split(")")[0], death.split("last actions ")[1].split("]")[0] + "]"
    repeat = (
        f"from {HERE} import Faulty\nenv = Faulty('exit', 47, 1)\nenv.reset(seed={seed})\n"
        f"for action in {actions}:\n    env.step(action)\n"
    )
    assert subprocess.run([sys.executable, "-c", repeat], check=False).returncode == 7


def test_an_env_that_always_fails_ends_the_run(team: Team) -> None:
    config = _config("Faulty", "env.fault=raise", "env.every=1", "env.at=1", "actors.count=1", "workers.max_deaths=3")
    with _trainer(config, team) as trainer, pytest.raises(GameError, match=r"failed 3 times at table \d+ without"):
        trainer.round()
    dies = _config("Faulty", "env.fault=exit", "env.every=1", "env.at=1", "actors.count=1", "workers.max_deaths=2")
    with (
        _trainer(dies, team) as trainer,
        pytest.raises(GameError, match=r"actor 0 of .* died 2 times without finishing"),
    ):
        trainer.round()


@pytest.mark.parametrize(
    ("env", "settings", "words"),
    [
        ("Walk", ["algo=dqn", "dqn.policy=index"], "--algo dqn does not learn from; use ppo"),
        ("Nim", ["opponents=self:0.5,run:other:0.5"], "cannot be played by them; leave run: out"),
    ],
)
def test_what_actors_cannot_do_is_said(team: Team, env: str, settings: list[str], words: str) -> None:
    config = _config(env, "actors.count=2", *settings)
    with pytest.raises(ConfigError, match=words):
        build_trainer(config, make_game(config.name, config.game), team, rivals=[])


def test_native_games_have_no_actors(team: Team) -> None:
    config = load_config("ofc", settings=["actors.count=2", "tables=16"], flags={"steps": 1})
    with pytest.raises(ConfigError, match=r"ofc is played by threads: leave actors\.count at 0"):
        build_trainer(config, make_game("ofc", config.game), team)


def test_a_game_that_kills_whoever_begins_it_is_not_begun_again(team: Team) -> None:
    log: list[str] = []
    name, settings = "tests.games.external.failing_envs:Stumble", ["env.every=23", "workers.max_deaths=6"]
    config = load_config(name, settings=[*SMALL, *settings, "actors.count=1", "tables=4"], flags={"steps": 10**9})
    with _trainer(config, team, log) as trainer:
        trainer.round()
        assert trainer.processes[0] > 0
        assert trainer.counters.steps == 128
    seeds = [line.split("seed=")[1].split(")")[0] for line in log if "games are lost" in line]
    assert all(int(seed) % 23 == 0 for seed in seeds)
    assert max(seeds.count(seed) for seed in seeds) <= 2
