"""Who stands by for Node processes that die, and whose turn it is while one is late."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import psutil
import pytest

from maple.arena.node import NodeArena
from maple.arena.node_notes import PoolCounters
from maple.arena.node_pool import FAILED_SPARES, NodePool, PoolLimits
from maple.arena.node_process import NodeProcess, ProcessGoneError
from maple.arena.open import open_arena
from maple.core.config import WorkerConfig
from maple.core.errors import ActionError, GameError
from maple.core.step import Outcome, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.showdown.game import ShowdownGame
from maple.games.showdown.runtime import NodeError, find_node, installed_modules

SEED = 7


@pytest.fixture(scope="module", autouse=True)
def _node() -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))


def arena(tables: int, processes: int, **more: Any) -> NodeArena:
    return NodeArena(make_game("showdown", {"max_turns": 12}), tables, SEED, processes=processes, **more)


def go_on(pool: NodeArena) -> Step:
    """One Step of random play."""
    step = pool.recv()
    action = np.empty(len(step.keys), np.int32)
    pool.game.bot("random")(step.view, SEED, step.keys, action, 0, len(action))
    pool.send(action)
    return step


def play_until(pool: NodeArena, holds: Callable[[], bool]) -> list[Step]:
    steps = []
    for _ in range(20_000):
        if holds():
            return steps
        steps.append(go_on(pool))
    raise AssertionError("it never came to that")


def lost(steps: list[Step]) -> list[int]:
    """The tables whose games were lost."""
    return sorted(
        int(table) for step in steps for table in step.ended.table[step.ended.outcome == Outcome.LOST].tolist()
    )


def standing_by(pool: NodeArena) -> set[int]:
    return {spare.popen.pid for spare in pool._pool._spares if spare.ready is not None}


def test_two_deaths_in_a_row_are_made_good_by_those_who_stand_by() -> None:
    with arena(8, 2, limits=PoolLimits(spares=2)) as pool:
        play_until(pool, lambda: len(standing_by(pool)) == 2)
        spares = standing_by(pool)
        for pid in pool.pids:
            os.kill(pid, signal.SIGKILL)
        steps = play_until(pool, lambda: pool.counters.crashes == 2 and not pool.replacing)
        assert set(pool.pids) == spares
        assert lost(steps) == list(range(8))
        assert len(pool.replaced_s) == 2
        play_until(pool, lambda: len(standing_by(pool)) == 2)  # and the next ones stand by


def test_a_place_whose_processes_die_as_soon_as_they_play_goes_on() -> None:
    with arena(4, 1, limits=PoolLimits(spares=1)) as pool:
        go_on(pool)
        for deaths in range(1, 5):  # more than stand by, and before they are warm
            os.kill(pool.pids[0], signal.SIGKILL)
            play_until(pool, lambda at=deaths: pool.counters.crashes == at and not pool.replacing)  # type: ignore[misc]
        assert pool.counters.lost == 16
        assert not lost([go_on(pool) for _ in range(8)])


def test_a_process_that_is_late_stalls_nobody() -> None:
    with arena(8, 2, limits=PoolLimits(step_limit_s=600.0, spares=0), in_turn=True) as pool:
        play_until(pool, lambda: pool.counters.waves >= 8)
        stopped = pool.pids[0]
        os.kill(stopped, signal.SIGSTOP)
        try:
            play_until(pool, lambda: pool._late == {0})
            alone = [go_on(pool) for _ in range(40)]
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert {int(table) for step in alone for table in step.keys.table} == {4, 5, 6, 7}
        play_until(pool, lambda: not pool._late)
        both = [go_on(pool) for _ in range(8)]
        assert {int(table) for step in both for table in step.keys.table} == set(range(8))
        assert pool.counters.lost == pool.counters.hangs == 0


def test_lanes_take_turns_in_a_fixed_order_where_that_is_wanted() -> None:
    with arena(8, 2, limits=PoolLimits(spares=0), in_turn=True) as pool:
        order = [sorted(set(go_on(pool).keys.table.tolist())) for _ in range(8)]
        assert order == [[0, 1], [4, 5], [2, 3], [6, 7]] * 2


def test_whoever_is_ready_is_answered() -> None:
    """A process on a slow core, here one that stands still, holds up nobody."""
    with arena(8, 2, limits=PoolLimits(spares=0), grace_s=inf) as pool:
        play_until(pool, lambda: pool.counters.waves > 8)
        slow = pool.pids[0]
        os.kill(slow, signal.SIGSTOP)
        try:
            found = [set(go_on(pool).keys.table.tolist()) for _ in range(24)]
        finally:
            os.kill(slow, signal.SIGCONT)
        assert set().union(*found[4:]) == {4, 5, 6, 7}  # what its lanes had answered before was there already
        back: set[int] = set()
        while not {0, 1, 2, 3} <= back:
            back |= set(go_on(pool).keys.table.tolist())


def test_who_stands_by_and_dies_is_replaced_but_not_for_ever() -> None:
    logged: list[str] = []
    with arena(4, 1, limits=PoolLimits(spares=1), log=logged.append) as pool:
        play_until(pool, lambda: len(standing_by(pool)) == 1)
        (spare,) = standing_by(pool)
        os.kill(spare, signal.SIGKILL)
        play_until(pool, lambda: bool(logged))
        assert "a Node process that stood by is gone: a bridge process exited with -9" in logged[0]
        play_until(pool, lambda: len(standing_by(pool)) == 1)
        assert pool.counters.crashes == pool.counters.lost == 0


def test_spares_that_cannot_start_are_given_up() -> None:
    logged: list[str] = []
    game = ShowdownGame()
    program = replace(game.program(1, 1), command=(find_node(), "-e", "process.exit(3)", "--"))
    pool = NodePool(program, 0, "auto", PoolLimits(spares=2), PoolCounters(), logged.append, game.refuse)
    try:
        while len(logged) < FAILED_SPARES:
            assert pool.look(0.2) == []
        for _ in range(3):
            pool.look(0.2)
    finally:
        pool.close()
    assert len(logged) == FAILED_SPARES
    assert "no other is started: a bridge process exited with 3" in logged[-1]


def test_a_place_where_processes_only_die_is_told_in_a_sentence() -> None:
    with arena(2, 1, limits=PoolLimits(max_deaths=2, spares=0)) as pool:
        go_on(pool)
        os.kill(pool.pids[0], signal.SIGKILL)
        play_until(pool, lambda: pool.counters.crashes == 1 and not pool.replacing)
        os.kill(pool.pids[0], signal.SIGKILL)
        with pytest.raises(
            GameError, match=r"Node process 0 died 2 times without finishing a battle: .* exited with -9"
        ):
            play_until(pool, lambda: False)


def test_a_process_is_recycled_by_the_memory_that_it_holds() -> None:
    logged: list[str] = []
    with arena(4, 1, limits=PoolLimits(memory_mb=1.0, spares=0), log=logged.append) as pool:
        first = pool.pids
        steps = play_until(pool, lambda: pool.counters.recycled > 0)
        assert pool.pids != first
        assert not lost(steps)
        assert "Node process 0 is recycled after" in logged[0]


def test_limits_come_from_the_config() -> None:
    limits, before = WorkerConfig(step_limit_s=0.5, spares=0), set(psutil.Process().children())
    with Team(1) as team, closing(open_arena(make_game("showdown"), 2, SEED, team, limits=limits)) as pool:
        assert isinstance(pool, NodeArena)
        go_on(pool)
        os.kill(pool.pids[0], signal.SIGSTOP)
        play_until(pool, lambda: pool.counters.hangs == 1)
        assert len(set(psutil.Process().children()) - before) == 1


def test_a_step_is_answered_before_the_next() -> None:
    with arena(2, 1, limits=PoolLimits(spares=0)) as pool:
        pool.recv()
        with pytest.raises(ActionError, match="before the next recv"):
            pool.recv()


def test_a_wave_of_another_epoch_is_refused_on_either_side() -> None:
    with arena(2, 1, lanes=1, limits=PoolLimits(spares=0)) as pool:
        step = pool.recv()
        process, stale = pool._pool.processes[0], np.zeros(len(step.keys), np.int16)
        process.act(0, 77, stale)  # the bridge is at its first wave
        pool.send(step.mask.argmax(axis=1))
        logged = play_until(pool, lambda: pool.counters.crashes == 1)
        assert lost([*logged, go_on(pool)])[:2] == [0, 1]
    game = ShowdownGame()
    process = NodeProcess.start(game.program(SEED, 1), 1 << 16, "auto")
    try:
        process.wait_ready()
        process.assign(0, [0], [0], 0)
        process.lanes[0].epoch = 5  # this side waits for the sixth
        with pytest.raises(ProcessGoneError, match="sent wave 1 where 6 was due"):
            process._wait()
    finally:
        process.close()
