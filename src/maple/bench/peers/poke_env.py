"""poke-env: two RandomPlayers on a real local Showdown server."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from maple.core.errors import MissingExtraError
from maple.games.showdown.server import LocalServer

__all__ = ["PokeEnvSide"]

CONCURRENT = 20
ENDLESS = 1_000_000
SILENT = 50  # the connection is cut at the end, which is no error here


class PokeEnvSide:
    """Battles that go on while a slice is measured and stand still between slices."""

    name = f"poke-env, RandomPlayer against RandomPlayer, local server, {CONCURRENT} battles at a time"

    def __init__(self, battle_format: str, seed: int) -> None:
        self._format, self._seed = battle_format, seed
        self._stack = ExitStack()
        self._decisions = 0
        self._open = threading.Event()

    def __enter__(self) -> PokeEnvSide:
        try:
            from poke_env import AccountConfiguration, LocalhostServerConfiguration, ServerConfiguration
            from poke_env.concurrency import POKE_LOOP
            from poke_env.player import RandomPlayer
        except ImportError:
            raise MissingExtraError("the peer needs poke-env; install it with: pip install 'maple-rl[peers]'") from None
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
        where = ServerConfiguration(server.url, LocalhostServerConfiguration.authentication_url)
        players = [
            CountedPlayer(
                AccountConfiguration(name, None),
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
