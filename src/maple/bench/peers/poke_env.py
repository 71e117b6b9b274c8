"""poke-env: two RandomPlayers on a real local Showdown server, and its players as challengers."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any

from maple.core.errors import MissingExtraError
from maple.games.showdown.server import LocalServer

__all__ = ["PLAYERS", "Challenger", "PokeEnvSide", "load_poke_env"]

# Its own players, by the names of opponents in the box that they are like.
PLAYERS = {"random": "RandomPlayer", "power": "MaxBasePowerPlayer", "heuristic": "SimpleHeuristicsPlayer"}

CONCURRENT = 20
ENDLESS = 1_000_000
STOP_S = 10.0  # for a client to say goodbye
SILENT = 50  # the connection is cut at the end, which is no error here


def load_poke_env() -> Any:
    """The package, or what to do to get it."""
    try:
        import poke_env
    except ImportError:
        raise MissingExtraError("this needs poke-env; install it with: pip install 'maple-rl[peers]'") from None
    return poke_env


class Challenger:
    """One of poke-env's players, who challenges somebody again and again for as long as the `with` block lasts."""

    def __init__(self, kind: str, url: str, battle_format: str, team: str | None, at_a_time: int) -> None:
        poke_env = load_poke_env()
        where = poke_env.ServerConfiguration(url, poke_env.LocalhostServerConfiguration.authentication_url)
        name = f"{PLAYERS[kind][:9]}{random.SystemRandom().randrange(36**4):x}"
        self._player = getattr(poke_env.player, PLAYERS[kind])(
            poke_env.AccountConfiguration(name, None),
            battle_format=battle_format,
            max_concurrent_battles=at_a_time,
            server_configuration=where,
            log_level=SILENT,
            team=team,
        )
        self._work: Future[Any] | None = None

    def __enter__(self) -> Challenger:
        return self

    def challenge(self, name: str, battles: int) -> None:
        """Begin to challenge `name`, so many times in all."""
        from poke_env.concurrency import POKE_LOOP

        work = self._player._send_challenges(name, battles)
        self._work = asyncio.run_coroutine_threadsafe(work, POKE_LOOP)

    @property
    def finished_battles(self) -> int:
        """How many it has seen to their end."""
        return int(self._player.n_finished_battles)

    @property
    def open_battles(self) -> int:
        """How many have begun and not ended."""
        return len(self._player.battles) - self.finished_battles

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from poke_env.concurrency import POKE_LOOP

        if self._work is not None:
            self._work.cancel()
        with suppress(TimeoutError):  # a server that is gone does not answer
            asyncio.run_coroutine_threadsafe(self._player.ps_client.stop_listening(), POKE_LOOP).result(STOP_S)


class PokeEnvSide:
    """Battles that go on while a slice is measured and stand still between slices."""

    name = f"poke-env, RandomPlayer against RandomPlayer, local server, {CONCURRENT} battles at a time"

    def __init__(self, battle_format: str, seed: int) -> None:
        self._format, self._seed = battle_format, seed
        self._stack = ExitStack()
        self._decisions = 0
        self._open = threading.Event()

    def __enter__(self) -> PokeEnvSide:
        poke_env = load_poke_env()
        from poke_env.concurrency import POKE_LOOP
        from poke_env.player import RandomPlayer

        side = self

        class CountedPlayer(RandomPlayer):  # type: ignore[misc]  # poke-env is optional and not analysed
            """A RandomPlayer that counts its decisions and waits between slices."""

            async def choose_move(self, battle: Any) -> Any:
                while not side._open.is_set():
                    await asyncio.sleep(0.02)
                side._decisions += 1
                return self.choose_random_move(battle)

        random.seed(self._seed)
        server = self._stack.enter_context(LocalServer())
        where = poke_env.ServerConfiguration(server.url, poke_env.LocalhostServerConfiguration.authentication_url)
        players = [
            CountedPlayer(
                poke_env.AccountConfiguration(name, None),
                battle_format=self._format,
                max_concurrent_battles=CONCURRENT,
                server_configuration=where,
                log_level=SILENT,
            )
            for name in ("MapleOne", "MapleTwo")
        ]
        self._battles: Future[Any] = asyncio.run_coroutine_threadsafe(
            players[0]._battle_against(players[1], n_battles=ENDLESS), POKE_LOOP
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.clear()
        self._battles.cancel()
        self._stack.close()

    def slice(self, seconds: float) -> float:
        """Let the players go on for so long; returns decisions a second."""
        began, before = time.perf_counter(), self._decisions
        self._open.set()
        time.sleep(seconds)
        self._open.clear()
        return (self._decisions - before) / (time.perf_counter() - began)
