"""Envs of the user's own, trained, stopped, resumed and evaluated."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import maple
from maple.arena.choose import evaluation_arena
from maple.core.config import WorkerConfig
from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.step import Outcome
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.runs.store import RunFolder
from maple.training.build import build_trainer
from maple.training.evaluate import bot_player, evaluate
from maple.training.session import train_run
from maple.training.warming import warm_up

WALK = "tests.games.external.envs:Walk"
NIM = "tests.games.external.envs:Nim"
FAULTY = "tests.games.external.envs:Faulty"
SMALL = ["tables=16", "ppo.horizon=512", "ppo.minibatch=128", "threads=1"]
HERE = partial(evaluation_arena, limits=WorkerConfig(count=0))  # in the tests' own process


def _mean(agent: maple.Agent, team: object, opponents: int) -> float:
    others = [bot_player(agent.game, "random", team)] * opponents  # type: ignore[arg-type]
    result = evaluate(agent.game, agent, others, 200, 7, team, envs=HERE)  # type: ignore[arg-type]
    assert result.ci95[0] <= result.figures[result.metric] <= result.ci95[1]
    return result.figures[result.metric]


def test_an_env_is_learned_and_a_run_goes_on(tmp_path: Path, team: object) -> None:
    settings = [*SMALL, "env.limit=8", "workers.count=0"]
    agent = maple.train(WALK, run="walk", runs_dir=tmp_path, steps=6_000, settings=settings)
    early = agent.steps
    agent = maple.train(WALK, run="walk", runs_dir=tmp_path, steps=16_000, settings=settings)
    assert agent.steps > early
    untrained = maple.train(WALK, run="none", runs_dir=tmp_path, steps=1, settings=settings)
    assert _mean(agent, team, 0) > _mean(untrained, team, 0)
    events = RunFolder(tmp_path / "walk").records("events.jsonl")
    assert events[-1]["steps"] == agent.steps
    assert "return" in events[-1]["game"]


def test_workers_that_die_do_not_end_a_run(tmp_path: Path) -> None:
    settings = [*SMALL, "env.fault=exit", "env.every=31", "workers.count=2"]
    agent = maple.train(FAULTY, run="faulty", runs_dir=tmp_path, steps=2_500, settings=settings)
    assert agent.steps >= 2_500
    log = (tmp_path / "faulty" / "run.log").read_text()
    assert "ended with exit code 7" in log
    last = RunFolder(tmp_path / "faulty").last_record("events.jsonl")
    deaths = log.count("ended with exit code 7")
    assert last["lost"] > 0
    assert 0 < last["worker_deaths"] <= deaths
    assert last["process_starts"] >= 2 + last["worker_deaths"]
    assert "worker 0" in log or "worker 1" in log


def test_lost_games_are_counted_by_themselves(team: Team) -> None:
    settings = [*SMALL, "env.every=5", "workers.count=0", "steps=1"]
    config = load_config(FAULTY, None, settings, entry(FAULTY).defaults)
    trainer = build_trainer(config, make_game(FAULTY, config.game), team)
    with closing(trainer.arena), closing(trainer.learner):
        how = trainer.round().games["how"]
        counters = trainer.counters
        assert (counters.games, counters.lost) == ((how != Outcome.LOST).sum(), (how == Outcome.LOST).sum())
        assert counters.lost > 0
        assert trainer.processes == (0, 0)


@pytest.mark.parametrize(("name", "deals"), [(WALK, 40), (NIM, 5)])
def test_workers_evaluate_on_the_same_games_as_one_process(team: Team, name: str, deals: int) -> None:
    game = make_game(name)
    players = [bot_player(game, "random", team)] * game.spec.seats
    found = [
        evaluate(game, players[0], players[1:], deals * game.spec.seats, 3, team, envs=envs)
        for envs in (HERE, partial(evaluation_arena, limits=WorkerConfig(count=2, spares=0)))
    ]
    assert [result.games for result in found] == [deals * game.spec.seats] * 2
    np.testing.assert_array_equal(found[0].deal_score, found[1].deal_score)
    assert found[0].figures == found[1].figures


def test_games_that_an_evaluation_loses_are_counted_and_played_again(team: Team) -> None:
    game, log = make_game(FAULTY, {"fault": "exit", "every": 13, "at": 1}), list[str]()
    limits = WorkerConfig(count=1)
    envs = partial(evaluation_arena, limits=limits, log=log.append)
    found = evaluate(game, bot_player(game, "random", team), [], 12, 4, team, envs=envs)
    assert found.games == found.hands == 12
    assert 0 < found.lost <= 12 * sum("ended with exit code 7" in line for line in log)


@pytest.mark.parametrize("name", [FAULTY, "tests.games.external.envs:Match"])
@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_kernels_are_compiled_without_playing_an_env(name: str, algo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def played(*_: object) -> None:
        raise AssertionError("an env was played")

    config = load_config(name, None, [*SMALL, f"algo={algo}", "workers.count=2"], entry(name).defaults)
    monkeypatch.setattr("maple.arena.host.Host.__init__", played)
    monkeypatch.setattr("maple.arena.processes.WorkerProcess.__init__", played)
    assert warm_up(config, ("random",)) > 0


def test_the_profile_has_an_account_of_every_worker(tmp_path: Path) -> None:
    with maple.perf.Profiler() as profiler:
        maple.train(WALK, run="seen", runs_dir=tmp_path, steps=2_000, settings=[*SMALL, "workers.count=2"])
    found = profiler.profile({})
    workers = [account for account in found["accounts"] if account["process"].startswith("worker-")]
    played = [account for account in workers if any(span["name"] == "env_step" for span in account["spans"])]
    assert len(played) >= 2  # and the one of the trial
    for account in workers:
        assert sum(span["share"] for span in account["spans"]) == pytest.approx(1.0, abs=5e-3)
        assert account["untracked_s"] <= 0.03 * account["wall_s"]
        assert min(span["self_s"] for span in account["spans"]) >= 0
    counters = found["counters"]
    assert counters["process_starts"] >= 2
    assert counters["messages"] > 0
    assert counters["bytes"] > 8 * 2_000


def test_two_seats_learn_from_self_play(tmp_path: Path, team: object) -> None:
    agent = maple.train(NIM, run="nim", runs_dir=tmp_path, steps=12_000, settings=[*SMALL, "workers.count=0"])
    assert _mean(agent, team, 1) > 0.4  # points a game against random


@pytest.mark.parametrize(
    ("game", "setting", "sentence"),
    [
        (WALK, "algo=afterstate", "does not describe its options; train it with --algo ppo"),
        (WALK, "ppo.policy=options", "does not describe its options"),
        (WALK, "opponents=safe", "there is no 'safe'"),
        ("ofc", "workers.count=2", "workers.count = 2: workers play envs of your own, and ofc is played by threads"),
    ],
)
def test_settings_that_do_not_fit_get_a_sentence(tmp_path: Path, game: str, setting: str, sentence: str) -> None:
    config = load_config(game, None, [*SMALL, setting, "steps=1"], entry(game).defaults)
    with pytest.raises(ConfigError, match=sentence):
        train_run(config, RunFolder(tmp_path / "run"), lambda _: True)
