"""Games whose seats decide at the same time, as PettingZoo parallel environments."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.core.errors import ActionError, GameError
from maple.core.step import Outcome, Step
from maple.games import make_game
from maple.games.bridged import Bridged
from maple.games.contract import Game

__all__ = ["BridgedParallelEnv", "parallel_env"]

Observed = dict[str, NDArray[Any]]


class BridgedParallelEnv(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    """One table of a game in another program; made by `parallel_env`.

    Every agent that is left gets an observation each step. One with nothing to decide (the other is choosing who comes
    in for a fainted Pokémon) has an empty mask; what it answers is not read.
    """

    def __init__(self, game: Game, seed: int) -> None:
        spec = game.spec
        self.metadata = {"name": spec.name, "render_modes": [], "is_parallelizable": True}
        self.render_mode = None
        self.possible_agents = [f"seat_{seat}" for seat in range(spec.seats)]
        self.agents: list[str] = []
        self._game, self._seed, self._filler = game, seed, game.bot("random")
        self._arena: NodeArena | None = None
        self._step: Step | None = None
        self._seen = np.zeros((spec.seats, spec.view), np.uint64)
        self._decision = np.zeros(spec.seats, np.int64)
        self._observation_space = Dict(
            {
                "observation": Box(0, 255, (spec.observation,), np.uint8),
                "action_mask": Box(0, 1, (spec.actions,), np.int8),
                "view": Box(0, np.iinfo(np.uint64).max, (spec.view,), np.uint64),
                "key": Box(0, np.iinfo(np.int64).max, (2,), np.int64),
            }
        )
        self._action_space = Discrete(spec.actions)

    def observation_space(self, agent: str) -> Dict:
        """What a seat sees: `observation`, `action_mask`, and `view`, the words that a Maple agent plays from.

        `key` is the seat and how many decisions it made before in this game, by which an agent knows what to remember.
        """
        return self._observation_space

    def action_space(self, agent: str) -> Discrete[np.int64]:
        """All actions there are; the mask says which are open."""
        return self._action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observed], dict[str, dict[str, Any]]]:
        """Begin the first game of `seed`, or, without one, the next game."""
        if seed is not None:
            self.close()
            self._seed = seed
        if self._arena is None:
            self._arena = NodeArena(self._game, 1, self._seed, processes=1, limits=PoolLimits(spares=0))
            self._step = self._arena.recv()
        elif self.agents:
            self._abandon(self._arena)
        self.agents = self.possible_agents[:]
        self._seen[:], self._decision[:] = 0, 0
        return self._observe(), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Observed], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play the actions of all seats that have something to decide."""
        if not self.agents or self._arena is None or self._step is None:
            raise ActionError("the game is over; call reset() for the next one")
        rows = [self.possible_agents[seat] for seat in self._step.keys.seat]
        missing = [agent for agent in rows if agent not in actions]
        if missing:
            raise ActionError(f"{missing[0]} has to decide and step() got no action of it; give one for each agent")
        self._arena.send(np.array([int(actions[agent]) for agent in rows]))
        self._step = self._arena.recv()
        ended = self._step.ended
        over = len(ended.table) > 0
        cut = over and int(ended.outcome[0]) == Outcome.TRUNCATED
        if over and int(ended.outcome[0]) == Outcome.LOST:
            self.agents = []
            raise GameError("the bridge lost this game; call reset() for the next one")
        if over:
            self._seen = ended.last_view[0].copy() if cut else self._seen
            reward = ended.reward[0, :, 0]
            observed = {agent: self._encode(seat, cut) for seat, agent in enumerate(self.agents)}
        else:
            reward = np.zeros(len(self.agents), np.float32)
            reward[self._step.keys.seat] = self._step.reward[:, 0]
            observed = self._observe()
        agents = self.agents
        self.agents = [] if over else agents
        figures = {"figures": self._figures(ended.figures[0])} if over else {}
        return (
            observed,
            {agent: float(value) for agent, value in zip(agents, reward, strict=True)},
            dict.fromkeys(agents, over and not cut),
            dict.fromkeys(agents, cut),
            {agent: dict(figures) for agent in agents},
        )

    def close(self) -> None:
        """End the process that plays."""
        if self._arena is not None:
            self._arena.close()
        self._arena, self._step, self.agents = None, None, []

    def _abandon(self, arena: NodeArena) -> None:
        """Go on to the next game: what is left of this one is played at random."""
        assert self._step is not None
        over = False
        while not over:
            action = np.zeros(len(self._step.keys), np.int32)
            self._filler(self._step.view, self._seed, self._step.keys, action, 0, len(action))
            arena.send(action)
            self._step = arena.recv()
            over = len(self._step.ended.table) > 0

    def _observe(self) -> dict[str, Observed]:
        """What every seat sees; a seat that waits sees its last decision, with nothing open."""
        assert self._step is not None
        asked = self._step.keys.seat.tolist()
        self._seen[asked], self._decision[asked] = self._step.view, self._step.keys.decision
        return {agent: self._encode(seat, seat in asked) for seat, agent in enumerate(self.possible_agents)}

    def _encode(self, seat: int, open_: bool) -> Observed:
        spec, view = self._game.spec, self._seen[seat]
        key = np.array([seat, self._decision[seat]], np.int64)
        observation, mask = np.zeros((1, spec.observation), np.uint8), np.zeros((1, spec.actions), np.bool_)
        if view.any():
            self._game.observe(view.reshape(1, -1).copy(), observation, mask, 0, 1)
        mask &= open_
        return {"observation": observation[0], "action_mask": mask[0].view(np.int8), "view": view.copy(), "key": key}

    @staticmethod
    def _figures(record: np.void) -> dict[str, Any]:
        return {name: record[name].tolist() for name in record.dtype.names or () if name not in ("how", "reward")}


def parallel_env(game_name: str = "showdown", seed: int = 0, **game_options: Any) -> BridgedParallelEnv:
    """A game whose seats decide at the same time as a PettingZoo ParallelEnv with agents `seat_0`, `seat_1`.

    env = parallel_env("showdown", seed=7)
    observed, _ = env.reset()
    while env.agents:
        actions = {seat: agent.act(observed[seat]) for seat in env.agents if observed[seat]["action_mask"].any()}
        observed, rewards, terminated, truncated, infos = env.step(actions)
    env.close()
    """
    game = make_game(game_name, game_options)
    if not isinstance(game, Bridged):
        raise GameError(f"the seats of {game_name} act in turn; use aec_env({game_name!r})")
    return BridgedParallelEnv(game, seed)
