"""Servers that refuse, fall silent, are full or drop: a sentence or a counted loss, never a hang."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.node import NodeArena
from maple.bench.peers.poke_env import Challenger
from maple.core.errors import GameError
from maple.core.sources import load_config
from maple.core.step import Keys, Outcome, Step
from maple.games import entry, make_game
from maple.games.showdown.game import ShowdownGame, ShowdownSettings
from maple.games.showdown.server import LocalServer
from maple.runs.store import RunFolder
from maple.training.host import host_battles, played
from maple.training.session import train_run
from tests.cli.command import maple
from tests.games.showdown.faults import DumbServer, FakeServer, Relay, begin_and_stop, ignore, refuse

PATIENCE_S = 0.6


def open_arena(
    servers: str, tables: int, patience_s: float = PATIENCE_S, log: Callable[[str], None] = lambda _: None
) -> NodeArena:
    game = make_game("showdown", {"servers": servers, "patience_s": patience_s})
    return NodeArena(game, tables, 5, processes=1, log=log)


def steps(arena: NodeArena) -> Iterator[Step]:
    while True:
        step = arena.recv()
        yield step
        action = np.empty(len(step.keys), np.int32)
        arena.game.bot("heuristic")(step.view, 5, step.keys, action, 0, len(action))
        arena.send(action)


def test_a_server_that_says_nothing_is_told_in_a_sentence() -> None:
    sentence = r"the server at {} cannot be played on: it did not take the name \w+ within 0\.6 s; start it"
    for silent in (DumbServer(), FakeServer(ignore, greets=False)):
        with silent as server, pytest.raises(GameError, match=sentence.format(server.place)):
            open_arena(server.place, 2)


def test_a_full_server_is_told_in_a_sentence() -> None:
    with (
        FakeServer(ignore, full=True) as server,
        pytest.raises(GameError, match=r"cannot be played on: .*503.*; start it, or give another"),
    ):
        open_arena(server.place, 2)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (refuse, r"it refuses battles: The server is restarting\. Come back later; start it"),
        (ignore, r"it began no battle within 0\.6 s; start it"),
        (begin_and_stop, r"no battle goes on there any more: a battle stood still for 3\.6 s; start it"),
    ],
)
def test_a_server_without_battles_is_told_in_a_sentence(answer, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with FakeServer(answer) as server, open_arena(server.place, 2) as arena, pytest.raises(GameError, match=sentence):
        arena.recv()


def test_the_least_loaded_server_for_its_capacity_comes_first() -> None:
    began: list[int] = []

    def answering(number: int):  # type: ignore[no-untyped-def]
        return lambda server, who, whom: began.append(number)

    with FakeServer(answering(0)) as wide, FakeServer(answering(1)) as narrow:
        servers = f"{wide.place}/6,{narrow.place}/2"
        with open_arena(servers, 5, patience_s=4.0):
            wait_until(lambda: len(began) == 5)
    assert sorted(began) == [0, 0, 0, 0, 1]  # one of two is half of what it takes, as three of six are


def test_a_battle_that_stands_still_is_lost_alone(server: LocalServer) -> None:
    stuck, logged = list[str](), list[str]()

    def swallow(message: str) -> bool:
        if not stuck and "|turn|3" in message:
            stuck.append(message.split("\n")[0])
        return message.split("\n")[0] in stuck

    with Relay(server.url, swallow=swallow) as relay, open_arena(relay.place, 3, 2.5, logged.append) as arena:
        lost, whole = 0, 0
        for step in steps(arena):
            lost += int((step.ended.outcome == Outcome.LOST).sum())
            whole += int((step.ended.outcome == Outcome.TERMINATED).sum())
            if lost and whole >= 3:
                break
        assert lost == arena.counters.lost == 1
        (dropped,) = (line for line in logged if line.startswith("the battle at table"))
        assert "a battle stood still" in dropped
        assert arena.anomalies == []
        assert arena.counters.starts == 1


def test_a_server_with_room_for_fewer_plays_fewer(server: LocalServer) -> None:
    with Relay(server.url, most=2) as relay, open_arena(relay.place, 2, patience_s=4.0) as arena:
        whole, tables = 0, set()
        for step in steps(arena):
            whole += int((step.ended.outcome == Outcome.TERMINATED).sum())
            tables |= set(step.keys.table.tolist())
            if whole >= 4:
                break
        assert relay.refused > 0
        assert arena.counters.lost == 0
        assert tables == {0, 1}


def test_users_that_are_cut_off_lose_their_battles_and_come_back(server: LocalServer) -> None:
    with Relay(server.url) as relay, open_arena(relay.place, 3, patience_s=4.0) as arena:
        lost, whole, cut_after, made = 0, 0, -1, {}
        for step in steps(arena):
            for table in step.ended.table.tolist():
                made[table] = 0
            made |= dict(zip(step.keys.table.tolist(), step.keys.decision.tolist(), strict=True))
            lost += int((step.ended.outcome == Outcome.LOST).sum())
            whole += int((step.ended.outcome == Outcome.TERMINATED).sum())
            if cut_after < 0 and len(made) == 3 and min(made.values()) > 1:  # all three are in the middle of a battle
                relay.cut()
                cut_after = whole
            if lost and whole >= cut_after + 3:
                break
        assert lost == arena.counters.lost == 3


def agent_of(game: ShowdownGame):  # type: ignore[no-untyped-def]
    bot = game.bot("heuristic")

    def player(view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int32]:
        action = np.empty(len(view), np.int32)
        bot(view, seed, keys, action, 0, len(view))
        return action

    return player


def test_a_battle_against_others_goes_on_after_the_line_was_cut(server: LocalServer) -> None:
    with Relay(server.url) as relay, Challenger("random", server.url, "gen9randombattle", None, 2) as other:
        game = ShowdownGame(ShowdownSettings(servers=relay.place, patience_s=4.0), "Cut Maple", battles=2)
        play, found, asked, cuts = agent_of(game), [], {}, []

        def player(view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int32]:
            for table, number, decision in zip(keys.table, keys.game, keys.decision, strict=True):
                assert asked.get((table, number), 0) == decision
                asked[table, number] = decision + 1
            if not cuts and len(asked) == 2 and sum(asked.values()) > 20:
                cuts.append(relay.cut())
            return play(view, keys, seed)

        def ended(figures: NDArray[np.void]) -> bool:
            found.extend(figures)
            return len(found) < 2

        host_battles(game, player, 2, 1, lambda: other.challenge("Cut Maple", 2), ended)
    figures = np.array(found, game.spec.figures)
    assert cuts
    assert len(played(figures)) == 2
    assert np.allclose(figures["parts"][:, 0, 0], 2 * figures["score"][:, 0] - 1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has hardly learned."""
    folder = tmp_path_factory.mktemp("runs")
    settings = ["game.max_turns=10", "tables=8", "ppo.horizon=64", "ppo.minibatch=32", "net.hidden=[8]", "threads=1"]
    config = load_config("showdown", None, settings, entry("showdown").defaults, {"steps": 64})
    train_run(config, RunFolder(folder / "small"), lambda _: True)
    return folder


@contextmanager
def playing(runs: Path, place: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """`maple showdown play` once it waits for challenges; whatever happens here, it ends."""
    words = ["showdown", "play", "small", "--server", place, "--as", "Small Maple", "--runs-dir", str(runs), "--json"]
    command = [sys.executable, "-m", "maple.cli", *words, *more]
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a process in the background hands down deaf ears
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    with process as play:
        try:
            assert play.stderr is not None
            told = play.stderr.readline()
            while "waits for challenges in gen9randombattle" not in told:  # kernels may have to be compiled first
                assert told, "it ended"
                told = play.stderr.readline()
            yield play
        finally:
            play.kill()


def wait_until(holds) -> None:  # type: ignore[no-untyped-def]
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_play_with_too_many_battles_names_its_own_option() -> None:
    with FakeServer(ignore) as server:
        done = maple("showdown", "play", "random", "--server", f"{server.place}/2", "--at-a-time", "4")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    told = "4 battles at a time are too many for a server that takes 2; play with --at-a-time 2, or give it more room: "
    assert f"{told}--server HOST:PORT/4" in " ".join(done.stderr.split())


def test_play_begins_no_more_battles_than_it_was_asked_for(server: LocalServer, runs: Path) -> None:
    with (
        playing(runs, f"127.0.0.1:{server.port}", "--battles", "2") as play,
        Challenger("power", server.url, "gen9randombattle", None, 4) as other,
    ):
        other.challenge("Small Maple", 6)
        out, told = play.communicate(timeout=120)
        assert play.returncode == 0, told
        said = json.loads(out)
        assert (said["battles"], said["dropped"]) == (2, 0)
        wait_until(lambda: other.open_battles == 0)
        assert other.finished_battles == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_play_leaves_no_battle_open_when_it_is_stopped(how: signal.Signals, server: LocalServer, runs: Path) -> None:
    with (
        playing(runs, f"127.0.0.1:{server.port}") as play,
        Challenger("random", server.url, "gen9randombattle", None, 3) as other,
    ):
        other.challenge("Small Maple", 3)
        wait_until(lambda: other.open_battles > 0)  # the other two are about to begin
        play.send_signal(how)
        out, told = play.communicate(timeout=60)
        assert play.returncode == 0, told
        assert "given up" in told
        assert json.loads(out)["battles"] <= 3
        wait_until(lambda: other.open_battles == 0)
        assert other.finished_battles > 0
