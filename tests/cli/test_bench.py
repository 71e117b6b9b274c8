"""`maple bench` from the command line: what the issues promise is in its JSON."""

from __future__ import annotations

import json
from contextlib import nullcontext
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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("ofc --peer poke-env --kills 5", "--kills does nothing with ofc, which plays --tables"),
        ("wargame --format gen9ou", "--format does nothing with wargame"),
        ("ofc --battles 32", "--battles does nothing with ofc"),
        ("ofc --transport pipe", "--transport does nothing with ofc"),
        ("showdown --threads 1 --tables 64 --options", "--threads does nothing with showdown, which plays --battles"),
        ("showdown --options", "--options does nothing with showdown"),
        ("showdown --kills 5 --peer poke-env", "--peer does nothing with --kills"),
        ("showdown --kills 5 --transport pipe", "--transport does nothing with --kills"),
        ("showdown --kills 5 --seconds 9", "--seconds does nothing with --kills, which plays until so many were"),
    ],
)
def test_options_of_a_game_that_do_nothing_are_refused(words: str, named: str) -> None:
    done = maple("bench", "game", *words.split())
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    told = " ".join(done.stderr.split())
    assert named in told
    assert told.endswith("; leave it out")


def test_games_are_measured_at_the_size_that_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Any, ...]] = []

    def note(*arguments: Any) -> dict[str, Any]:
        given.append(arguments)
        return {}

    monkeypatch.setattr("maple.cli.bench.machine_lock", lambda _: nullcontext())  # nothing here is a figure
    monkeypatch.setattr("maple.core.cores.available_cores", lambda: 3)
    monkeypatch.setattr("maple.bench.game.bench_game", note)
    monkeypatch.setattr("maple.cli.bench._bench_battles", note)
    monkeypatch.setattr("maple.cli.bench._kill_battles", note)
    for words in ("ofc", "showdown", "showdown --kills 5"):
        done = maple("bench", "game", *words.split(), "--json")
        assert done.returncode == 0, done.stderr
    native, bridged, killed = given
    assert (native[0], native[2:6]) == ("ofc", (3, 8192, 5.0, False))
    assert bridged[1:] == (3, 32, 5.0, None, None)
    assert killed[1:] == (5, 3, 32)
