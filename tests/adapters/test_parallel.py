"""Showdown as a PettingZoo parallel env: the standard's own tests, and the arena's battles, decision for decision."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pettingzoo.test import parallel_api_test, parallel_seed_test

from maple.adapters.parallel import BridgedParallelEnv, parallel_env
from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.core.errors import ActionError, GameError
from maple.games import make_game
from maple.games.showdown.runtime import NodeError, find_node, installed_modules

SHORT = {"max_turns": 8}


@pytest.fixture(scope="module", autouse=True)
def _node() -> None:
    try:
        find_node()
        installed_modules()
    except NodeError as error:
        pytest.skip(str(error))


@pytest.fixture
def env() -> Iterator[BridgedParallelEnv]:
    made = parallel_env("showdown", seed=3, **SHORT)
    yield made
    made.close()


def by_hash(view: NDArray[np.uint64], mask: NDArray[Any]) -> int:
    """An open action, picked by a hash of the view."""
    legal = np.flatnonzero(mask)
    return int(legal[zlib.crc32(view.tobytes()) % len(legal)]) if len(legal) else 0


# A seat that waits for the other has nothing legal indeed.
@pytest.mark.filterwarnings("ignore:.*[mM]ask")
def test_passes_the_parallel_api_test(env: BridgedParallelEnv) -> None:
    parallel_api_test(env, num_cycles=120)


@pytest.mark.filterwarnings("ignore:.*[mM]ask")
def test_passes_the_seed_test() -> None:
    parallel_seed_test(lambda: parallel_env("showdown", **SHORT), num_cycles=12)


def test_plays_the_arenas_battles_whatever_the_number_of_processes(env: BridgedParallelEnv) -> None:
    games: dict[tuple[int, int], list[bytes]] = {}
    with NodeArena(make_game("showdown", SHORT), 3, 3, processes=3, limits=PoolLimits(spares=0)) as arena:
        finished = 0
        while finished < 2:
            step = arena.recv()
            for i in range(len(step.keys)):
                where = int(step.keys.game[i]), int(step.keys.seat[i])
                if step.keys.table[i] == 0:
                    games.setdefault(where, []).append(step.view[i].tobytes() + step.reward[i].tobytes())
            finished += int((step.ended.table == 0).sum())
            arena.send(np.array([by_hash(view, mask) for view, mask in zip(step.view, step.mask, strict=True)]))
    for game in range(2):
        observed, _ = env.reset()
        reward = dict.fromkeys(env.agents, 0.0)
        while env.agents:
            for seat, agent in enumerate(env.agents):
                if observed[agent]["action_mask"].any():
                    earned = np.float32(reward[agent]).tobytes()
                    assert games[game, seat].pop(0) == observed[agent]["view"].tobytes() + earned
            actions = {agent: by_hash(seen["view"], seen["action_mask"]) for agent, seen in observed.items()}
            observed, reward, terminated, truncated, infos = env.step(actions)
        assert games[game, 0] == games[game, 1] == []
        assert all(terminated.values()) != all(truncated.values())
        assert infos["seat_0"]["figures"]["turns"] >= 1


def test_a_bare_reset_is_the_next_game_and_a_seed_the_first(env: BridgedParallelEnv) -> None:
    first = env.reset()[0]["seat_0"]["view"]
    second = env.reset()[0]["seat_0"]["view"]
    again = env.reset(seed=3)[0]["seat_0"]["view"]
    other = env.reset(seed=4)[0]["seat_0"]["view"]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_mistakes_are_told_in_a_sentence(env: BridgedParallelEnv) -> None:
    with pytest.raises(ActionError, match="call reset"):
        env.step({})
    env.reset()
    with pytest.raises(ActionError, match="seat_1 has to decide"):
        env.step({"seat_0": 0})
    with pytest.raises(GameError, match="act in turn"):
        parallel_env("ofc")
