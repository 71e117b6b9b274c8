"""A run that is killed and started again ends bit for bit like one that was never stopped."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

import numpy as np
import pytest

from maple.core.config import Config
from maple.core.errors import CheckpointError, ConfigError, RunError
from maple.core.sources import load_config
from maple.runs.store import RunFolder
from maple.training import keeper
from maple.training.agent import load_agent
from maple.training.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint, milestones
from maple.training.session import Progress, train_run

SETTINGS = [
    "tables=48",
    "net.hidden=[16, 8]",
    "afterstate.horizon=720",
    "afterstate.minibatch=128",
    "ppo.horizon=720",
    "ppo.minibatch=128",
    "dqn.horizon=720",
    "dqn.minibatch=64",
    "dqn.updates_per_step=2",
    "dqn.warmup=500",
    "dqn.capacity=4000",
    "snapshots.every_steps=3000",
    "opponents=self:0.6,past:0.3,random:0.1",
    "probe_every_s=0",
]


def _end(run: str, runs_dir: Path) -> Checkpoint:
    path = latest_checkpoint(runs_dir / run / "checkpoints")
    assert path is not None
    return load_checkpoint(path)


def _assert_identical(a: Checkpoint, b: Checkpoint) -> None:
    for left, right in ((a.weights, b.weights), (a.state, b.state)):
        assert left.keys() == right.keys()
        for name in left:
            assert np.array_equal(left[name], right[name]), name
    counted = ("steps", "updates", "games", "snapshots")
    assert [a.meta["counters"][name] for name in counted] == [b.meta["counters"][name] for name in counted]


def _config(steps: int, *more: str) -> Config:
    return load_config("ofc", settings=[*SETTINGS, *more], flags={"steps": steps})


def _go_on(_: Progress) -> bool:
    return True


def _live(config: Config, folder: Path) -> None:
    """One life of a run, in a process that can be killed."""
    train_run(config, RunFolder(folder), _go_on)


@pytest.fixture(scope="module")
def lives() -> ForkServerContext:
    """Processes that begin with torch loaded: they start in a moment, and share nothing with this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["maple.training.session", "torch._dynamo"])
    return context


@pytest.mark.parametrize(
    ("algo", "more", "most"),
    [
        ("afterstate", [], 4),
        ("ppo", [], 4),
        ("dqn", [], 4),
        ("ppo", ["net.core=lstm", "net.core_width=8"], 2),
        ("dqn", ["dqn.study=safe", "dqn.study_steps=3000"], 2),
    ],
)
def test_killed_at_random_moments_it_ends_the_same(
    algo: str, more: list[str], most: int, tmp_path: Path, lives: ForkServerContext
) -> None:
    config = _config(3000 * most, f"algo={algo}", "checkpoint_every_s=0.05", *more)
    train_run(config, RunFolder(tmp_path / "whole"), _go_on)
    dice, kills = random.Random(algo), 0
    checkpoints = tmp_path / "killed" / "checkpoints"
    while True:
        before = latest_checkpoint(checkpoints)
        child = lives.Process(target=_live, args=(config, tmp_path / "killed"))
        child.start()
        while child.is_alive() and latest_checkpoint(checkpoints) == before and kills < most:
            time.sleep(0.01)
        if kills < most:
            time.sleep(dice.random() * 0.3)
            if child.is_alive():
                child.kill()
                child.join()
                kills += 1
                continue
        child.join()
        assert child.exitcode == 0
        break
    assert kills >= 1
    _assert_identical(_end("whole", tmp_path), _end("killed", tmp_path))


def test_stopping_early_and_resuming_with_more_steps(tmp_path: Path) -> None:
    whole, halves = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "halves")
    constant = "optimizer.schedule=constant"
    train_run(_config(6000, constant), whole, _go_on)
    train_run(_config(3000, constant), halves, _go_on)
    train_run(_config(6000, constant), halves, _go_on)
    _assert_identical(_end("whole", tmp_path), _end("halves", tmp_path))


@pytest.mark.parametrize(("algo", "looks"), [("afterstate", 35), ("ppo", 35), ("dqn", 120)])
def test_left_in_the_middle_of_an_update_it_ends_the_same(algo: str, looks: int, tmp_path: Path) -> None:
    """Somebody cannot wait: half a rollout is left behind, and what is saved is whole."""
    config = _config(6000, f"algo={algo}", "checkpoint_every_s=0.0001")
    whole, hurried = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "hurried")
    train_run(config, whole, _go_on)
    seen: list[Progress] = []
    left = [looks]

    def tell(progress: Progress) -> bool:
        seen.append(progress)
        return left[0] > 0

    def hurry() -> bool:
        left[0] -= 1
        return left[0] <= 0

    reached = train_run(config, hurried, tell, hurry=hurry)
    assert 0.0 < reached.progress < 1.0
    assert _end("hurried", tmp_path).meta["counters"]["steps"] == reached.steps
    train_run(config, hurried, _go_on)
    _assert_identical(_end("whole", tmp_path), _end("hurried", tmp_path))


def test_actors_that_play_are_left_in_a_hurry(tmp_path: Path) -> None:
    settings = ["algo=ppo", "ppo.policy=index", "tables=8", "net.hidden=[8]", "ppo.horizon=64", "ppo.minibatch=32"]
    settings += [
        "probe_every_s=0",
        "actors.count=2",
        "actors.lag=0",
        "workers.spares=0",
    ]  # without a lag, every block is waited for
    config = load_config("tests.games.external.envs:Walk", settings=settings, flags={"steps": 640})
    run, stop = RunFolder(tmp_path / "run"), [False]

    def saved(_: Path) -> None:
        stop[0] = True

    every = config.model_copy(update={"checkpoint_every_s": 0.0001})
    asked: list[Progress] = []
    last = train_run(every, run, lambda now: asked.append(now) is None, saved=saved, hurry=lambda: stop[0])
    assert [now.updates for now in asked] == [1] == [last.updates]
    assert train_run(config, run, _go_on).progress == 1.0


def test_an_update_that_takes_long_is_saved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop in the next one might not wait for its end."""
    monkeypatch.setattr("maple.training.session.SLOW_UPDATE_S", 0.0)
    monkeypatch.setattr("maple.training.session.SAVING_APART", 0.0)
    saved: list[Path] = []
    last = train_run(_config(3000), RunFolder(tmp_path / "run"), _go_on, saved=saved.append)
    assert len(saved) == last.updates > 2


def test_a_look_at_the_strength_is_left_in_a_hurry(tmp_path: Path) -> None:
    run, stop = RunFolder(tmp_path / "run"), [False]

    def hurry() -> bool:
        return stop[0]

    def saved(_: Path) -> None:
        stop[0] = True  # the look comes after it

    settings = [*SETTINGS[:-1], "checkpoint_every_s=0.0001", "probe_every_s=0.0001", "probe_hands=6"]
    config = load_config("ofc", settings=settings, flags={"steps": 6000})
    last = train_run(config, run, lambda _: not stop[0], saved=saved, hurry=hurry)
    assert last.probe == {}
    assert _end("run", tmp_path).meta["counters"]["steps"] == last.steps


def test_a_run_goes_on_only_with_its_own_settings(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    train_run(_config(720), run, _go_on)
    with pytest.raises(ConfigError, match=r"afterstate\.lam"):
        train_run(_config(1440, "afterstate.lam=0.1"), run, _go_on)


def test_a_run_in_use_is_left_alone(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    with run.locked(), pytest.raises(RunError, match="in use"):
        train_run(_config(720), run, _go_on)
    assert not (run.path / "config.json").exists()


def _two_checkpoints(folder: Path) -> tuple[RunFolder, Path, Path]:
    run = RunFolder(folder / "run")
    train_run(_config(720), run, _go_on)
    train_run(_config(2000), run, _go_on)
    before, newest = sorted(path for path in run.checkpoints.iterdir() if path.name.isdigit())
    return run, before, newest


@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(cut: bool, tmp_path: Path) -> None:
    run, before, newest = _two_checkpoints(tmp_path)
    content = (newest / "state.safetensors").read_bytes()
    (newest / "state.safetensors").write_bytes(content[:-10] if cut else content[:-1] + b"\x07")
    told: list[str] = []
    end = train_run(_config(4000), run, _go_on, warn=told.append)
    assert len(told) == 1
    assert "is damaged" in told[0]
    assert f"goes on from {before.name}" in told[0]
    assert (run.checkpoints / f"{newest.name}.damaged").is_dir()
    assert end.steps >= 4000
    whole = RunFolder(tmp_path / "whole")
    train_run(_config(720), whole, _go_on)
    train_run(_config(4000), whole, _go_on)
    _assert_identical(_end("whole", tmp_path), _end("run", tmp_path))


def test_what_a_kill_in_the_middle_of_saving_left_is_cleared_away(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    constant = "optimizer.schedule=constant"
    train_run(_config(720, constant, "probe_every_s=0.001", "probe_hands=30"), run, _go_on)
    best = (run.checkpoints / "best" / "checkpoint.json").read_text()
    (run.checkpoints / "best").rename(run.checkpoints / ".best.old")  # killed between the two renames of a new best
    for name in (".best.part", ".000000009999.part", "milestones/.000000000500.part"):
        (run.checkpoints / name).mkdir(parents=True)
        (run.checkpoints / name / "weights.safetensors").write_bytes(b"half")
    (run.checkpoints / ".000000000720.old").mkdir()
    train_run(_config(1440, constant, "probe_every_s=0"), run, _go_on)
    assert (run.checkpoints / "best" / "checkpoint.json").read_text() == best
    assert list(run.checkpoints.rglob(".*")) == []


def test_where_all_checkpoints_are_damaged_nothing_is_touched(tmp_path: Path) -> None:
    run, before, newest = _two_checkpoints(tmp_path)
    for path in (before, newest):
        (path / "state.safetensors").write_bytes(b"")
    there = sorted(run.checkpoints.rglob("*"))
    with pytest.raises(CheckpointError, match="is damaged"):
        train_run(_config(4000), run, _go_on)
    assert sorted(run.checkpoints.rglob("*")) == there
    shutil.rmtree(before)
    with pytest.raises(CheckpointError, match=r"start the run anew under another name$"):
        train_run(_config(4000), run, _go_on)
    shutil.copytree(newest, run.checkpoints / "best")
    with pytest.raises(CheckpointError, match=rf"anew under another name, with --from {run.name}@best$"):
        train_run(_config(4000), run, _go_on)


def test_a_new_run_can_begin_with_anothers_weights(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path / "first"), RunFolder(tmp_path / "second")
    train_run(_config(1500), first, _go_on)
    donor = _end("first", tmp_path)
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return False

    lowest = "optimizer.learning_rate=1e-12"
    train_run(_config(5000, lowest), second, stop, start_from=latest_checkpoint(first.checkpoints))
    begun = _end("second", tmp_path)
    assert begun.meta["counters"]["updates"] == 1
    assert all(np.allclose(begun.weights[name], donor.weights[name], atol=1e-6) for name in donor.weights)
    other = _config(5000, "net.hidden=[8]")
    with pytest.raises(CheckpointError, match="another network"):
        train_run(other, RunFolder(tmp_path / "third"), _go_on, start_from=latest_checkpoint(first.checkpoints))


def test_milestones_and_the_best_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "MILESTONE_STEPS", 1500)
    monkeypatch.setattr(keeper, "MILESTONE_APART_S", 0.0)
    run = RunFolder(tmp_path / "run")
    settings = ["checkpoint_every_s=0.0001", "probe_every_s=0.0001", "probe_hands=30"]
    probes: list[float] = []

    def tell(progress: Progress) -> bool:
        probes.append(progress.probe.get("points_per_hand", -np.inf))
        return True

    config = load_config("ofc", settings=[*SETTINGS[:-1], *settings], flags={"steps": 6000})
    train_run(config, run, tell)
    kept = [int(path.name) for path in milestones(run.checkpoints)]
    assert len(kept) >= 3
    assert all(step // 1500 > before // 1500 for before, step in zip([0, *kept], kept, strict=False))
    assert not (milestones(run.checkpoints)[0] / "state.safetensors").exists()
    best = load_checkpoint(run.checkpoints / "best", with_state=False)
    assert best.meta["result"] >= max(probes)
    assert load_agent(f"{run.path}@best").steps == best.meta["step"]
    assert load_agent(f"{run.path}@{kept[0]}").steps == kept[0]
    with pytest.raises(RunError, match="has no checkpoint '17'"):
        load_agent(f"{run.path}@17")


def test_a_replay_that_was_not_saved_is_filled_anew(tmp_path: Path) -> None:
    run, said = RunFolder(tmp_path / "run"), list[str]()
    for steps in (2000, 4000):
        config = load_config("ofc", settings=[*SETTINGS, "algo=dqn", "dqn.save_replay=false"], flags={"steps": steps})
        last = train_run(config, run, _go_on, warn=said.append)
    assert said == ["this run's replay was not saved (dqn.save_replay is off): it is filled anew"]
    assert last.figures["remembered"] < 2500
    assert last.figures["minibatches"] > 0
    assert "memory/view" not in load_checkpoint(latest_checkpoint(run.checkpoints)).state  # type: ignore[arg-type]
