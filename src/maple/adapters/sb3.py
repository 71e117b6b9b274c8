"""For users of Stable-Baselines3: Maple's arenas as its VecEnv."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from maple.adapters.lockstep import Finished, Lockstep, find_bots
from maple.arena.base import Arena
from maple.arena.choose import external_arena
from maple.arena.native import NativeArena
from maple.arena.node import NodeArena
from maple.arena.workers import WorkerArena
from maple.core.cores import available_cores
from maple.core.errors import GameError, MissingExtraError
from maple.core.spec import GameSpec
from maple.core.threads import Team
from maple.games import make_game
from maple.games.bridged import Bridged
from maple.games.external.game import ExternalGame

try:
    from stable_baselines3.common.vec_env import VecEnv as BaseVecEnv
except ImportError:
    raise MissingExtraError("stable-baselines3 is not installed; get it with pip install 'maple-rl[peers]'") from None

__all__ = ["VecEnv"]


class VecEnv(BaseVecEnv):  # type: ignore[misc]  # Stable-Baselines3 is not typed here
    """Any game in a Maple arena. Masks come with the observations: asking for them is no round trip.

        envs = maple.sb3.VecEnv("my_package.my_module:make_env", envs=32, size=9)
        envs = maple.sb3.VecEnv("ofc", envs=32, opponents="safe", seats=2)
        MaskablePPO("MlpPolicy", envs).learn(100_000)

    `opponents`, bots in the box, play the other seats: one name, or one for each seat after the learner's, which moves
    from game to game. `workers` are for envs of your own. What is not a parameter here is an argument of the env, or an
    option of the game.
    """

    def __init__(
        self,
        env: str,
        *,
        envs: int = 32,
        seed: int = 0,
        workers: int | Literal["auto"] = "auto",
        opponents: str | Sequence[str] = "random",
        **arguments: Any,
    ) -> None:
        self._game = game = make_game(env, arguments)
        if workers != "auto" and not isinstance(game, ExternalGame):
            raise GameError(f"workers play envs of your own; {env} is played by threads or Node: leave workers out")
        self._count, self._seed, self._workers, self._bots = envs, seed, workers, find_bots(game, opponents)
        self._tables: Lockstep | None = None  # are opened when they are needed: seed() may come first
        self._action: NDArray[Any] = np.zeros(envs, np.int64)
        self._began = time.time()
        super().__init__(envs, _observation_space(game.spec), Discrete(game.spec.actions))

    def _open(self, state: dict[str, NDArray[Any]] | None) -> Lockstep:
        """The tables, at their first games, or at those after the ones that a state of an arena says."""
        arena = self._open_arena()
        try:
            if state is not None:
                arena.restore(state)
            return Lockstep(arena, self._game, self._bots, self._seed)
        except BaseException:
            arena.close()
            raise

    def _open_arena(self) -> Arena:
        game, count, seed, cores = self._game, self._count, self._seed, available_cores()
        if isinstance(game, ExternalGame):
            arena = external_arena(game, count, seed, self._workers, cores, parts="whole", grace_s=float("inf"))
            self._workers = arena.workers if isinstance(arena, WorkerArena) else 0  # is chosen once
            return arena
        if isinstance(game, Bridged):
            # A lane for each table, so that each can be held; everybody waits for the last.
            return NodeArena(game, count, seed, processes=min(cores, count), lanes=count, grace_s=float("inf"))
        return NativeArena(game, count, seed, Team(cores), owns_team=True)

    @property
    def _playing(self) -> Lockstep:
        self._tables = self._tables or self._open(None)
        return self._tables

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Play the games of another seed from the next reset() on."""
        if seed is not None:
            self.close()
            self._seed = seed
        return [seed] * self.num_envs

    def reset(self) -> NDArray[Any]:
        """Begin the next games everywhere, unless all have just begun; the first observations."""
        tables = self._playing
        if not tables.is_fresh:
            self._begin_anew(tables)
        return self._playing.observation.copy()

    def _begin_anew(self, tables: Lockstep) -> None:
        """Games that bots can end are played to their end; an env of the user's own may have none, and is made anew."""
        if not isinstance(self._game, ExternalGame):
            tables.abandon()
            return
        state = tables.arena.state()
        self.close()
        self._tables = self._open(state)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions."""
        self._action = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play them."""
        tables = self._playing
        done = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for game in tables.step(self._action):
            done[game.table] = True
            infos[game.table] = self._info(game)
        return tables.observation.copy(), tables.reward.copy(), done, infos

    def _info(self, game: Finished) -> dict[str, Any]:
        info: dict[str, Any] = {"TimeLimit.truncated": game.truncated, "lost": game.lost}
        info["episode"] = {"r": game.earned, "l": game.decisions, "t": time.time() - self._began}
        return info if game.last_seen is None else {**info, "terminal_observation": game.last_seen}

    def action_masks(self) -> NDArray[np.bool_]:
        """(N, A) the open actions of every env."""
        return self._playing.mask.copy()

    def close(self) -> None:
        """End the arena."""
        if self._tables is not None:
            self._tables.arena.close()
        self._tables = None

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """`action_masks` alone; envs in an arena have no other methods to call."""
        if method_name != "action_masks":
            raise GameError(f"envs in an arena have no method {method_name!r} to call; only 'action_masks'")
        masks = self.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """`render_mode` and whether there are masks; raises AttributeError otherwise."""
        masked = not isinstance(self._game, ExternalGame) or self._game.plan.layout.masked
        known = {"render_mode": None} | ({"action_masks": None} if masked else {})
        if attr_name not in known:
            raise AttributeError(f"envs in an arena have no attribute {attr_name!r} to read")
        return [known[attr_name] for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Not to be had: envs live in the arena."""
        raise AttributeError(f"{attr_name!r} cannot be set on envs in an arena; give it as an argument of the env")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        """No env is: returns and lengths of games are told in the infos without Monitor."""
        return [False for _ in self._get_indices(indices)]


def _observation_space(spec: GameSpec) -> Box:
    if spec.dtype == np.uint8:
        return Box(0, 255, (spec.observation,), np.uint8)
    return Box(-np.inf, np.inf, (spec.observation,), np.float32)
