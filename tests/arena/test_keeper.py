"""Processes that cannot be started, envs that cannot be made: for a moment, and for good."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from maple.arena import host, processes
from maple.arena.processes import WorkerProcess
from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.core.errors import ConfigError, GameError
from tests.arena.playing import play
from tests.arena.test_losses import failing


@pytest.mark.parametrize("times", [1, 1000])
def test_a_machine_without_room_for_a_process_is_waited_for_a_while(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(processes, "RETRY_S", 0.05)
    start, refused = WorkerArena._start, list[int]()

    def short_of_memory(arena: WorkerArena, number: int) -> WorkerProcess:
        if len(refused) < times:
            refused.append(number)
            raise OSError(12, "Cannot allocate memory")
        return start(arena, number)

    monkeypatch.setattr(WorkerArena, "_start", short_of_memory)
    game = failing("Stumble", every=10**9)
    with WorkerArena(game, 2, seed=0, workers=1) as arena:
        if times == 1:
            play(arena, game, 20)
        else:
            with pytest.raises(ConfigError, match=r"no process can be started .*Cannot allocate memory; free memory"):
                arena.recv()
            assert len(refused) == processes.FAILED_STARTS


def test_whatever_ends_the_keeper_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    game = failing("Stumble", every=10**9)
    with WorkerArena(game, 2, seed=0, workers=1, spares=0) as arena:
        play(arena, game, 20)
        broken = ZeroDivisionError("nobody watches any more")
        monkeypatch.setattr(arena._keeper, "_watch", lambda: (_ for _ in ()).throw(broken))
        os.kill(arena.pids[0], signal.SIGSTOP)  # nobody would ever notice
        with pytest.raises(ZeroDivisionError, match="nobody watches"):
            play(arena, game, 1000)
        os.kill(arena.pids[0], signal.SIGKILL)


def test_figures_that_are_not_for_us_are_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> None:
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(processes.psutil, "Process", refuse)
    assert processes._resident_mb(1) == 0.0


def test_an_env_that_cannot_be_made_for_a_moment_costs_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "RETRY_S", 0.01)
    log, mark = list[str](), tmp_path / "made"
    game = failing("Unmade", mark=str(mark), refuse_from=4, refuse_to=6)  # the first is the one that is looked at
    with SerialArena(game, 2, seed=1, log=log.append, max_deaths=4) as arena:
        play(arena, game, 20)
    assert sum("has no env" in line and "the port is taken" in line for line in log) == 2
    hopeless = failing("Unmade", mark=str(tmp_path / "other"), refuse_from=4, refuse_to=10**6)
    sentence = r"failed 4 times at table \d without finishing a game, last while its env was made: .*the port is taken"
    with SerialArena(hopeless, 2, seed=1, max_deaths=4) as arena, pytest.raises(GameError, match=sentence):
        play(arena, hopeless, 20)


def test_a_worker_that_cannot_make_its_envs_is_tried_again_once_others_could(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    game = failing("Unmade", mark=str(mark), refuse_from=4, refuse_to=5, fault="")
    with WorkerArena(game, 2, seed=1, workers=1, spares=1) as arena:  # the one that stands by is refused at first
        play(arena, game, 10)
        until = time.monotonic() + 30
        while len(mark.read_text().splitlines()) < 6:  # one was looked at, two play, one was refused, two stand by
            assert time.monotonic() < until
            time.sleep(0.02)
        os.kill(arena.pids[0], signal.SIGKILL)
        play(arena, game, 20)
        assert arena.lost_workers == 1


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    game, log = failing("Stumble", every=10**9), list[str]()
    with WorkerArena(game, 2, seed=0, workers=1, log=log.append) as arena:
        play(arena, game, 10)
        os.kill(arena.pids[0], signal.SIGRTMIN + 5)
        play(arena, game, 20)
    assert any(f"died by signal {signal.SIGRTMIN + 5}" in line for line in log)


@pytest.mark.parametrize("begins", ["", "x"])  # one of them is cut within a letter of two bytes
def test_last_words_that_are_cut_within_a_letter_are_read(begins: str) -> None:
    game = failing("Unmade", mark=os.devnull, refuse_from=10**6, refuse_to=10**6)
    game.settings = game.settings.model_copy(update={"refuse_from": 0, "words": begins + "é" * 3000})
    with (
        WorkerArena(game, 2, seed=0, workers=1, spares=0) as arena,
        pytest.raises(GameError, match=f"Unmade cannot be made: OSError: {begins}éé"),
    ):
        arena.recv()
