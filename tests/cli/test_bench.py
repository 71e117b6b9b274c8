"""`maple bench` from the command line: what the issues promise is in its JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maple.cli import bench_learning
from maple.cli.bench_learning import SAME_DQN
from tests.cli.command import maple

SMALL = ["tables=32", "net.hidden=[16, 8]", "dqn.horizon=640", "dqn.warmup=100", "dqn.minibatch=64", "game.points=200"]


def _bench(*arguments: str) -> dict[str, Any]:
    done = maple("bench", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _set(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.parametrize("more", [[], ["--options"]])
def test_the_wargame_by_itself(more: list[str]) -> None:
    found = _bench("game", "wargame", "--threads", "1", "--tables", "32", "--seconds", "0.1", *more)
    assert {"decisions_per_s", "threads", "tables", "bytes_per_decision", "of_write_bandwidth", "bound_by"} <= set(
        found
    )
    assert ("options_per_s" in found) == bool(more)
    assert found["decisions_per_s"] > 0


def test_dqn_of_the_wargame() -> None:
    found = _bench("train", "wargame", "--algo", "dqn", "--seconds", "0.5", *_set(*SMALL))
    assert (found["game"], found["algo"]) == ("wargame", "dqn")
    assert {"steps_per_s", "updates_per_s", "update_ratio", "cpu_use"} <= set(found["maple"])
    assert found["maple"]["updates_per_s"] > 0


@pytest.mark.parametrize(("algo", "settings"), [("dqn", []), (None, ["algo=dqn"])])
def test_a_peers_dqn_is_met_with_what_both_can_do(algo: str | None, settings: list[str]) -> None:
    config = bench_learning._train_config("CartPole-v1", None, [], settings, algo, 0, "sb3")
    wanted = dict(line.split("=") for line in SAME_DQN)
    assert (config.algo, config.opponents, config.dqn.policy) == ("dqn", wanted["opponents"], wanted["dqn.policy"])
    assert [config.dqn.double, config.dqn.dueling, config.dqn.prioritized] == [False] * 3
    own = bench_learning._train_config("CartPole-v1", None, [], [*settings, "dqn.double=true"], algo, 0, "sb3")
    assert own.dqn.double
    assert bench_learning._train_config("CartPole-v1", None, [], settings, algo, 0, None).dqn.prioritized
