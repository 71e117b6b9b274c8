"""Every setting changes something: a tiny run with another value of it ends otherwise than the run without."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

import tests
from maple.core.config import known_keys
from maple.core.sources import load_config
from maple.runs.store import RunFolder
from maple.training.checkpoint import latest_checkpoint, load_checkpoint
from maple.training.networks import choose_device
from maple.training.session import train_run

SMALL = (
    *("tables=8", "threads=1", "steps=200", "net.hidden=[8, 4]", "probe_every_s=0", "log.tensorboard=false"),
    "checkpoint_every_s=1000000",  # one that came with time would tell runs apart that are alike
)
PPO = ("algo=ppo", "ppo.horizon=64", "ppo.minibatch=16")
DQN = ("algo=dqn", "dqn.horizon=64", "dqn.minibatch=8", "dqn.warmup=32", "dqn.capacity=512", "dqn.updates_per_step=2")
SEQUENCE = ("net.core=lstm", "net.core_width=4")
LEAGUE = (*PPO, "opponents=self:0.4,past:0.3,hard:0.3", "snapshots.every_steps=40", "snapshots.keep=4", "steps=500")
# Runs that are alike but for one setting: the game, and what all of them have.
SCENES: dict[str, tuple[str, tuple[str, ...]]] = {
    "afterstate": ("ofc", ("algo=afterstate", "afterstate.horizon=64", "afterstate.minibatch=16")),
    "ppo": ("ofc", PPO),
    "index": ("ofc", (*PPO, "ppo.policy=index")),
    "memory": ("ofc", (*PPO, *SEQUENCE, "ppo.segment=3")),
    "study": ("ofc", (*PPO, "ppo.study=safe", "ppo.study_steps=150", "steps=400")),
    "dqn": ("ofc", DQN),
    "dqn-long": ("ofc", (*DQN, "steps=400")),
    "dqn-often": ("ofc", (*DQN, "dqn.updates_per_step=8")),
    "dqn-index": ("ofc", (*DQN, "dqn.policy=index")),
    "dqn-memory": ("ofc", (*DQN, *SEQUENCE, "dqn.policy=index", "dqn.segment=3", "dqn.burn_in=1")),
    "dqn-study": ("ofc", (*DQN, "dqn.study=safe", "dqn.study_steps=150", "steps=400")),
    "league": ("ofc", LEAGUE),
    "recent": ("ofc", (*LEAGUE, "opponents=recent:0.8,self:0.2")),
    "hard": ("ofc", (*LEAGUE, "opponents=hard:0.8,self:0.2", "steps=1000", "league.hardness=0")),
    "gate": ("ofc", (*LEAGUE, "snapshots.every_steps=10000", "league.gate=0.01", "league.gate_steps=40")),
    "exploiters": ("ofc", (*LEAGUE, "league.exploiter_every=2", "league.exploiter_steps=64")),
    "probe": ("ofc", (*PPO, "probe_every_s=0.0001", "probe_hands=30")),
    "entities": (
        "wargame",
        (*PPO, "ppo.policy=index", "net.attention=true", "net.attention_width=8", "ppo.study=null"),
    ),
}
# By setting: the scene, and what differs in it.
OTHERWISE = {
    "game": ("ppo", "game.fantasyland=off"),
    "practice": ("ppo", "practice=[{share: 0.5, game: {fantasyland: 'off'}}]"),
    "algo": ("ppo", "algo=afterstate"),
    "seed": ("ppo", "seed=1"),
    "minutes": ("ppo", "minutes=0.00001"),
    "checkpoint_every_s": ("ppo", "checkpoint_every_s=0.0001"),
    "probe_every_s": ("probe", "probe_every_s=1000"),
    "probe_against": ("probe", "probe_against=safe"),
    "probe_hands": ("probe", "probe_hands=60"),
    "log.enabled": ("ppo", "log.enabled=false"),
    "log.file": ("ppo", "log.file=false"),
    "log.every": ("ppo", "log.every=2"),
    "log.csv": ("ppo", "log.csv=false"),
    "log.tensorboard": ("ppo", "log.tensorboard=true"),
    "steps": ("ppo", "steps=300"),
    "tables": ("ppo", "tables=9"),
    "opponents": ("ppo", "opponents=random"),
    "net.hidden": ("ppo", "net.hidden=[8, 5]"),
    "net.activation": ("index", "net.activation=tanh"),
    "net.core": ("memory", "net.core=gru"),
    "net.core_width": ("memory", "net.core_width=5"),
    "net.attention": ("entities", "net.attention=false"),
    "net.attention_width": ("entities", "net.attention_width=4"),
    "net.attention_heads": ("entities", "net.attention_heads=2"),
    "net.attention_blocks": ("entities", "net.attention_blocks=2"),
    "optimizer.learning_rate": ("ppo", "optimizer.learning_rate=0.001"),
    "optimizer.schedule": ("ppo", "optimizer.schedule=constant"),
    "optimizer.final_fraction": ("ppo", "optimizer.final_fraction=0.9"),
    "optimizer.eps": ("ppo", "optimizer.eps=0.01"),
    "ppo.study": ("study", "ppo.study=random"),
    "ppo.study_steps": ("study", "ppo.study_steps=300"),
    "ppo.study_minibatch": ("study", "ppo.study_minibatch=8"),
    "ppo.study_share": ("study", "ppo.study_share=0.5"),
    "ppo.policy": ("ppo", "ppo.policy=index"),
    "ppo.horizon": ("ppo", "ppo.horizon=80"),
    "ppo.epochs": ("ppo", "ppo.epochs=3"),
    "ppo.minibatch": ("ppo", "ppo.minibatch=32"),
    "ppo.gamma": ("ppo", "ppo.gamma=0.5"),
    "ppo.lam": ("ppo", "ppo.lam=0.1"),
    "ppo.clip": ("ppo", "ppo.clip=0.0001"),
    "ppo.entropy": ("ppo", "ppo.entropy=0.5"),
    "ppo.entropy_final": ("ppo", "ppo.entropy_final=0.5"),
    "ppo.value_weight": ("ppo", "ppo.value_weight=2"),
    "ppo.max_grad_norm": ("ppo", "ppo.max_grad_norm=0.001"),
    "ppo.normalize_advantage": ("ppo", "ppo.normalize_advantage=false"),
    "ppo.clip_value": ("ppo", "ppo.clip_value=0.001"),
    "ppo.target_kl": ("ppo", "ppo.target_kl=0.0000001"),
    "ppo.segment": ("memory", "ppo.segment=2"),
    "ppo.burn_in": ("memory", "ppo.burn_in=2"),
    "ppo.augment": ("ppo", "ppo.augment=true"),
    "afterstate.horizon": ("afterstate", "afterstate.horizon=80"),
    "afterstate.epochs": ("afterstate", "afterstate.epochs=2"),
    "afterstate.minibatch": ("afterstate", "afterstate.minibatch=32"),
    "afterstate.gamma": ("afterstate", "afterstate.gamma=0.5"),
    "afterstate.lam": ("afterstate", "afterstate.lam=0.1"),
    "afterstate.epsilon": ("afterstate", "afterstate.epsilon=0.9"),
    "afterstate.temperature": ("afterstate", "afterstate.temperature=10"),
    "afterstate.caution": ("afterstate", "afterstate.caution=0"),
    "dqn.study": ("dqn-study", "dqn.study=random"),
    "dqn.study_steps": ("dqn-study", "dqn.study_steps=300"),
    "dqn.study_share": ("dqn-study", "dqn.study_share=0.5"),
    "dqn.study_margin": ("dqn-study", "dqn.study_margin=0"),
    "dqn.policy": ("dqn", "dqn.policy=index"),
    "dqn.horizon": ("dqn", "dqn.horizon=96"),
    "dqn.train_every": ("dqn", "dqn.train_every=24"),
    "dqn.updates_per_step": ("dqn", "dqn.updates_per_step=1"),
    "dqn.minibatch": ("dqn", "dqn.minibatch=16"),
    "dqn.draw_ahead": ("dqn-often", "dqn.draw_ahead=1"),
    "dqn.capacity": ("dqn-long", "dqn.capacity=200"),
    "dqn.save_replay": ("dqn", "dqn.save_replay=false"),
    "dqn.warmup": ("dqn", "dqn.warmup=100"),
    "dqn.n_step": ("dqn", "dqn.n_step=1"),
    "dqn.segment": ("dqn-memory", "dqn.segment=2"),
    "dqn.burn_in": ("dqn-memory", "dqn.burn_in=2"),
    "dqn.gamma": ("dqn", "dqn.gamma=0.5"),
    "dqn.double": ("dqn", "dqn.double=false"),
    "dqn.dueling": ("dqn", "dqn.dueling=false"),
    "dqn.prioritized": ("dqn", "dqn.prioritized=false"),
    "dqn.alpha": ("dqn", "dqn.alpha=0.1"),
    "dqn.beta": ("dqn", "dqn.beta=0.9"),
    "dqn.tau": ("dqn", "dqn.tau=0.5"),
    "dqn.target_every": ("dqn", "dqn.target_every=5"),
    "dqn.huber": ("dqn", "dqn.huber=0.01"),
    "dqn.max_grad_norm": ("dqn", "dqn.max_grad_norm=0.001"),
    "dqn.exploration": ("dqn-index", "dqn.exploration=noisy"),
    "dqn.epsilon": ("dqn", "dqn.epsilon=0.5"),
    "dqn.epsilon_final": ("dqn", "dqn.epsilon_final=0.9"),
    "dqn.explore_fraction": ("dqn", "dqn.explore_fraction=1.0"),
    "dqn.quantiles": ("dqn-index", "dqn.quantiles=5"),
    "snapshots.every_steps": ("league", "snapshots.every_steps=100"),
    "snapshots.keep": ("league", "snapshots.keep=2"),
    "league.gate": ("gate", "league.gate=0"),
    "league.gate_steps": ("gate", "league.gate_steps=300"),
    "league.window": ("league", "league.window=1"),
    "league.hardness": ("hard", "league.hardness=40"),
    "league.half_life": ("recent", "league.half_life=0.1"),
    "league.exploiter_every": ("exploiters", "league.exploiter_every=3"),
    "league.exploiter_steps": ("exploiters", "league.exploiter_steps=200"),
}
# Settings that are not meant to change what is learned, and the test that shows what they do instead.
SHOWN_BY = {
    "name": "test_mistakes_get_one_sentence_and_code_2",
    "threads": "test_processes_and_threads_are_told_their_limits",
    "device": "test_a_gpu_is_asked_for",
    "evaluate": "test_the_evaluation_at_the_end_is_compared_with_the_best_before",
    "storage": "test_a_run_starts_on_a_new_machine_from_its_storage",
    "price_per_hour": "test_what_a_run_cost_is_told",
    "profile": "test_a_profile_and_perf_lines_are_settings_too",
    "perf_every": "test_a_profile_and_perf_lines_are_settings_too",
    "log.console": "test_progress_is_shown_unless_it_is_not_wanted",
    "log.rewards": "test_each_games_reward_is_written_with_its_parts",
    "dqn.prefetch": "test_a_thread_that_draws_ahead_changes_nothing",
    "dqn.replay": "test_views_in_a_file_are_the_same",
    "torch.amp": "test_sixteen_bits_are_used_where_they_win",
    "torch.compile": "test_compile_falls_back_and_says_why",
    "torch.pin_memory": "test_what_needs_a_gpu_says_so_once",
    **dict.fromkeys(
        [f"workers.{name}" for name in ("count", "step_limit_s", "memory_mb", "max_deaths", "spares", "in_turn")],
        "test_processes_and_threads_are_told_their_limits",
    ),
    "actors.count": "test_actors_without_lag_train_the_same_network_bit_for_bit",
    "actors.lag": "test_actors_without_lag_train_the_same_network_bit_for_bit",
}


@cache
def _fingerprint(game: str, settings: tuple[str, ...]) -> str:
    """Of all that a run leaves in its folder and its newest checkpoint, but for its settings and times."""
    saved: list[Path] = []
    with TemporaryDirectory() as folder:
        run = RunFolder(Path(folder) / "run")
        with patch("maple.training.session.SLOW_UPDATE_S", inf):  # an update that compiles is saved at once
            train_run(load_config(game, settings=[*SMALL, *settings]), run, lambda _: True, saved=saved.append)
        found = latest_checkpoint(run.checkpoints)
        assert found is not None
        left = load_checkpoint(found)
        written = sorted(path.name for path in run.path.iterdir())
        looks = [row["probe"] for row in run.records("events.jsonl")]
    content = hashlib.sha256()
    for part in (left.weights, left.state):
        for name in sorted(part):
            content.update(name.encode() + part[name].tobytes())
    counts = {name: count for name, count in left.meta["counters"].items() if not name.endswith("_s")}
    return content.hexdigest() + str((counts, len(saved), written, looks))


@pytest.mark.parametrize("key", OTHERWISE)
def test_a_setting_changes_what_is_learned(key: str) -> None:
    scene, change = OTHERWISE[key]
    assert change.startswith(key)
    game, settings = SCENES[scene]
    assert _fingerprint(game, settings) != _fingerprint(game, (*settings, change))


@pytest.mark.parametrize("scene", ["ppo", "dqn", "exploiters"])
def test_without_a_change_runs_are_alike(scene: str) -> None:
    game, settings = SCENES[scene]
    assert _fingerprint(game, settings) == _fingerprint(game, (*settings, "evaluate=false"))


class _ReachedError(Exception):
    """A setting came to where it is needed."""


@pytest.mark.parametrize(
    ("key", "value", "where"),
    [
        ("threads", 3, "maple.training.session.Team"),
        ("workers.count", 3, "maple.training.build.external_arena"),
        ("workers.step_limit_s", 3.5, "maple.training.build.external_arena"),
        ("workers.memory_mb", 345.0, "maple.training.build.external_arena"),
        ("workers.max_deaths", 35, "maple.training.build.external_arena"),
        ("workers.spares", 7, "maple.training.build.external_arena"),
        ("workers.in_turn", True, "maple.training.build.external_arena"),
    ],
)
def test_processes_and_threads_are_told_their_limits(
    key: str, value: object, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def reached(*given: object, **named: object) -> None:
        assert value in (*given, *named.values())
        raise _ReachedError

    monkeypatch.setattr(where, reached)
    game = "tests.games.external.envs:Walk" if key.startswith("workers.") else "ofc"
    settings = [*SMALL, *PPO, "ppo.policy=index", f"{key}={value}"]
    with pytest.raises(_ReachedError):
        train_run(load_config(game, settings=settings), RunFolder(tmp_path / "run"), lambda _: True)


def test_a_gpu_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    kinds = [choose_device(load_config("ofc", settings=[f"device={name}"])).type for name in ("auto", "cuda", "cpu")]
    assert kinds == ["cuda", "cuda", "cpu"]


def test_every_setting_is_shown_to_change_something() -> None:
    assert sorted([*OTHERWISE, *SHOWN_BY]) == sorted(known_keys())
    text = "\n".join(path.read_text() for path in Path(str(tests.__file__)).parent.rglob("test_*.py"))
    for key, name in SHOWN_BY.items():
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{key}: there is no {name}"
