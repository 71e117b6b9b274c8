"""The tuner: within 5 % of the whole grid on surfaces whose best is known, and on a real run of seconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from maple.bench.compare import differing
from maple.bench.train import MapleSide
from maple.bench.tune import Setting, Slices, Space, Tried, race, tune, write_preset
from maple.bench.tune_learning import improve
from maple.core.config import Config
from maple.core.errors import ConfigError
from maple.core.presets import preset_names
from maple.core.sources import load_config
from maple.games import entry

Surface = Callable[[Setting], float]


def _saturating(best_tables: float, best_threads: float) -> Surface:
    """More tables pay until the cache is full, more threads until they stand in each other's way."""

    def speed(setting: Setting) -> float:
        off = math.log2(setting.tables / best_tables)
        crowd = (setting.threads - best_threads) / best_threads
        return 1e5 * math.exp(-0.06 * off * off) * math.exp(-0.5 * crowd * crowd)

    return speed


def _grid(cores: int) -> list[Setting]:
    return [Setting(t, 2**n) for t in range(1, cores + 1) for n in range(5, 15)]


class _Machine:
    """Measures a surface with noise, on a machine that others use too; has time for 120 slices."""

    def __init__(self, speed: Surface, seed: int, noise: float = 0.02, taken: float = 0.0) -> None:
        self.speed, self.rng, self.slices = speed, np.random.default_rng(seed), 0
        self.noise, self.taken = noise, taken  # taken: the share of slices in which somebody else has a core

    def __call__(self, setting: Setting) -> float:
        self.slices += 1
        drift = 1 + 0.2 * math.sin(self.slices / 9)
        share = 0.6 if self.rng.random() < self.taken else 1.0
        return self.speed(setting) * drift * share * float(self.rng.normal(1, self.noise))

    def left(self) -> float:
        return 1 - self.slices / 120


def _silent(_: list[Tried]) -> None:
    return


@pytest.mark.parametrize("cores", [2, 8, 32])
@pytest.mark.parametrize("surface", [(90.0, 1.0), (700.0, 2.0), (2000.0, 6.0), (12000.0, 30.0)])
def test_within_five_percent_of_the_whole_grid(cores: int, surface: tuple[float, float]) -> None:
    tables, threads = surface
    speed = _saturating(tables, min(threads, cores))
    best = max(map(speed, _grid(cores)))
    for seed in range(3):
        machine = _Machine(speed, seed)
        found = race(machine, Space(cores).start(), Space(cores).grid(), machine.left, _silent)
        assert speed(found[0].setting) >= 0.95 * best
        assert machine.slices <= 120


def _levelling(setting: Setting) -> float:
    """As open-face poker on two cores: from a thousand tables on, all are about as fast."""
    return 1e5 * setting.tables / (setting.tables + 60) * (1.0 if setting.threads == 2 else 0.62)


@pytest.mark.parametrize("speed", [_levelling, _saturating(700.0, 2.0), _saturating(12000.0, 2.0)])
def test_a_noisy_machine_misleads_few_races(speed: Surface) -> None:
    """With a tenth of noise and every twentieth slice taken away, no more than one race in eight ends below 95 %."""
    space, found = Space(2), []
    for seed in range(16):
        machine = _Machine(speed, seed, noise=0.1, taken=0.05)
        found.append(speed(race(machine, space.start(), space.grid(), machine.left, _silent)[0].setting))
    best = max(map(speed, space.grid()))
    assert sum(one < 0.95 * best for one in found) <= 2
    assert np.mean(found) >= 0.975 * best


@pytest.mark.parametrize("seed", range(4))
def test_what_a_run_has_anyway_stays_unless_another_is_faster(seed: int) -> None:
    space = Space(2)

    def won(speed: Surface, untuned: Setting, noise: float) -> Setting:
        machine = _Machine(speed, seed, noise)
        return race(machine, space.start(), space.grid(), machine.left, _silent, untuned=untuned)[0].setting

    def level(setting: Setting) -> float:
        return 1e5 if setting.threads == 2 else 6e4

    assert won(level, Setting(2, 1024), noise=0.0) == Setting(2, 1024)  # nobody is faster
    assert won(level, Setting(2, 1000), noise=0.0) == Setting(2, 1000)  # also where the grid does not have it
    assert won(_saturating(1024.0, 2.0), Setting(2, 1024), noise=0.05) == Setting(2, 1024)
    assert won(_saturating(12000.0, 2.0), Setting(2, 1024), noise=0.05).tables >= 4096
    assert won(level, Setting(1, 1024), noise=0.05).threads == 2


def test_the_clear_winner_ends_the_race_early() -> None:
    slices = 0

    def measure(setting: Setting) -> float:
        nonlocal slices
        slices += 1
        return 100.0 if setting == Setting(1, 64) else 1.0

    both = [Setting(1, 64), Setting(1, 256)]
    found = race(measure, both, both, lambda: 1 - slices / 1000, _silent)
    assert found[0].setting == Setting(1, 64)
    assert slices < 20


@pytest.mark.parametrize("seed", range(4))
def test_there_is_always_somebody_in_the_race(seed: int) -> None:
    """Moments in which the machine is slow make settings drop out that had led; the others are measured on."""
    machine, looks = _Machine(_saturating(90.0, 1.0), seed, taken=0.05), count()

    def left() -> float:
        assert next(looks) < 1000
        return machine.left()

    assert race(machine, Space(8).start(), Space(8).grid(), left, _silent)[0].racing


def test_what_drops_out_ends_its_processes() -> None:
    name = "tests.games.external.envs:Walk"
    settings = ["algo=ppo", "ppo.policy=index", "net.hidden=[8]", "ppo.horizon=64", "ppo.minibatch=32"]
    slices = Slices(load_config(name, settings=settings), 0.01)
    try:
        slices(Setting(1, 4, 1))
        first = _workers()
        assert len(first) == 1  # that stands by there is none
        slices(Setting(1, 4, 2))
        assert len(_workers()) == 3
        slices.drop(Setting(1, 4, 1))
        assert not first & _workers()
        assert len(_workers()) == 2
    finally:
        slices.close()
    assert not _workers()


def _workers() -> set[psutil.Process]:
    every = psutil.Process().children(recursive=True)
    return {process for process in every if "maple.arena.worker_main" in " ".join(process.cmdline())}


def test_the_race_says_what_dropped_out_once() -> None:
    dropped: list[Setting] = []
    speeds = {Setting(1, 64): 100.0, Setting(1, 256): 1.0, Setting(1, 512): 50.0}
    race(speeds.__getitem__, list(speeds), list(speeds), lambda: 0.5, _silent, dropped.append)
    assert sorted(dropped) == [Setting(1, 256), Setting(1, 512)]


@pytest.mark.parametrize(("cores", "best_workers"), [(2, 0.0), (2, 1.0), (2, 2.0), (8, 0.0), (8, 1.0), (8, 6.0)])
def test_workers_are_found_within_five_percent_too(cores: int, best_workers: float) -> None:
    space = Space(cores, (8, 32, 128), 2, 512, with_workers=True)
    tables_alone = _saturating(64.0, float(cores))

    def speed(setting: Setting) -> float:
        off = ((setting.workers or 0) - best_workers) / cores
        return tables_alone(setting) * math.exp(-1.5 * off * off)

    best = max(map(speed, space.grid()))
    for seed in range(3):
        machine = _Machine(speed, seed)
        assert speed(race(machine, space.start(), space.grid(), machine.left, _silent)[0].setting) >= 0.95 * best


def test_actors_have_no_workers_to_tune() -> None:
    config = load_config("tests.games.external.envs:Walk", settings=["algo=ppo", "ppo.policy=index", "actors.count=1"])
    assert {setting.workers for setting in Space.of(config, 2).start()} == {None}


def test_settings_stay_within_the_machine() -> None:
    assert {(s.threads, s.tables) for s in Space(1).grid()} == {(1, 2**n) for n in range(5, 15)}
    assert all(s.threads <= 2 for s in Space(2).start())
    envs = Space(2, (2, 8), 2, 512, with_workers=True)
    assert {s.workers for s in envs.start()} == {0, 1, 2}
    assert {s.workers for s in envs.grid()} == {0, 1, 2}
    assert all((s.workers or 0) <= s.tables <= 512 and s.threads <= 2 for s in envs.grid())


def test_workers_are_tuned_for_envs() -> None:
    config = load_config("CartPole-v1", settings=["net.hidden=[16]"], defaults=entry("CartPole-v1").defaults)
    space = Space.of(config, 2)
    ticks = count()
    rows = tune(config, space, 3.0, _silent, clock=lambda: next(ticks) / 8)  # time for 24 looks at the clock
    assert {row.setting.workers for row in rows} >= {0, 2}
    best = rows[0].setting
    assert best.of(config).workers.count == best.workers
    assert best in space.grid()


def test_a_real_run_is_tuned_and_the_preset_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_DIR", str(tmp_path))
    small = ["net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=128", "game.fantasyland=off"]
    rows = tune(load_config("ofc", settings=small), Space(2), 3.0, _silent)
    assert rows[0].speeds
    assert len({row.setting for row in rows}) == len(rows)
    with pytest.raises(ConfigError, match="there is no preset 'tuned'"):
        load_config("ofc", "tuned")
    path = write_preset("ofc", "tuned", {"ppo": {"epochs": 3}, **rows[0].setting.as_dict()}, "a test")
    config = load_config("ofc", "tuned")
    assert (config.tables, config.threads) == (rows[0].setting.tables, rows[0].setting.threads)
    assert config.ppo.epochs == 3
    assert "tuned" in preset_names("ofc")
    assert "tuned" not in preset_names()
    monkeypatch.setenv("MAPLE_CONFIG_DIR", path)
    with pytest.raises(ConfigError, match="cannot write preset"):
        write_preset("ofc", "tuned", {}, "below a file")
    monkeypatch.setenv("MAPLE_CONFIG_DIR", str(tmp_path))
    Path(path).write_text("- a list\n")
    with pytest.raises(ConfigError, match="has no settings"):
        load_config("ofc", "tuned")


def test_long_updates_are_cut_to_fit_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[int, int]] = []  # decisions between updates, decisions done in a slice
    original = MapleSide.slice

    def watched(self: MapleSide, seconds: float) -> float:
        before = self.trainer.counters.steps
        speed = original(self, seconds)
        ran.append((self.trainer.horizon, self.trainer.counters.steps - before))
        return speed

    monkeypatch.setattr(MapleSide, "slice", watched)
    settings = ["algo=ppo", "net.hidden=[16]", "ppo.horizon=1000000", "ppo.minibatch=64"]
    slices = Slices(load_config("ofc", settings=settings), 0.01)
    try:
        assert slices(Setting(1, 16)) > 0
        assert slices(Setting(1, 512)) > 0
    finally:
        slices.close()
    assert ran[0][0] == 2 * 64  # the probe, before the pace is known
    assert all(horizon < 100_000 and done < 100_000 for horizon, done in ran)
    assert ran[-1][0] >= 512  # a decision of each table at least
    short = load_config("ofc", settings=["algo=ppo", "net.hidden=[16]", "ppo.horizon=96", "ppo.minibatch=64"])
    ran.clear()
    slices = Slices(short, 0.01)
    try:
        slices(Setting(1, 16))
    finally:
        slices.close()
    assert {horizon for horizon, _ in ran} == {96}  # never longer than the run's own


class _Gate:
    """Judges by the recipe alone: what is in `pays` is faster and as strong; a comparison takes ten seconds."""

    def __init__(self, pays: set[tuple[str, int]]) -> None:
        self.pays, self.now = pays, 0.0

    def __call__(self, base: Config, candidate: Config) -> dict[str, Any]:
        self.now += 10.0
        changed = differing(base, candidate)
        ((key, (_, value)),) = changed.items()
        good = (key, value) in self.pays
        return {
            "verdict": "undecided",
            "throughput_ratio_ci95": [1.1 if good else 0.9, 1.3],
            "strength_diff": 0.0,
            "thresholds": {"margin": 0.5},
        }


PAYS = {("ppo.minibatch", 128), ("ppo.minibatch", 256), ("ppo.minibatch", 512), ("ppo.epochs", 3), ("ppo.epochs", 2)}


@pytest.mark.parametrize(
    ("horizon", "seconds", "tried", "kept"),
    [
        (
            *(4096, 1000.0),
            ["minibatch=128", "epochs=3", "minibatch=256", "epochs=2", "minibatch=512", "epochs=1", "minibatch=1024"],
            {"ppo.minibatch": 512, "ppo.epochs": 2},
        ),
        (4096, 35.0, ["minibatch=128", "epochs=3", "minibatch=256"], {"ppo.minibatch": 256, "ppo.epochs": 3}),
        (4096, 1.0, ["minibatch=128", "epochs=3"], {"ppo.minibatch": 128, "ppo.epochs": 3}),
        (
            *(200, 1000.0),
            ["minibatch=128", "epochs=3", "epochs=2", "epochs=1"],  # no minibatch is larger than the horizon
            {"ppo.minibatch": 128, "ppo.epochs": 2},
        ),
        (64, 1000.0, ["epochs=3", "epochs=2", "epochs=1"], {"ppo.epochs": 2}),
    ],
)
def test_learning_goes_on_in_a_direction_that_pays(
    horizon: int, seconds: float, tried: list[str], kept: dict[str, int]
) -> None:
    settings = ["algo=ppo", "ppo.minibatch=64", "ppo.epochs=4", f"ppo.horizon={horizon}"]
    gate, told = _Gate(PAYS), list[str]()
    found = improve(load_config("ofc", settings=settings), seconds, gate, told.append, lambda: gate.now)
    assert [row["setting"] for row in found.tried] == [f"ppo.{text}" for text in tried]
    assert found.kept == kept
    assert told == [f"trying ppo.{text}" for text in tried]


def test_what_is_rejected_or_weaker_is_not_kept() -> None:
    config = load_config("ofc", settings=["algo=dqn", "dqn.updates_per_step=2"])
    good = {
        "verdict": "adopt",
        "throughput_ratio_ci95": [1.2, 1.3],
        "strength_diff": 0.0,
        "thresholds": {"margin": 0.5},
    }
    for bad in ({"verdict": "reject"}, {"throughput_ratio_ci95": [0.99, 1.3]}, {"strength_diff": -0.6}):
        found = improve(config, 0.0, lambda *_, bad=bad: good | bad, lambda _: None, lambda: 0.0)
        assert [row["setting"] for row in found.tried] == ["dqn.minibatch=512", "dqn.updates_per_step=1"]
        assert found.kept == {}
    found = improve(config, 0.0, lambda *_: good, lambda _: None, iter(range(99)).__next__)
    assert found.kept == {"dqn.minibatch": 512, "dqn.updates_per_step": 1}


def test_tables_do_not_change_how_much_is_learned_from_replay() -> None:
    config = load_config("wargame", settings=["algo=dqn"], defaults=entry("wargame").defaults)
    ratio = config.dqn.updates_per_step / 1024
    for tables in (16, 256, 1024, 4096):
        dqn = Setting(2, tables).of(config).dqn
        assert dqn.train_every is not None
        assert dqn.train_every >= tables
        assert dqn.updates_per_step / dqn.train_every == ratio
    small = config.model_copy(update={"dqn": config.dqn.model_copy(update={"capacity": 8192})})
    space = Space.of(small, 2)
    assert max(setting.tables for setting in space.grid()) <= space.most == 8192 // (2 * 2 * (small.dqn.n_step + 1))
    assert all(setting.tables <= space.most for setting in space.start())
    with MapleSide(Setting(1, 128).of(small)) as side:
        side.slice(0.0)
        assert side.trainer.guide is None  # measured as it learns later on, not as it copies
        assert side.trainer.counters.minibatches > 0
