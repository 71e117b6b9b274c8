"""Evaluations of battles: what goes wrong in them is told and kept, and poke-env's players sit opposite."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.base import Arena
from maple.arena.choose import evaluation_arena
from maple.arena.node import NodeArena
from maple.core.config import WorkerConfig
from maple.core.step import Keys
from maple.core.threads import Team
from maple.games import make_game
from maple.games.showdown.server import LocalServer
from maple.training.evaluate import bot_player, evaluate
from tests.cli.command import maple

OUT_ALREADY = 8  # a switch to the one that is out


def test_what_goes_wrong_in_an_evaluation_is_told_and_kept() -> None:
    game, logged, kept = make_game("showdown", {"max_turns": 8}), list[str](), list[Mapping[str, Any]]()
    arenas: list[NodeArena] = []

    def watch(arena: Arena) -> Arena:
        assert isinstance(arena, NodeArena)
        arenas.append(arena)
        return arena

    with Team(1) as team:
        plain = bot_player(game, "random", team)

        def player(view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int32]:
            action = np.array(plain(view, keys, seed), np.int32)
            if not kept:
                action[keys.decision == 0] = OUT_ALREADY
            elif not logged:
                os.kill(arenas[0].pids[0], signal.SIGKILL)
            return action

        envs = partial(evaluation_arena, limits=WorkerConfig(), log=logged.append, keep=kept.append)
        result = evaluate(game, player, [plain], 8, 1, team, envs=envs, watch=watch)
    assert {note["kind"] for note in kept} == {"refused"}
    assert "is replaced, its battles are lost" in logged[0]
    assert result.lost > 0
    assert result.games == 8


@pytest.mark.parametrize(("kind", "name"), [("power", "MaxBasePowerPlayer"), ("heuristic", "SimpleHeuristicsPlayer")])
def test_poke_envs_players_sit_opposite_on_a_real_server(server: LocalServer, kind: str, name: str) -> None:
    words = ("showdown", "eval", "heuristic", "--against", kind, "--battles", "2", "--at-a-time", "2", "--json")
    done = maple(*words, "--server", f"127.0.0.1:{server.port}", "--as", f"Judged {kind}")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["evaluations"]
    assert row["against"] == [f"poke-env {name}"]
    assert (row["games"], row["lost"], row["anomalies"]) == (2, 0, 0)
    assert 0.0 <= row["ci95"][0] <= row["win_rate"] <= row["ci95"][1] <= 1.0
