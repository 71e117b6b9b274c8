"""What a run tells while it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.games import entry
from maple.runs.store import RunFolder
from maple.training import session
from maple.training.session import RECENT_S, Progress, Window, train_run


def test_speed_counts_what_this_process_did_in_the_last_seconds() -> None:
    now = [100.0]
    window = Window(lambda: now[0])
    nothing = np.zeros(0), np.zeros(0, np.int64)
    window.add(5_000_000, *nothing)  # where a resumed run stands
    assert window.speed() == 0.0
    for second in range(1, 41):
        now[0] += 1.0
        window.add(5_000_000 + 100 * second if second <= 20 else 5_002_000 + 300 * (second - 20), *nothing)
        if second == 20:
            assert window.speed() == pytest.approx(100.0)
    assert window.speed() == pytest.approx(300.0)
    assert len(window.games()[0]) == 0
    assert now[0] - 100.0 > 2 * RECENT_S


def test_each_games_reward_is_written_with_its_parts(tmp_path: Path) -> None:
    settings = ["algo=ppo", "tables=32", "net.hidden=[16]", "ppo.horizon=512", "ppo.minibatch=128", "threads=1"]
    settings += ["game.points=200", "game.rounds=2", "game.rewards.vp=0.1", "probe_every_s=0", "log.rewards=true"]
    run, told = RunFolder(tmp_path / "run"), list[Progress]()
    config = load_config("wargame", settings=settings, flags={"steps": 1500})
    train_run(config, run, lambda progress: told.append(progress) is None)
    rows = run.records("rewards.jsonl")
    parts = {"reward_win", "reward_margin", "reward_vp", "reward_damage", "reward_hold", "reward_luck"}
    assert len(rows) > 5
    for row in rows:
        assert row.keys() == {"steps", "seat", "reward", *parts}
        assert row["reward"] == pytest.approx(sum(row[name] for name in parts))
        assert abs(row["reward_win"]) in (0.0, 1.0)
    assert np.mean([row["reward_vp"] for row in rows]) == pytest.approx(told[-1].game["reward_vp"])


def test_a_reward_without_parts_gets_a_sentence(tmp_path: Path) -> None:
    config = load_config("ofc", settings=["log.rewards=true"], flags={"steps": 1})
    with pytest.raises(ConfigError, match="the reward of ofc is not made of parts"):
        train_run(config, RunFolder(tmp_path / "run"), lambda _: True)
    assert not (tmp_path / "run").exists()


WALK = "tests.games.external.envs:Walk"
FEW = ["tables=8", "net.hidden=[8]", "ppo.horizon=64", "ppo.minibatch=32", "threads=1", "workers.count=0"]


def _look_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RunFolder, int, list[str]]:
    """A run of an env that is looked at after every update, if nothing keeps it from that; how often it was."""
    looks, told, evaluate = list[int](), list[str](), session.evaluate

    def counted(game: Any, agent: Any, others: Any, hands: int, *rest: Any) -> Any:
        looks.append(hands)
        return evaluate(game, agent, others, hands, *rest)

    monkeypatch.setattr(session, "evaluate", counted)
    config = load_config(WALK, settings=[*FEW, "probe_every_s=0.0001"], defaults=entry(WALK).defaults)
    run = RunFolder(tmp_path / "run")
    train_run(config.model_copy(update={"steps": 200}), run, lambda _: True, warn=told.append)
    assert set(looks) == {32}
    return run, len(looks), told


def test_an_env_is_looked_at_and_its_best_agent_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert entry(WALK).defaults["probe_every_s"] > 0
    run, looks, told = _look_often(tmp_path, monkeypatch)
    assert (looks, told) == (4, [])
    last = run.records("events.jsonl")[-1]
    best = RunFolder(run.checkpoints / "best").read_json("checkpoint.json")
    assert best["result"] >= last["probe"]["return"]


def test_slow_looks_are_far_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SLOW_LOOK_S", 0.0)
    monkeypatch.setattr(session, "LOOKS_APART", 1e9)
    assert _look_often(tmp_path, monkeypatch)[1:] == (1, [])


def test_a_look_that_takes_too_long_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LONGEST_LOOK_S", 0.0)
    run, looks, told = _look_often(tmp_path, monkeypatch)
    assert looks == 4
    assert told == [
        "a look at the strength takes more than 0.0001 s and is left; try fewer games, probe_hands; training goes on"
    ]
    assert not (run.checkpoints / "best").exists()
