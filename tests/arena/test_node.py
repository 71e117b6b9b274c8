"""Battles in a pool of Node processes: the same whatever the pool, and whole whatever happens to it."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.core.errors import ActionError, GameError
from maple.core.step import Outcome, Step
from maple.games import make_game
from maple.games.showdown.anomalies import repeat_anomalies
from maple.games.showdown.runtime import NodeError, find_node, installed_modules
from maple.games.showdown.schema import load_schema
from tests.cli.command import maple

SEED = 7
SHORT = {"max_turns": 12}  # enough to see everything, quick to play


@pytest.fixture(scope="module", autouse=True)
def _node() -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))


def arena(tables: int, processes: int, **more: Any) -> NodeArena:
    options = {"limits": PoolLimits(spares=0), **more}
    return NodeArena(make_game("showdown", SHORT), tables, SEED, processes=processes, **options)


def steps(pool: NodeArena, count: int) -> Iterator[Step]:
    """Random play, a Step at a time."""
    bot = pool.game.bot("random")
    for _ in range(count):
        step = pool.recv()
        action = np.empty(len(step.keys), np.int32)
        bot(step.view, SEED, step.keys, action, 0, len(action))
        yield step
        pool.send(action)


def record(pool: NodeArena, games: int) -> dict[tuple[int, int], str]:
    """A hash of all that the seats of each table's first games saw, earned and ended with."""
    seen: dict[tuple[int, int], Any] = {}
    done: dict[int, int] = {}
    for step in steps(pool, 10_000):
        for i in range(len(step.keys)):
            where = int(step.keys.table[i]), int(step.keys.game[i])
            fact = step.view[i].tobytes() + step.reward[i].tobytes() + bytes([int(step.keys.seat[i])])
            seen.setdefault(where, hashlib.sha256()).update(fact)
        for i, table in enumerate(step.ended.table):
            seen[int(table), int(step.ended.game[i])].update(step.ended.figures[i].tobytes())
            done[int(table)] = int(step.ended.game[i]) + 1
        if len(done) == pool.tables and min(done.values()) >= games:
            break
    return {where: digest.hexdigest() for where, digest in seen.items() if where[1] < games}


@pytest.fixture(scope="module")
def alone() -> dict[tuple[int, int], str]:
    with arena(6, 1, lanes=1) as pool:
        return record(pool, 2)


def test_any_number_of_processes_and_lanes_plays_the_same_battles(alone: dict[tuple[int, int], str]) -> None:
    with arena(6, 3, lanes=2) as pool:
        assert record(pool, 2) == alone
        assert pool.counters.starts == 3


def test_the_pipe_carries_what_the_shared_block_does(alone: dict[tuple[int, int], str]) -> None:
    with arena(6, 2, transport="pipe") as pool:
        assert record(pool, 2) == alone


def test_steps_are_whole(alone: dict[tuple[int, int], str]) -> None:
    decisions: dict[tuple[int, int, int], int] = {}
    cut = 0
    with arena(6, 1) as pool:
        for step in steps(pool, 60):
            assert step.mask.any(axis=1).all()
            assert (step.mask.sum(axis=1) <= 9 + 4).all()
            for table, game, seat, decision in zip(
                step.keys.table, step.keys.game, step.keys.seat, step.keys.decision, strict=True
            ):
                where = int(table), int(game), int(seat)
                assert decisions.get(where, 0) == decision
                decisions[where] = int(decision) + 1
            cut += len(step.ended.cut)
            assert step.ended.last_view[..., 0].all()  # each seat of a game that was cut off is left with a decision
        assert cut > 0
        assert pool.report()["bytes_per_decision"] < 2000


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_costs_its_own_games_only(blow: signal.Signals) -> None:
    with arena(8, 2, limits=PoolLimits(step_limit_s=2.0, spares=0)) as pool:
        lost: list[int] = []
        others: set[int] = set()
        for number, step in enumerate(steps(pool, 100_000)):  # the others play on until it is found out
            gone = step.ended.outcome == Outcome.LOST
            lost += step.ended.table[gone].tolist()
            assert (step.ended.figures["how"][gone] == Outcome.LOST).all()
            others |= set(step.keys.table[step.keys.game == 0].tolist()) if number > 12 else set()
            if number == 8:
                os.kill(pool.pids[0], blow)
            if lost and number >= 24 and not pool.replacing:
                break
        assert sorted(lost) == [0, 1, 2, 3]
        assert others & {4, 5, 6, 7}
        assert pool.counters.lost == 4
        assert pool.counters.starts == 3
        assert (pool.counters.crashes, pool.counters.hangs) == ((1, 0) if blow == signal.SIGKILL else (0, 1))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors by /proc")
def test_kills_leave_no_descriptor_behind() -> None:
    gc.collect()
    gc.disable()  # what only the collector would find counts as left behind
    try:
        with arena(4, 1) as pool:
            counts = []
            for number, _ in enumerate(steps(pool, 24)):
                if number % 6 == 5:
                    counts.append(len(os.listdir("/proc/self/fd")))
                    os.kill(pool.pids[0], signal.SIGKILL)
            assert pool.counters.crashes == 3
            assert len(set(counts)) == 1, counts
    finally:
        gc.enable()


def test_a_process_is_recycled_between_battles() -> None:
    with arena(4, 1, recycle_after=3) as pool:
        games: dict[int, list[int]] = {}
        for step in steps(pool, 160):
            assert not (step.ended.outcome == Outcome.LOST).any()
            for table, game in zip(step.ended.table, step.ended.game, strict=True):
                games.setdefault(int(table), []).append(int(game))
            if pool.counters.recycled >= 2:
                break
        assert pool.counters.recycled >= 1
        assert pool.counters.lost == 0
        assert all(played == list(range(len(played))) for played in games.values())


def test_a_restored_arena_counts_what_was_under_way_as_lost() -> None:
    with arena(4, 1) as pool:
        for _ in steps(pool, 6):
            pass
        saved = pool.state()
        pool.restore(saved)
        step = pool.recv()
        assert (step.ended.outcome == Outcome.LOST).all()
        assert sorted(step.ended.table.tolist()) == [0, 1, 2, 3]
        assert (step.keys.game == 1).all()


def test_duplicate_deals_swap_the_teams() -> None:
    with arena(2, 1, lanes=1, tables_per_deal=2) as pool:
        step = pool.recv()
        first = {(int(t), int(s)): step.view[i] for i, (t, s) in enumerate(zip(step.keys.table, step.keys.seat))}
        team = load_schema().groups["pokemon"]
        mine = {where: view.tobytes()[team.at : team.at + 6 * team.stride] for where, view in first.items()}
        assert mine[0, 0] == mine[1, 1]
        assert mine[0, 1] == mine[1, 0]
        assert mine[0, 0] != mine[0, 1]


def test_mistakes_are_told_in_a_sentence() -> None:
    with arena(2, 1) as pool:
        step = pool.recv()
        with pytest.raises(ActionError, match="is not legal for seat"):
            pool.send(np.full(len(step.keys), 8))  # a switch to the one that is out already
        with pytest.raises(ActionError, match="rows"):
            pool.send(np.zeros(1))
    with pytest.raises(GameError, match="gen9randombattle"):
        NodeArena(make_game("showdown", {"format": "gen9randombatle"}), 2, 0, processes=1, limits=PoolLimits(spares=0))


def test_what_the_mask_should_have_known_is_kept_with_what_repeats_it(tmp_path: Path) -> None:
    file = tmp_path / "anomalies.jsonl"
    kept: list[Mapping[str, Any]] = []
    with arena(4, 1, lanes=1, check=False, keep=kept.append) as pool:
        for _ in steps(pool, 6):
            pass
        step = pool.recv()
        action = step.mask.argmax(axis=1)
        action[0] = int(np.flatnonzero(~step.mask[0])[-1])
        pool.send(action)
        while not kept:
            for _ in steps(pool, 1):
                pass
        assert pool.anomalies == kept
        assert pool.report()["anomalies"] == pool.report()["refusals"] == 1
    assert kept[0]["kind"] == "refused"
    (found,) = repeat_anomalies(kept)
    assert found["repeats"]
    assert found["error"] == kept[0]["error"]
    other = {**kept[0], "choice": "default"}
    server = {"kind": "refused", "format": "x", "table": 0, "game": 0, "seat": 1, "error": "no", "heard": []}
    file.write_text("".join(json.dumps(one) + "\n" for one in (kept[0], server, other)))
    done = maple("showdown", "repeat", file)
    first, second, third = done.stdout.splitlines()
    assert done.returncode == 1
    assert first.startswith("1. refused")
    assert first.endswith(f"happens again: {kept[0]['error']}")
    assert "it was on a server" in second
    assert "does not happen again" in third
    assert "nothing goes wrong" in third
    done = maple("showdown", "repeat", file, "--number", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["anomalies"][0]["now"]["repeats"]
    done = maple("showdown", "repeat", file, "--number", "4")
    assert done.returncode == 2
    assert "has 3 anomalies" in done.stderr


def test_what_happens_to_processes_is_logged() -> None:
    logged: list[str] = []
    with arena(4, 1, log=logged.append, recycle_after=2) as pool:
        os.kill(pool.pids[0], signal.SIGKILL)
        for _ in steps(pool, 60):
            if any("recycled" in line for line in logged):
                break
    assert "Node process 0 is replaced, its battles are lost: a bridge process exited with -9" in logged[0]
    assert "recycled after" in logged[1]


@pytest.mark.parametrize(
    ("options", "remark"),
    [
        ({"format": "gen9monotyperandombattle"}, "without the accelerator: it was not verified on"),
        ({"format": "gen9monotyperandombattle", "accelerate": "off"}, ""),
        ({}, ""),
    ],
)
def test_a_user_is_told_where_the_accelerator_stays_off(options: dict[str, str], remark: str) -> None:
    noted: list[str] = []
    with NodeArena(make_game("showdown", options), 2, 0, processes=1, limits=PoolLimits(spares=0), note=noted.append):
        pass
    assert len(noted) == bool(remark)
    assert remark in "".join(noted)
