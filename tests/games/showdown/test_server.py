"""Battles on real servers from the npm package, on this machine alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from maple.arena.node import NodeArena
from maple.bench.peers.poke_env import Challenger
from maple.core.errors import GameError
from maple.core.step import Outcome, Step
from maple.games import make_game
from maple.games.showdown.game import ShowdownGame, ShowdownSettings
from maple.games.showdown.places import CAPACITY, parse_servers
from maple.games.showdown.server import LocalServer
from maple.training.host import host_battles, played
from tests.games.showdown.squads import HERD


def open_arena(servers: str, tables: int, **options: str) -> NodeArena:
    game = make_game("showdown", {"servers": servers, **options})
    return NodeArena(game, tables, 5, processes=2)


def steps(arena: NodeArena, bot: str) -> Iterator[Step]:
    while True:
        step = arena.recv()
        yield step
        action = np.empty(len(step.keys), np.int32)
        arena.game.bot(bot)(step.view, 5, step.keys, action, 0, len(action))
        arena.send(action)


def test_a_server_that_drops_costs_its_own_battles_only(server: LocalServer) -> None:
    with LocalServer() as weak, open_arena(f"127.0.0.1:{weak.port}/2,127.0.0.1:{server.port}/4", 6) as arena:
        lost, whole, killed = 0, 0, False
        decisions: dict[tuple[int, int, int], int] = {}
        for step in steps(arena, "heuristic"):
            for table, game, seat, decision in zip(*(column.tolist() for column in vars_of(step)), strict=True):
                assert decisions.get((table, game, seat), 0) == decision
                decisions[table, game, seat] = decision + 1
            lost += int((step.ended.outcome == Outcome.LOST).sum())
            whole += int((step.ended.outcome == Outcome.TERMINATED).sum())
            if not killed and len({where[0] for where in decisions}) == 6:
                os.kill(weak._server.pid, signal.SIGKILL)
                killed = True
            if killed and lost and whole >= 8:
                break
        assert lost == 2
        assert arena.counters.lost == 2
        assert arena.counters.starts == 1
        assert (step.ended.figures["score"].sum(axis=1) <= 1).all()


def vars_of(step: Step) -> tuple[np.ndarray, ...]:
    return step.keys.table, step.keys.game, step.keys.seat, step.keys.decision


def test_long_battles_are_cut_off_and_teams_are_brought(server: LocalServer, tmp_path: Path) -> None:
    team = tmp_path / "herd.txt"
    team.write_text(HERD)
    where = f"127.0.0.1:{server.port}"
    with open_arena(where, 2, format="gen9ou", team=str(team), max_turns="4") as arena:
        ended = 0
        for step in steps(arena, "random"):
            for cut, views in zip(step.ended.cut, step.ended.last_view, strict=True):
                assert step.ended.figures["turns"][cut] == 5
                assert views[:, 0].all()
            ended += len(step.ended.table)
            parts = step.ended.figures["parts"].sum(axis=(1, 2))
            assert np.isfinite(parts).all()
            if ended >= 3:
                break
        assert arena.counters.anomalies == 0


def test_places_are_understood() -> None:
    first, second = parse_servers("localhost:8000/12, wss://sim.example.org")
    assert (first.url, first.capacity) == ("ws://localhost:8000/showdown/websocket", 12)
    assert (second.place, second.capacity) == ("sim.example.org:443", CAPACITY)
    for wrong in ("localhost:8000/0", "localhost:99999", "local host", "localhost:eight"):
        with pytest.raises(GameError, match="is no server"):
            parse_servers(wrong)


def test_servers_that_refuse_or_are_full_are_told_in_a_sentence(server: LocalServer) -> None:
    with pytest.raises(GameError, match=r"the server at 127\.0\.0\.1:9 cannot be played on: .*start it"):
        open_arena("127.0.0.1:9", 2)
    many = "4 battles at a time are too many for servers that take 2; play at --set tables=2, or .* HOST:PORT/4$"
    with open_arena(f"127.0.0.1:{server.port}/2", 4) as arena, pytest.raises(GameError, match=many):
        arena.recv()


def test_one_of_poke_envs_players_can_challenge(server: LocalServer) -> None:
    settings = ShowdownSettings(servers=f"127.0.0.1:{server.port}")
    game, found = ShowdownGame(settings, "Host for tests"), []
    bot = game.bot("heuristic")

    def player(view: np.ndarray, keys, seed: int) -> np.ndarray:  # type: ignore[no-untyped-def]
        action = np.empty(len(view), np.int32)
        bot(view, seed, keys, action, 0, len(view))
        return action

    def ended(figures: np.ndarray) -> bool:
        found.extend(figures)
        return len(found) < 6

    with Challenger("random", server.url, "gen9randombattle", None, 3) as other:
        host_battles(game, player, 3, 1, lambda: other.challenge("Host for tests", 6), ended)
    assert played(np.array(found, game.spec.figures)).mean() > 0.6
