"""The gate from end to end on a game small enough to decide in seconds; its processes stand still when they should."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from maple.bench.compare import BASE, CANDIDATE, Comparison, Plan, Sides, bisect, compare, differing, two_sides
from maple.bench.gate import Limits
from maple.bench.side import SideProcess
from maple.cli.compare import side_config
from maple.core.config import Config
from maple.core.errors import ConfigError, MapleError

SMALL = ["tables=48", "threads=1", "net.hidden=[16, 8]", "game.fantasyland=off"]
SMALL += ["afterstate.horizon=480", "afterstate.minibatch=64"]
SLOW = "afterstate.epochs=24 afterstate.minibatch=16"
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


def test_a_real_speed_up_is_adopted(sides: Sides) -> None:
    found = compare(sides, _config(f"{SLOW} optimizer.learning_rate=1.0e-6"), _config("default"), PLAN, _silent)
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
