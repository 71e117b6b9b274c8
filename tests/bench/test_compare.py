"""The gate from end to end on a game small enough to decide in seconds; its processes stand still when they should."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from maple.bench.compare import BASE, CANDIDATE, Comparison, Plan, Sides, bisect, compare, differing, two_sides
from maple.bench.gate import Limits
from maple.bench.side import SideProcess, _Side
from maple.cli.compare import side_config
from maple.core.config import Config
from maple.core.errors import ConfigError, MapleError
from maple.games import make_game

SMALL = ["tables=48", "threads=1", "net.hidden=[16, 8]", "game.fantasyland=off"]
SMALL += ["afterstate.horizon=480", "afterstate.minibatch=64"]
SLOW = "tables=2"  # the same recipe, but a round of play, which takes about as long, makes 2 decisions and not 48
PLAN = Plan(Limits(1.10, 1.0, 8), seconds=1.2, pairs=5, hands=600, look_hands=60, opponents=("random",))


def _config(text: str) -> Config:
    return side_config("ofc", text, SMALL)


@pytest.fixture(scope="module")
def sides() -> Iterator[Sides]:
    with two_sides() as processes:
        yield processes


def _silent(_: str) -> None:
    return


def test_the_same_config_against_itself_is_not_adopted(sides: Sides) -> None:
    few_seeds = replace(PLAN, limits=replace(PLAN.limits, seeds=3))
    found = compare(sides, _config("default"), _config("default"), few_seeds, _silent)
    assert found.verdict.verdict != "adopt"
    content = found.as_json()
    assert content["throughput_ratio_ci95"][0] <= content["throughput_ratio"] <= content["throughput_ratio_ci95"][1]
    assert content["verdict"] != "reject" or "throughput failed" in content["reason"]


def test_faster_but_random_is_rejected(sides: Sides) -> None:
    base = _config("afterstate.epochs=8 afterstate.minibatch=32")
    lazy = _config("afterstate.epochs=1 afterstate.minibatch=32 optimizer.learning_rate=1.0e-12")
    found = compare(sides, base, lazy, PLAN, _silent)
    assert found.verdict.verdict == "reject", found.as_json()
    assert "strength" in found.verdict.reason
    content = found.as_json()
    assert content["strength_diff"] < -PLAN.limits.margin
    assert content["strength_diff_ci95"][1] < 0
    assert content["figures"]["points_per_hand against random"]["diff"] < 0
    reward = content["figures"]["reward against random"]
    assert reward["ci95"][0] < reward["diff"] < 0
    assert reward["diff"] == pytest.approx(reward["candidate"] - reward["base"])


def test_a_real_speed_up_is_adopted(sides: Sides) -> None:
    base, candidate = _config(SLOW), _config("default")
    assert differing(base, candidate) == {"tables": (2, 48)}
    found = compare(sides, base, candidate, PLAN, _silent)
    assert found.verdict.verdict == "adopt", found.as_json()
    assert found.verdict.exit_code == 0


def test_a_side_stands_still_while_it_is_not_asked(sides: Sides) -> None:
    side, config = sides[BASE], _config("default").model_copy(update={"minutes": 1.0})
    side.ask("begin", config=config.model_dump())
    first = side.ask("train", seconds=0.05)
    assert first["steps"] > 0
    process, states = psutil.Process(side.process.pid), []
    for _ in range(20):
        time.sleep(0.02)
        states.append(process.status())
    assert set(states) == {psutil.STATUS_SLEEPING}
    assert side.ask("train", seconds=0.05)["total_steps"] > first["total_steps"]


def test_a_side_ends_the_workers_of_every_run() -> None:
    settings = ["tables=4", "net.hidden=[8]", "ppo.horizon=64", "ppo.minibatch=32", "workers.count=1"]
    config = side_config("tests.games.external.envs:Walk", "default", settings).model_copy(update={"minutes": 1.0})
    gone: list[psutil.Process] = []
    with SideProcess(BASE) as side:
        for _ in range(2):
            side.ask("begin", config=config.model_dump())
            side.ask("train", seconds=0.01)
            assert not [process for process in gone if process.is_running()]
            gone = psutil.Process(side.process.pid).children(recursive=True)
            assert gone
    _, alive = psutil.wait_procs(gone, timeout=30)
    assert not alive


def test_a_side_that_dies_is_told_of() -> None:
    with SideProcess(CANDIDATE) as side:
        side.process.kill()
        side.process.wait()
        with pytest.raises(MapleError, match="the process of the candidate ended with code -9"):
            side.ask("train", seconds=0.1)


def test_bisecting_takes_back_what_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    base, candidate = _config("default"), _config("afterstate.epochs=2 optimizer.learning_rate=1.0e-12")

    def judge(_sides: Sides, _base: Config, tried: Config, plan: Plan, _tell: object) -> Comparison:
        found = Comparison(plan, "points_per_hand")
        bad = tried.optimizer.learning_rate < 1e-9
        found.verdict = type(found.verdict)("reject" if bad else "adopt", "")
        return found

    monkeypatch.setattr("maple.bench.compare.compare", judge)
    found = bisect({}, base, candidate, PLAN, _silent)
    assert found["take_back"] == "optimizer.learning_rate"
    assert [row["setting"] for row in found["tried"]] == ["afterstate.epochs", "optimizer.learning_rate"]


def test_bisecting_tries_what_is_read_and_can_stand_alone(sides: Sides) -> None:
    wide = "afterstate.horizon=960 afterstate.minibatch=960 optimizer.learning_rate=1.0e-12"
    candidate = _config(f"{wide} ppo.epochs=9 seed=3 probe_hands=7 log.csv=false")
    plan = replace(PLAN, limits=replace(PLAN.limits, seeds=3), seconds=0.4, pairs=3, hands=60, look_hands=30)
    told: list[str] = []
    found = bisect(sides, _config("default"), candidate, plan, told.append)
    assert [row["setting"] for row in found["tried"]] == ["afterstate.minibatch", "optimizer.learning_rate"]
    (skipped,) = found["skipped"]
    assert skipped["setting"] == "afterstate.horizon"
    assert "minibatch 960 is larger than horizon 480" in skipped["reason"]
    assert any("afterstate.horizon = 960 alone is impossible" in text for text in told)
    helped = {row["setting"] for row in found["tried"] if row["verdict"] != "reject"}
    assert found["take_back"] in (helped or {None})


def test_the_only_setting_is_to_blame() -> None:
    found = bisect({}, _config("default"), _config("afterstate.epochs=5 dqn.minibatch=7"), PLAN, _silent)
    assert found == {"take_back": "afterstate.epochs", "tried": [], "skipped": []}


def test_a_side_that_cannot_be_trained_is_the_users_mistake(sides: Sides) -> None:
    config = side_config("tests.games.external.envs:Walk", "algo=afterstate", None)
    with pytest.raises(ConfigError, match=r"the base cannot be trained: .* does not describe its options"):
        sides[BASE].ask("begin", config=config.model_dump())


def test_where_nobody_sits_opposite_the_whole_difference_counts(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maple.arena.choose.WorkerArena", None)  # matches are played as the config says: without any
    small = ["tables=8", "net.hidden=[8]", "ppo.horizon=64", "ppo.minibatch=32", "workers.count=0", "threads=1"]
    configs = [side_config("tests.games.external.envs:Walk", f"ppo.epochs={epochs}", small) for epochs in (2, 1)]
    spec = make_game(configs[0].name, configs[0].game).spec
    plan = Plan(Limits.of(spec.metric, seeds=2), seconds=0.3, pairs=3, hands=40, look_hands=20, opponents=("random",))
    found = compare(sides, *configs, plan, _silent).as_json()
    figure = found["figures"]["return"]
    assert found["strength_diff"] == pytest.approx(figure["diff"])
    assert found["against"] == {}
    assert found["thresholds"]["margin"] == pytest.approx(0.02 * abs(figure["base"]))
    assert found["thresholds"]["margin_of_base"] == 0.02


def test_a_side_that_never_got_there_counts_as_slower() -> None:
    found = Comparison(PLAN, "points_per_hand")
    assert found.as_json()["time_to_strength"]["ratio"] is None
    found.curves[BASE] = [[(1.0, 0.0), (2.0, 5.0)], [(1.0, 0.0), (2.0, 5.0)]]
    found.curves[CANDIDATE] = [[(1.0, 4.5), (2.5, 6.0)], [(1.0, 0.0), (4.0, 3.0)]]
    told = found.as_json()["time_to_strength"]
    assert told["base_s"] == [2.0, 2.0]
    assert told["candidate_s"] == [1.0, None]
    assert told["reached"] == {BASE: 2, CANDIDATE: 1, "seeds": 2}
    assert told["ratio"] == (2 / 1 + 2 / 4) / 2
    assert told["at_most"]
    assert told["ci95"][0] is None
    assert told["ci95"][1] > told["ratio"]
    found.curves[CANDIDATE][1].append((5.0, 4.0))
    whole = found.as_json()["time_to_strength"]
    assert not whole["at_most"]
    assert whole["ci95"][0] is not None


def test_the_same_game_is_asked_for(sides: Sides) -> None:
    with pytest.raises(ConfigError, match="same game"):
        compare(sides, _config("default"), _config("game.seats=2"), PLAN, _silent)


def test_sides_are_presets_files_and_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    file.write_text("ppo:\n  epochs: 7\n")
    assert side_config("ofc", "speed", None).ppo.epochs == 2
    assert side_config("ofc", f"{file} seed=3", ["tables=8"]).ppo.epochs == 7
    assert side_config("ofc", "ppo.epochs=5 threads=2", None).threads == 2
    assert differing(_config("default"), _config("seed=4 ppo.epochs=9")) == {"ppo.epochs": (2, 9), "seed": (0, 4)}
    for wrong in ("speed balance", "", "no-such-preset", str(tmp_path / "missing.yml")):
        with pytest.raises(ConfigError):
            side_config("ofc", wrong, None)


def test_the_actors_of_a_side_stand_still_too() -> None:
    settings = ["tables=4", "net.hidden=[8]", "ppo.horizon=8192", "ppo.minibatch=512", "actors.count=1"]
    config = side_config("tests.games.external.envs:Walk", "default", [*settings, "workers.spares=0", "ppo.epochs=1"])
    with SideProcess(BASE) as side:
        side.ask("begin", config=config.model_copy(update={"minutes": 1.0}).model_dump())
        side.ask("train", seconds=0.05)
        actors = [p for p in psutil.Process(side.process.pid).children() if "actor_main" in " ".join(p.cmdline())]
        before = [sum(p.cpu_times()[:2]) for p in actors]
        time.sleep(0.4)
        assert [sum(p.cpu_times()[:2]) for p in actors] == pytest.approx(before, abs=0.05)
        assert len(actors) == 1


def test_a_side_looks_at_its_strength_with_the_runs_own_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maple.arena.choose.WorkerArena", None)
    settings = ["tables=4", "net.hidden=[8]", "ppo.horizon=64", "ppo.minibatch=32", "workers.count=0"]
    config = side_config("tests.games.external.envs:Nim", "default", settings)
    with closing(_Side()) as side:
        side.begin(config.model_copy(update={"minutes": 1.0}).model_dump())
        assert side.look("random", hands=8, seed=1)["figures"]
