"""What is lost outside of a step, how it is told, and that it does not come back."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from maple.arena.serial import SerialArena
from maple.arena.warden import Warden
from maple.arena.workers import Parts, WorkerArena
from maple.core.step import Outcome
from maple.games import make_game
from maple.games.external.game import ExternalGame
from tests.arena.playing import Trace, play

FAILING = "tests.games.external.failing_envs"


def failing(name: str, **arguments: Any) -> ExternalGame:
    game = make_game(f"{FAILING}:{name}", arguments)
    assert isinstance(game, ExternalGame)
    return game


def _losses(trace: Trace) -> int:
    return sum(row[0] == "ended" and row[2] == Outcome.LOST for rows in trace.values() for row in rows)


@pytest.mark.parametrize(
    ("fault", "workers", "parts"), [("exit", 1, "halves"), ("exit", 2, "workers"), ("hang", 1, "whole")]
)
def test_a_game_that_kills_whoever_begins_it_is_not_begun_again(fault: str, workers: int, parts: Parts) -> None:
    game, log = failing("Stumble", fault=fault, every=23), list[str]()
    limits = {"step_limit_s": 0.5, "max_deaths": 6}
    with WorkerArena(game, 4, seed=1, workers=workers, parts=parts, log=log.append, **limits) as arena:  # type: ignore[arg-type]
        trace = play(arena, game, 80)
        assert arena.lost_workers > 0
    assert _losses(trace) > 0
    for rows in trace.values():  # a loss may stand for games that nobody saw begin; all others follow each other
        number = 0
        for row in rows:
            assert row[1] == number or (row[0] == "ended" and row[2] == Outcome.LOST and row[1] > number)
            number = row[1] + (row[0] == "ended")
    seeds = [line.split("seed=")[1].split(")")[0] for line in log if "games are lost" in line]
    assert all(int(seed) % 23 == 0 for seed in seeds)
    assert max(seeds.count(seed) for seed in seeds) <= 2  # once more where it was begun before the game before was told


def _reported(line: str) -> tuple[int, list[Any]]:
    """The seed and the actions that a line of the log names."""
    seed, rest = line.split("reset(seed=")[1].split("), last actions ", 1)
    return int(seed), ast.literal_eval(rest[: rest.index("]; ") + 1] if "]; " in rest else rest.splitlines()[0])


def _repeat(name: str, fault: str, seed: int, actions: list[Any]) -> subprocess.CompletedProcess[str]:
    code = (
        f"from {FAILING} import {name}\nenv = {name}({fault!r})\nenv.reset(seed={seed})\n"
        f"for action in {actions!r}:\n    env.step(action)\n"
    )
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["ShakyNim", "ShakyMatch", "Dials"])
@pytest.mark.parametrize("fault", ["exit", "raise"])
def test_what_is_reported_repeats_the_loss_whatever_the_env(name: str, fault: str) -> None:
    game, log = failing(name, fault=fault), list[str]()
    arena = (
        WorkerArena(game, 3, seed=1, workers=1, log=log.append)
        if fault == "exit"
        else SerialArena(game, 3, seed=1, log=log.append)
    )
    with arena:
        play(arena, game, 50)
    found = next(line for line in log if "reset(seed=" in line)
    seed, actions = _reported(found)
    assert len(actions) > 1
    again = _repeat(name, fault, seed, actions)
    assert again.returncode == (7 if fault == "exit" else 1), again.stderr
    assert "it fell apart" in again.stderr or fault == "exit"
    assert _repeat(name, fault, seed, actions[:-1]).returncode == 0  # the last action is the one


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no groups of processes")
@pytest.mark.parametrize("fault", [True, False])
def test_programs_of_envs_end_with_their_worker(fault: bool, tmp_path: Path) -> None:
    game = make_game("tests.games.external.odd_envs:Emulated", {"folder": str(tmp_path), "fault": fault})
    assert isinstance(game, ExternalGame)
    by_examination = {int(path.name) for path in tmp_path.iterdir()}
    with WorkerArena(game, 2, 0, workers=1, spares=0) as arena:
        step = arena.recv()
        first = {int(path.name) for path in tmp_path.iterdir()} - by_examination
        assert len(first) == 2
        if not fault:
            os.kill(arena.pids[0], signal.SIGKILL)
        arena.send(step.mask.argmax(axis=1))
        while not arena.lost_workers:
            arena.send(arena.recv().mask.argmax(axis=1))
        _, alive = psutil.wait_procs([psutil.Process(pid) for pid in first if psutil.pid_exists(pid)], timeout=20)
        assert not alive


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no groups of processes")
def test_programs_of_envs_end_when_the_trainer_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom maple.games import make_game\nfrom maple.arena.workers import WorkerArena\n"
        f"game = make_game('tests.games.external.odd_envs:Emulated', {{'folder': {str(tmp_path)!r}}})\n"
        "by_examination = set(os.listdir(game.settings.folder))\n"
        "arena = WorkerArena(game, 2, 0, workers=1, spares=0)\narena.recv()\n"
        "print(*set(os.listdir(game.settings.folder)) - by_examination, *arena.pids, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 3, done.stderr  # two programs and the worker
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=20)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_a_warden_leaves_alone_what_it_was_told_to_forget() -> None:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    kept, ended = (subprocess.Popen(sleeps, start_new_session=True) for _ in range(2))
    warden = Warden()
    for process in (kept, ended):
        warden.watch(process.pid)
    warden.forget(kept.pid)
    assert warden._process is not None
    assert warden._process.stdin is not None
    warden._process.stdin.close()  # as when this process is killed
    assert ended.wait(20) == -signal.SIGKILL
    assert warden._process.wait(20) == 0
    assert kept.poll() is None
    kept.kill()
    kept.wait()


def test_the_memory_of_an_envs_programs_counts(tmp_path: Path) -> None:
    game, log = (
        make_game("tests.games.external.odd_envs:Emulated", {"folder": str(tmp_path), "hoard_mb": 300}),
        list[str](),
    )
    assert isinstance(game, ExternalGame)
    with WorkerArena(game, 1, 0, workers=1, spares=0, memory_mb=250.0, log=log.append) as arena:
        while not arena.lost_workers:
            arena.send(arena.recv().mask.argmax(axis=1))
    assert any("held more than 250 MB and was killed" in line for line in log)


def test_actions_that_a_late_worker_was_not_given_are_not_reported() -> None:
    game, log = failing("Dials", fault="exit", steps=1000), list[str]()
    given: dict[int, list[list[int]]] = defaultdict(list)
    with WorkerArena(game, 2, seed=0, workers=2, parts="whole", grace_s=0.02, log=log.append) as arena:
        for turn in range(24):
            if turn == 6:
                os.kill(arena.pids[1], signal.SIGSTOP)
            if turn == 16:
                os.kill(arena.pids[1], signal.SIGCONT)
            step = arena.recv()
            action = (turn + step.keys.table) % 3  # never the fourth, at which it fails
            for table, index in zip(step.keys.table.tolist(), action.tolist(), strict=True):
                given[table].append([10 + index // 2, 5 + index % 2])
            arena.send(action.astype(np.int32))
        while 1 not in arena.recv().keys.table:  # its last answer is here
            arena.send(np.full(1, 0, np.int32))
        os.kill(arena.pids[1], signal.SIGKILL)
        arena.send(np.zeros(2, np.int32))
        given[1].append([10, 5])
        while not arena.lost_workers:
            step = arena.recv()
            arena.send(np.zeros(len(step.keys), np.int32))
    _, actions = _reported(next(line for line in log if "died by SIGKILL" in line))
    assert len(given[1]) < len(given[0])
    assert actions in (given[1], given[1][:-1])  # it may have been dead before the last one
