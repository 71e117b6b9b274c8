"""Profiles of real runs: every thread and process has an account that adds up, and says how long it waited for whom."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from maple.core.sources import load_config
from maple.games import entry
from maple.games.showdown.runtime import NodeError, find_node, installed_modules
from maple.perf import Profiler, ShortLine
from maple.runs.store import RunFolder
from maple.training.session import Progress, train_run

WALK = "tests.games.external.envs:Walk"
SMALL = ["tables=16", "net.hidden=[16]", "threads=2", "probe_every_s=0"]
PPO = [*SMALL, "algo=ppo", "ppo.horizon=512", "ppo.minibatch=128"]


def _profiled(game: str, folder: Path, steps: int, settings: list[str]) -> dict[str, dict[str, Any]]:
    """The accounts of a run by process and thread; each has been found to add up."""
    config = load_config(game, settings=settings, defaults=entry(game).defaults, flags={"steps": steps})
    with Profiler() as profiler:
        train_run(config, RunFolder(folder / "seen"), lambda _: True)
    accounts = {}
    for account in profiler.profile({})["accounts"]:
        name = f"{account['process'].split('-')[0]}/{account['name']}"
        assert sum(span["share"] for span in account["spans"]) == pytest.approx(1.0, abs=5e-3), name
        assert min(span["self_s"] for span in account["spans"]) >= 0, name
        assert account["untracked_s"] <= 0.03 * account["wall_s"], name
        accounts[name] = account
    assert {"main/MainThread", "main/maple-team-1", "main/maple-sampler"} <= accounts.keys()
    assert accounts["main/MainThread"]["idle_s"] > 0
    return accounts


def _waited(account: dict[str, Any], within: str) -> float:
    return sum(row["self_s"] for row in account["tree"] if row["path"][-2:] == [within, "idle"])


def test_the_trainer_waits_for_workers(tmp_path: Path) -> None:
    accounts = _profiled(WALK, tmp_path, 4_000, [*PPO, "workers.count=2"])
    assert {"worker/MainThread", "main/maple-keeper"} <= accounts.keys()
    main, worker = accounts["main/MainThread"], accounts["worker/MainThread"]
    assert _waited(main, "env_observe") > 0
    assert _waited(main, "env_reset") > 0  # until they have started
    assert worker["idle_s"] > 0
    assert "env_close" in {span["name"] for span in main["spans"]}


def test_the_trainer_waits_for_actors(tmp_path: Path) -> None:
    accounts = _profiled(WALK, tmp_path, 2_000, [*PPO, "actors.count=1"])
    assert _waited(accounts["main/MainThread"], "env_observe") > 0
    assert accounts["actor/MainThread"]["idle_s"] > 0


def test_the_short_line_counts_waiting_for_actors_as_the_envs(tmp_path: Path) -> None:
    settings = [*PPO, "actors.count=1", "workers.spares=0"]
    config = load_config(WALK, settings=settings, defaults=entry(WALK).defaults, flags={"steps": 2_000})
    told: list[str] = []
    with Profiler() as profiler:
        line = ShortLine(profiler.recorder, 0.0, time.monotonic)

        def tell(now: Progress) -> bool:
            told.extend(filter(None, [line.due(now.steps, now.games, now.minibatches)]))
            return True

        train_run(config, RunFolder(tmp_path / "seen"), tell)
    assert len(told) >= 2
    for text in told:
        figures = dict(part.split("=") for part in text.split() if "=" in part)
        assert float(figures["env_step_ms"]) > 0
        assert float(figures["train_bwd_ms"]) > 0
        assert float(figures["action_ms"]) == 0  # actors decide


def test_the_thread_that_draws_ahead_waits_for_the_trainer(tmp_path: Path) -> None:
    dqn = ["algo=dqn", "dqn.horizon=512", "dqn.minibatch=64", "dqn.warmup=200", "dqn.prefetch=true", "workers.count=0"]
    accounts = _profiled(WALK, tmp_path, 12_000, [*SMALL, *dqn])
    ahead = accounts["main/maple-prefetch"]
    assert _waited(ahead, "prefetch") == ahead["idle_s"] > 0
    assert {"replay_sample", "learn_encode", "prefetch"} <= {span["name"] for span in ahead["spans"]}


def test_the_trainer_waits_for_battles(tmp_path: Path) -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))
    settings = [*PPO[1:], "tables=4", "ppo.policy=index", "ppo.horizon=64", "ppo.minibatch=32", "game.max_turns=12"]
    accounts = _profiled("showdown", tmp_path, 128, settings)
    assert _waited(accounts["main/MainThread"], "env_observe") > 0
    assert "env_close" in {span["name"] for span in accounts["main/MainThread"]["spans"]}
