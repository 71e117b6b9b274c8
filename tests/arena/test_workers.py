"""Worker arenas: the same games as in one process, whatever the split; and nothing that an env does takes them down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from maple.arena import choose, memory
from maple.arena.choose import Trial, choose_parts, external_arena, try_env
from maple.arena.memory import SharedBlock
from maple.arena.serial import SerialArena
from maple.arena.workers import Parts, WorkerArena
from maple.core.errors import ConfigError, GameError
from maple.core.step import Outcome
from maple.games import make_game
from maple.games.external.game import ExternalGame
from tests.arena.playing import Trace, play

HERE = "tests.games.external.envs"


def external(name: str, **arguments: Any) -> ExternalGame:
    game = make_game(f"{HERE}:{name}", arguments)
    assert isinstance(game, ExternalGame)
    return game


def _children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children(recursive=True) if "maple.arena.worker_main" in " ".join(p.cmdline())]


@pytest.mark.parametrize(("name", "arguments"), [("Walk", {}), ("Nim", {"limit": 4}), ("Match", {"leaves": True})])
def test_workers_play_the_same_games_as_one_process(name: str, arguments: dict[str, Any]) -> None:
    game = external(name, **arguments)
    with SerialArena(game, 7, seed=3) as arena:
        expected = play(arena, game, 50)
    splits: list[tuple[int, Parts]] = [(2, "halves"), (3, "whole"), (3, "workers"), (2, "workers")]
    for workers, parts in splits if name == "Walk" else splits[:1] + splits[-1:]:
        with WorkerArena(game, 7, seed=3, workers=workers, parts=parts, spares=0) as arena:
            assert play(arena, game, 50) == expected
    assert not _children()


@pytest.mark.parametrize("heavy", ["torch", "numba", "pydantic"])
def test_workers_never_import_torch(heavy: str) -> None:
    code = f"import sys, maple.arena.worker_main, maple.arena.host; sys.exit('{heavy}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_idle_workers_burn_nothing() -> None:
    game = external("Walk")
    with WorkerArena(game, 4, seed=0, workers=2, spares=0) as arena:
        play(arena, game, 20)
        time.sleep(0.3)
        processes = [psutil.Process(pid) for pid in arena.pids]
        before = [sum(p.cpu_times()[:2]) for p in processes]
        time.sleep(0.5)
        assert [sum(p.cpu_times()[:2]) for p in processes] == pytest.approx(before, abs=0.05)


def _outcomes(trace: Trace) -> list[Outcome]:
    return [row[2] for rows in trace.values() for row in rows if row[0] == "ended"]


def _whole(trace: Trace) -> None:
    """Nothing is out of order: games are told of once and follow each other, decisions are counted from 0."""
    for rows in trace.values():
        number = decision = 0
        for row in rows:
            if row[0] == "ended":
                assert row[1] == number
                number, decision = number + 1, 0
            else:
                assert (row[1], row[3]) == (number, decision)
                decision += 1


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raise", "the walk fell into a hole"),
        ("segfault", "died by SIGSEGV"),
        ("stop", "hung for 0.5 s and was killed"),
        ("hang", "hung for 0.5 s and was killed"),
        ("grow", "held more than 300 MB and was killed"),
    ],
)
def test_a_fault_loses_games_and_nothing_else(fault: str, told: str) -> None:
    game, log = external("Faulty", fault=fault, every=11), []
    limits = {"step_limit_s": 20.0 if fault == "grow" else 0.5, "memory_mb": 300.0 if fault == "grow" else 0.0}
    with WorkerArena(game, 6, seed=2, workers=2, log=log.append, **limits) as arena:  # type: ignore[arg-type]
        trace = play(arena, game, 30)
        assert (arena.lost_workers > 0) == (fault != "raise")
    _whole(trace)
    assert Outcome.LOST in _outcomes(trace)
    assert any(told in line for line in log), log
    if fault != "raise":
        death = next(line for line in log if told in line)
        assert "reset(seed=" in death
        assert "last actions [" in death
    assert not _children()


def test_a_lost_game_repeats_with_the_seed_and_the_actions_reported() -> None:
    game, log = external("Faulty", fault="exit", every=5), []
    with WorkerArena(game, 2, seed=2, workers=1, log=log.append) as arena:
        play(arena, game, 60)
    death = next(line for line in log if "ended with exit code 7" in line)
    seed, actions = death.split("seed=")[1].split(")")[0], death.split("last actions ")[1].split("]")[0] + "]"
    repeat = (
        f"from {HERE} import Faulty\nenv = Faulty('exit', 5)\nenv.reset(seed={seed})\n"
        f"for action in {actions}:\n    env.step(action)\n"
    )
    assert subprocess.run([sys.executable, "-c", repeat], check=False).returncode == 7


@pytest.mark.parametrize("parts", ["halves", "workers"])
def test_killed_workers_are_replaced_while_others_play_on(parts: Parts) -> None:
    game, log = external("Walk"), []
    with WorkerArena(game, 8, seed=2, workers=2, parts=parts, log=log.append) as arena:
        play(arena, game, 10)
        bot = game.bot("random")
        waiting: set[int] = set()
        killed, alone = False, 0
        round_number, until = 0, time.monotonic() + 60
        while arena.lost_workers < 2 or waiting or arena.replacing:
            assert time.monotonic() < until
            round_number += 1
            step = arena.recv()
            lost = step.ended.table[step.ended.outcome == Outcome.LOST]
            waiting |= set(lost.tolist())
            waiting -= set(step.keys.table.tolist())
            alone += arena.replacing and len(step.keys) > 0
            action = np.empty(len(step.keys), np.int32)
            bot(step.view, 0, step.keys, action, 0, len(action))
            arena.send(action)
            if round_number == 20 or (arena.lost_workers == 1 and not arena.replacing and not killed):
                killed = round_number != 20
                os.kill(arena.pids[0], signal.SIGKILL)
        assert arena.lost_workers == 2
        assert alone > 1
        assert not waiting
        assert len(arena.pids) == 2
    assert sum("died by SIGKILL" in line for line in log) == 2


def _next_tables(arena: WorkerArena) -> set[int]:
    """Answer one Step; returns whose it was."""
    step = arena.recv()
    arena.send(step.mask.argmax(axis=1))
    return set(step.keys.table.tolist())


@pytest.mark.parametrize("in_turn", [False, True])
def test_whoever_is_ready_is_answered_unless_turns_are_wanted(in_turn: bool) -> None:
    """A worker on a slow core, here one that stands still for a moment, holds up nobody, or everybody."""
    first, second = {0, 1}, {2, 3}
    with WorkerArena(
        external("Walk"), 4, seed=0, workers=2, parts="workers", spares=0, grace_s=inf, in_turn=in_turn
    ) as arena:
        while _next_tables(arena) != second:  # both have begun
            pass
        slow = arena.pids[0]
        os.kill(slow, signal.SIGSTOP)
        try:
            if in_turn:
                threading.Timer(0.2, os.kill, (slow, signal.SIGCONT)).start()
            found = [_next_tables(arena) for _ in range(20)]
        finally:
            os.kill(slow, signal.SIGCONT)
        if in_turn:
            assert found == 10 * [first, second]
        else:
            assert found.count(second) >= 19  # the other's answer to the last command may have been there already
            while _next_tables(arena) != first:  # it comes back as soon as it is ready
                pass


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_whole_group_are_the_parents_to_answer(blow: signal.Signals) -> None:
    """A scheduler that takes the machine away tells every process; the run still has an update to end and to save."""
    game = make_game("tests.games.external.envs:Walk")
    with WorkerArena(game, 8, seed=2, workers=2) as arena:
        play(arena, game, 3)
        for pid in arena.pids:
            os.kill(pid, blow)
        play(arena, game, 20)
        assert arena.lost_workers == 0


def test_a_log_that_cannot_be_written_stops_no_worker() -> None:
    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    game = make_game("tests.games.external.odd_envs:Loud", {"words": 5_000})
    assert isinstance(game, ExternalGame)
    with WorkerArena(game, 2, seed=0, workers=1, spares=0, log=full) as arena:
        play(arena, game, 30)  # more than a pipe holds
        assert arena.lost_workers == 0


def test_a_worker_that_keeps_dying_ends_the_run() -> None:
    game = external("Faulty", fault="exit", every=1)
    sentence = r"worker 0 of .*Faulty died 2 times without finishing a game; the last time it ended with exit code 7 at"
    with WorkerArena(game, 2, seed=1, workers=1, max_deaths=2) as arena, pytest.raises(GameError, match=sentence):
        play(arena, game, 1000)
    assert not _children()


@pytest.mark.parametrize("fault", ["nan", "no action"])
def test_a_broken_contract_is_told_by_the_worker(fault: str) -> None:
    game = external("Faulty", fault=fault, every=2)
    sentence = r"Faulty (gave the reward nan|left no action open) at step 2 after reset\(seed=\d+\)"
    with WorkerArena(game, 4, seed=1, workers=2) as arena, pytest.raises(GameError, match=sentence):
        play(arena, game, 200)


def test_more_workers_than_tables_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="3 workers cannot share 2 tables"):
        WorkerArena(external("Walk"), 2, seed=0, workers=3)


@pytest.mark.parametrize("how", ["kill", "stopped"])
def test_workers_die_with_their_parent(tmp_path: Path, how: str) -> None:
    code = (
        "import os, signal, sys\n"
        "from maple.games import make_game\nfrom maple.arena.workers import Parts, WorkerArena\n"
        f"arena = WorkerArena(make_game('{HERE}:Walk'), 4, 0, workers=2)\narena.recv()\n"
        f"[os.kill(pid, signal.SIGSTOP) for pid in arena.pids if {how == 'stopped'}]\n"
        "print(*arena.pids, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    until = time.monotonic() + 10
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_shared_memory_without_memory_files() -> None:
    before = set(Path(tempfile.gettempdir()).glob("maple-*"))
    block = SharedBlock(1 << 16, named_file=True)
    view = np.frombuffer(block.buffer, np.uint8)
    view[5] = 7
    assert SharedBlock.attach(block.handle, block.size)[5] == 7
    link = Path(f"/proc/self/fd/{block.handle}")
    assert not link.exists() or "(deleted)" in os.readlink(link)
    assert set(Path(tempfile.gettempdir()).glob("maple-*")) <= before
    block.close()


def test_workers_play_over_a_file_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    game = external("Walk")
    with SerialArena(game, 4, seed=3) as arena:
        expected = play(arena, game, 30)
    monkeypatch.setattr(memory, "_nameless_file", memory._unlinked_file)
    with WorkerArena(game, 4, seed=3, workers=2, spares=0) as arena:
        assert play(arena, game, 30) == expected


def test_a_resumed_arena_goes_on_with_the_next_games() -> None:
    game = external("Walk")
    with WorkerArena(game, 4, seed=2, workers=2, spares=0) as arena:
        play(arena, game, 30)
        state = arena.state()
    for again in (SerialArena(game, 4, seed=2), WorkerArena(game, 4, seed=2, workers=2, spares=0)):
        with again as arena:
            arena.restore(state)
            trace = play(arena, game, 10)
        for table, rows in trace.items():
            assert rows[0][:3] == ("ended", state["game"][table], Outcome.LOST)
            assert rows[1][1] == state["game"][table] + 1


@pytest.mark.parametrize("workers", ["auto", 2])
def test_an_env_that_does_not_survive_its_trial_stays_out_of_the_trainer(workers: Any) -> None:
    told: list[str] = []
    with external_arena(external("Faulty", fault="exit", every=1), 4, 0, workers, 2, log=told.append) as arena:
        assert isinstance(arena, WorkerArena)
    assert any("did not survive its trial" in line for line in told)


def test_the_split_follows_from_what_a_step_costs() -> None:
    assert choose_parts(1e-6, tables=32, workers=2, cores=2) == "workers"
    assert choose_parts(1e-6, tables=32, workers=8, cores=8) == "whole"
    assert choose_parts(1e-6, tables=32, workers=1, cores=1) == "whole"
    assert choose_parts(1e-3, tables=32, workers=2, cores=2) == "workers"
    assert choose_parts(2e-3, tables=32, workers=8, cores=8) == "halves"
    assert choose_parts(1e-6, tables=32, workers=2, cores=8) == "halves"
    trial = try_env(external("Walk"))
    assert 0 < trial.step_s < inf
    assert 0 < trial.ready_s < inf
    assert not trial.died


def test_an_env_that_never_steps_is_not_waited_for() -> None:
    told: list[str] = []
    game = external("Faulty", fault="hang", every=1, at=1)
    with external_arena(game, 4, 0, "auto", 2, note=told.append) as arena:
        assert isinstance(arena, WorkerArena)
    assert told == [f"{HERE}:Faulty made no step in 2 s of trial: 2 workers"]


def test_a_trial_tells_on_an_env_that_breaks_its_contract() -> None:
    with pytest.raises(GameError, match=r"gave the reward nan at step 2 after reset\(seed=\d+\)"):
        external_arena(external("Faulty", fault="nan", every=1), 4, 0, "auto", 2)


@pytest.mark.parametrize(
    ("trial", "tried", "workers", "why"),
    [
        (Trial(2e-6, 1e-4), None, 0, "takes 2.0 µs a step, too little for workers: the trainer plays"),
        (Trial(50e-6, 1e-4), 1.5, 2, "takes 50.0 µs a step: 2 workers, 1.50 times as fast as the trainer alone"),
        (Trial(50e-6, 1e-4), 1.0, 2, "takes 50.0 µs a step: 2 workers, 1.00 times as fast as the trainer alone"),
        (Trial(50e-6, 1e-4), 0.9, 0, "takes 50.0 µs a step: the trainer plays, 2 workers would be 0.90 times as fast"),
        (Trial(50e-6, 0.5), None, 2, "takes 50.0 µs a step: 2 workers"),  # making envs to try them would take long
        (Trial(5e-3, 1e-4), None, 2, "takes 5 ms a step: 2 workers"),
        (Trial(60.0, 1e-4), None, 2, "takes 60 s a step: 2 workers"),
        (Trial(inf, inf), None, 2, "made no step in 2 s of trial: 2 workers"),
    ],
)
def test_what_is_chosen_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch, trial: Trial, tried: float | None, workers: int, why: str
) -> None:
    def gain(*_: Any) -> float:
        assert tried is not None, "tried out where the answer is clear"
        return tried

    monkeypatch.setattr(choose, "try_env", lambda *_: trial)
    monkeypatch.setattr(choose, "_gain", gain)
    told: list[str] = []
    with external_arena(external("Walk"), 32, 0, "auto", 2, spares=0, note=told.append) as arena:
        assert (arena.workers if isinstance(arena, WorkerArena) else 0) == workers
    assert told == [f"{HERE}:Walk {why}"]


def test_envs_are_closed_when_an_arena_ends(tmp_path: Path) -> None:
    mark = tmp_path / "closed"
    game = external("Walk", closes=str(mark))
    mark.unlink()  # of the env that was looked at
    with WorkerArena(game, 4, seed=0, workers=2, spares=0) as arena:
        arena.recv()
    assert len(mark.read_text().splitlines()) == 4
