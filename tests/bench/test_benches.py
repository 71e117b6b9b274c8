"""Every benchmark runs and gives the promised figures; how large they are is not a test's business."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from maple.bench.game import bench_game
from maple.bench.inference import bench_inference
from maple.bench.league import bench_league
from maple.bench.logging import LEVELS, bench_logging
from maple.bench.peers.sb3 import ENVS, STEPS, Sb3Side
from maple.bench.peers.sb3_dqn import Sb3DqnSide
from maple.bench.peers.sb3_ppo import Sb3PpoSide
from maple.bench.peers.sb3_recurrent import Sb3RecurrentSide
from maple.bench.profiler import bench_profiler
from maple.bench.replay import bench_replay
from maple.bench.roofline import bench_roofline
from maple.bench.strength import bench_strength
from maple.bench.suites import SUITES, run_suites
from maple.bench.train import PAIRS, MapleSide, bench_train
from maple.core.config import Config
from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.games import entry

SMALL = ["tables=48", "net.hidden=[16, 8]", "ppo.horizon=720", "ppo.minibatch=128"]
SMALL += ["afterstate.horizon=720", "afterstate.minibatch=128", "dqn.horizon=720", "dqn.warmup=100"]
SMALL += ["dqn.minibatch=64", "dqn.updates_per_step=2"]


def _config(*settings: str, minutes: float | None = None) -> Config:
    return load_config("ofc", settings=[*SMALL, "game.fantasyland=off", *settings], flags={"minutes": minutes})


@pytest.mark.parametrize("options", [False, True])
def test_game(options: bool) -> None:
    found = bench_game("ofc", {}, threads=2, tables=64, seconds=0.1, options=options, seed=0)
    assert found["decisions_per_s"] > 0
    assert (found["threads"], found["tables"]) == (2, 128)
    assert ("options_per_s" in found) == options
    assert found["bytes_per_decision"] > 100
    share = found["of_write_bandwidth"]
    assert share > 0
    assert found["bound_by"] == ("memory writes" if share > 0.5 else "computation")


@pytest.mark.parametrize(
    "settings", [["algo=afterstate"], ["algo=ppo", "ppo.policy=index", "opponents=random"], ["algo=dqn"]]
)
def test_training_alone_and_its_parts(settings: list[str]) -> None:
    found = bench_train(_config(*settings), 0.5, None)
    assert found["maple"]["steps_per_s"] > 0
    assert found["maple"]["cpu_use"] > 0
    parts = bench_roofline(_config(*settings), 1.0)
    assert set(parts["parts_us"]) == {"game", "inference", "learning"}
    assert parts["efficiency"] == pytest.approx(sum(parts["parts_us"].values()) / parts["loop_us"])


def test_whole_updates_only() -> None:
    with MapleSide(_config()) as side:
        side.slice(0.01)
        assert side.trainer.learner.memory.size == side.trainer.learner.memory.carried
        assert side.steps == side.trainer.counters.steps >= 720


def test_tables_are_measured_at_different_decisions_of_their_games() -> None:
    with MapleSide(_config()) as side:
        step = side.trainer.arena.recv()
        assert not len(step.ended.table)
        assert len(np.unique(step.keys.decision)) > 4  # of the five that a seat has in a hand without fantasyland
    with MapleSide(_config(), bounded=True) as side:
        assert not side.trainer.arena.recv().keys.decision.any()  # a run of the gate begins as any other


def test_a_league_beside_self_play() -> None:
    found = bench_league(_config("algo=ppo", "ppo.policy=index"), 0.5, "self:0.5,past:0.5", 3)
    assert found["policies_in_play"] == 3
    for side in ("league", "self_play"):
        assert found[side]["steps_per_s"] > 0
        assert len(found[side]["slices"]) == PAIRS
    assert found["ratio_ci95"][0] <= found["ratio"] <= found["ratio_ci95"][1]
    assert 0 < found["learned_share"] < 1
    assert found["played_ratio"] == pytest.approx(found["ratio"] / found["learned_share"])
    assert (found["game"], found["algo"], found["opponents"]) == ("ofc", "ppo", "self:0.5,past:0.5")


def test_a_recurrent_peer_stands_beside_it() -> None:
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    settings = ["net.core=lstm", "net.core_width=8", "net.hidden=[8, 8]", "tables=8", "workers.count=0"]
    settings += ["ppo.horizon=256", "ppo.minibatch=64", "ppo.epochs=1"]
    config = load_config("CartPole-v1", settings=settings, defaults=entry("CartPole-v1").defaults)
    found = bench_train(config, 0.5, partial(Sb3RecurrentSide, config))
    assert found["peer"]["name"].startswith("sb3-contrib RecurrentPPO")
    assert {"steps_per_s", "updates_per_s", "update_ratio"} <= set(found["peer"])
    assert {"ratio", "ratio_ci95", "updates_ratio", "updates_ratio_ci95", "maple"} <= set(found)


def test_strength_stops_at_the_target_or_at_the_budget() -> None:
    easy = bench_strength(_config(minutes=1), -50.0, "random", 30, 0.01, lambda _: None)
    assert easy["seconds_to_target"] == easy["curve"][0]["seconds"]
    assert len(easy["curve"]) == 1
    hard = bench_strength(_config(minutes=0.02), 50.0, "random", 30, 0.5, lambda _: None)
    assert hard["seconds_to_target"] is None


def test_the_peer_learns_in_whole_updates() -> None:
    with Sb3Side("ofc", {"fantasyland": "off"}, 0, steps=64) as side:
        assert side.slice(0.01) > 0
        assert side.model.num_timesteps == ENVS * 64
        assert STEPS == 2048


def test_suites_stand_beside_peers_and_limits() -> None:
    found = run_suites(["games", "inference"], _config(), 1, 1.0, lambda _: None)
    assert [row["suite"] for row in found["rows"]] == ["games", "inference"]
    for row in found["rows"]:
        assert row["per_s"] > 0
        assert row["of_limit"] == pytest.approx(row["per_s"] / row["limit_per_s"])
        assert row["ratio_ci95"][0] <= row["ratio"] <= row["ratio_ci95"][1]
    assert found["machine"]["versions"]["torch"]


def test_what_a_game_has_nothing_for_is_left_out() -> None:
    name = "tests.games.external.envs:Walk"
    told: list[str] = []
    config = load_config(name, settings=["tables=4", "workers.count=0"], defaults=entry(name).defaults)
    found = run_suites(["games"], config, 1, 0.1, told.append)
    assert found["rows"] == []
    assert "has no kernels to be played alone" in found["left_out"]["games"]
    assert told[-1].startswith("suite games is left out")


def test_arenas_and_replay_are_suites_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("ENVS", 2), ("LIMIT_S", 0.05), ("CAPACITY", 8192), ("BATCH", 64)):
        monkeypatch.setattr(f"maple.bench.suites.{name}", small)
    assert list(SUITES) == ["games", "inference", "training", "arenas", "replay"]
    found = run_suites(["arenas", "replay"], _config(), 1, 1.0, lambda _: None)
    arenas, replay = found["rows"]
    assert arenas["against"] == "Gymnasium's AsyncVectorEnv"
    for row in (arenas, replay):
        assert row["per_s"] > 0
        assert row["of_limit"] == pytest.approx(row["per_s"] / row["limit_per_s"])
        assert row["ratio"] is None or row["ratio_ci95"][0] <= row["ratio"] <= row["ratio_ci95"][1]


def test_inference_alone() -> None:
    found = bench_inference(_config(), 0.1)
    assert found["decisions_per_s"] > 0
    assert found["batch"] == 48


def test_what_the_profiler_costs_is_measured_both_ways() -> None:
    found = bench_profiler(_config(), 0.5)
    assert found["spans_per_s"] > 0
    by_count = found["span_us"] / 1e6 * found["spans_per_s"] + found["sampler_share"]
    assert found["cost_by_count"] == pytest.approx(by_count)
    assert found["ratio"] > 0


def test_every_kind_of_logging_at_every_level() -> None:
    found = bench_logging(_config(), 3.0, lambda _: None)
    kinds = {"console", "file", "tensorboard"} if find_spec("tensorboard") else {"console", "file"}
    wanted = {(kind, level) for kind in kinds for level in LEVELS} | {("none", "")}
    assert {(row["to"], row["level"]) for row in found["rows"]} == wanted
    assert found["rows"][0]["ratio"] == 1.0


def test_replay_is_measured_beside_peers() -> None:
    found = bench_replay(16384, 64, 1.5, True, 0, 1, lambda _: None)
    for side in ("prioritized", "uniform"):
        assert all(found[side][part] > 0 for part in ("sample_per_s", "update_per_s", "learn_per_s"))
    assert found["ratio_ci95"][0] <= found["ratio"] <= found["ratio_ci95"][1]
    assert set(found["peers"]) == {"torchrl", "tianshou"}
    for peer in found["peers"].values():
        assert peer.get("missing") or min(peer["sample_per_s"], peer["update_per_s"]) > 0


def test_dqn_is_measured_beside_sb3() -> None:
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    settings = ["algo=dqn", "dqn.policy=index", "tables=16", "net.hidden=[16]", "dqn.warmup=200", "dqn.horizon=64"]
    config = load_config("CartPole-v1", settings=[*settings, "workers.count=0"], defaults=entry("CartPole-v1").defaults)
    found = bench_train(config, 1.0, partial(Sb3DqnSide, config))
    assert found["updates_ratio"] > 0
    assert found["peer"]["update_ratio"] == pytest.approx(found["maple"]["update_ratio"], rel=0.05)


@pytest.mark.parametrize(
    ("env", "algorithm"), [("CartPole-v1", "PPO"), ("tests.games.external.envs:Walk", "MaskablePPO")]
)
def test_ppo_on_an_env_of_ones_own_is_measured_beside_sb3(env: str, algorithm: str) -> None:
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    settings = ["algo=ppo", "tables=16", "net.hidden=[16]", "ppo.horizon=256", "ppo.minibatch=64", "workers.count=0"]
    config = load_config(env, settings=settings, defaults=entry(env).defaults)
    found = bench_train(config, 1.0, partial(Sb3PpoSide, config))
    assert found["ratio"] > 0
    assert found["peer"]["name"].startswith(f"{algorithm}, ")
    assert found["peer"]["update_ratio"] == pytest.approx(found["maple"]["update_ratio"], rel=0.05)


def test_envs_that_sb3_cannot_play_are_refused_in_a_sentence() -> None:
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    env = "tests.games.external.envs:Nim"
    config = load_config(env, settings=["algo=ppo"], defaults=entry(env).defaults)
    with pytest.raises(ConfigError, match="plays envs with one seat and masks by action_masks"):
        Sb3PpoSide(config)
