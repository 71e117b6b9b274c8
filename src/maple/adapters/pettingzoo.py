"""Native games as PettingZoo environments."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray
from pettingzoo import AECEnv

from maple.adapters.table import OneTable
from maple.core.errors import ActionError, GameError
from maple.games import make_game
from maple.games.contract import Game, Readable

__all__ = ["NativeAECEnv", "aec_env"]


class NativeAECEnv(AECEnv):  # type: ignore[misc]  # PettingZoo has no types
    """One table of a native game; made by `aec_env`."""

    def __init__(self, game: Game, seed: int, render_mode: str | None) -> None:
        spec = game.spec
        self.metadata = {"name": spec.name, "render_modes": ["ansi"], "is_parallelizable": False}
        self.render_mode = render_mode
        self.possible_agents = [f"seat_{seat}" for seat in range(spec.seats)]
        self._seat = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {agent: _observation_space(game) for agent in self.possible_agents}
        self.action_spaces = {agent: Discrete(spec.actions) for agent in self.possible_agents}
        self._readable = _readable(game, render_mode)
        self._table = OneTable(game, seed)
        self._seen = np.zeros((spec.seats, spec.view), np.uint64)  # each seat's last decision ...
        self._decision = np.zeros(spec.seats, np.int64)  # ... and its number
        self._deal()
        self._handed_out = False  # whether a reset() means another game than the one at the table

    def observation_space(self, agent: str) -> Dict:
        """What `observe` gives."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete[np.int64]:
        """All actions there are; the mask says which are open."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin the first game of `seed`, or, without one, the next game."""
        if seed is not None:
            self._table.begin(seed)
        elif self._handed_out:
            self._table.abandon()
        self._handed_out = True
        self._deal()

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """A seat's decision: `observation`, `action_mask`, and `view`, the words that a Maple agent plays from.

        `key` is the seat and how many decisions it made before in this game, by which an agent knows what to remember.
        A seat that is not in turn sees its last decision (zeros before its first), with nothing legal. After a cut
        each seat sees the decision that the cut left it with.
        """
        view = self._seen[self._seat[agent]]
        observation, mask = self._table.encode(view)
        waiting = agent == self.agent_selection and agent in self.agents and not self.terminations[agent]
        if not waiting and not self.truncations.get(agent, False):
            mask[:] = False
        key = np.array([self._seat[agent], self._decision[self._seat[agent]]], np.int64)
        return {"observation": observation, "action_mask": mask.view(np.int8), "view": view.copy(), "key": key}

    def step(self, action: Any) -> None:
        """Play the action of the seat in turn; None for one whose game has ended."""
        if not self.agents:
            raise ActionError("the game is over; call reset() for the next one")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        table = self._table
        _, mask = table.encode(table.view)
        table.action[0] = table.legal(action, mask)
        self._handed_out = True
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if table.advance():
            self._select()
        else:
            self._end()
        self._accumulate_rewards()

    def render(self) -> str | None:
        """What the seat in turn sees, as text; None without render_mode="ansi"."""
        if self._readable is None or not self.agents:
            return None
        agent = self.agent_selection
        lines = [f"{agent}:", self._readable.show(self._seen[self._seat[agent]])]
        figures = self.infos[agent].get("figures", {})
        return "\n".join(lines + [f"{name}: {value}" for name, value in figures.items()])

    def close(self) -> None:
        """Nothing to close."""

    def _deal(self) -> None:
        """Turn to the first decision of the game at the table."""
        self._seen[:], self._decision[:] = 0, 0
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._select()

    def _select(self) -> None:
        """Turn to the seat whose decision waits, with what it earned since it last acted."""
        seat = self._table.seat
        self.agent_selection = self.possible_agents[seat]
        self._seen[seat], self._decision[seat] = self._table.view[0], self._table.decision
        self.rewards[self.agent_selection] = float(self._table.reward[0, 0])

    def _end(self) -> None:
        """Give every seat its last reward and the figures, also those that had nothing left to decide."""
        cut = self._table.truncated
        self._handed_out = False
        for agent in self.agents:
            seat = self._seat[agent]
            self.rewards[agent] = self._table.last_reward(seat)
            self.terminations[agent], self.truncations[agent] = not cut, cut
            self.infos[agent] = {"figures": self._table.figures()}
            if cut:
                self._seen[seat] = self._table.last_view(seat)
        self.agent_selection = self.agents[0]


def _observation_space(game: Game) -> Dict:
    spec = game.spec
    return Dict(
        {
            "observation": Box(0, 255, (spec.observation,), np.uint8),
            "action_mask": Box(0, 1, (spec.actions,), np.int8),
            "view": Box(0, np.iinfo(np.uint64).max, (spec.view,), np.uint64),
            "key": Box(0, np.iinfo(np.int64).max, (2,), np.int64),
        }
    )


def _readable(game: Game, render_mode: str | None) -> Readable | None:
    if render_mode is None:
        return None
    if render_mode != "ansi":
        raise GameError(f"render_mode {render_mode!r} cannot be used; give 'ansi' or None")
    if not isinstance(game, Readable):
        raise GameError(f"{game.spec.name} cannot be shown as text; leave render_mode out")
    return game


def aec_env(game_name: str, seed: int = 0, *, render_mode: str | None = None, **game_options: Any) -> NativeAECEnv:
    """A native game as a PettingZoo AECEnv with agents `seat_0`, `seat_1`, …

    The first game is dealt at once; `reset(seed=n)` deals the first game of seed n, a bare `reset()` the next game. A
    reward comes when its seat next acts or when the game ends; at the end every agent's info carries the game's
    `figures`.

        env = aec_env("ofc", seed=7, seats=2)
        env.reset()
        for seat in env.agent_iter():
            observed, reward, terminated, truncated, info = env.last()
            env.step(None if terminated or truncated else agent.act(observed))
    """
    return NativeAECEnv(make_game(game_name, game_options), seed, render_mode)
