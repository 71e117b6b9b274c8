"""A trained agent, ready to play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.config import Config
from maple.core.cores import available_cores
from maple.core.errors import ActionError, CheckpointError, ConfigError, GameError
from maple.core.step import Keys, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.nets.memory import Memory
from maple.nets.policy import OptionValue
from maple.training.checkpoint import Checkpoint, find_checkpoint, load_checkpoint
from maple.training.learners import Net
from maple.training.networks import checkpoint_net

__all__ = ["Agent", "load_agent", "load_agent_for"]

Observed = Mapping[str, Any]
UNKNOWN = (0, 1)  # the key of an observation without one: a seat in the middle of its game


class Agent:
    """Plays what it was trained on: `act` takes a Step, one observation or many, and answers in one batch."""

    def __init__(self, policy: Net, game: Game, config: Config, steps: int, weights_sha256: str = "") -> None:
        self.policy = policy
        self.game = game
        self.config = config
        self.steps = steps
        self.weights_sha256 = weights_sha256
        self.memory = Memory()
        self._acts = 0

    def act(
        self, seen: Step | Observed | Sequence[Observed], *, greedy: bool = True, seed: int = 0
    ) -> NDArray[np.int32] | int:
        """Actions for every row of a Step or of a list, or the action for one `observe(seat)` of the AEC env.

        Greedy by default; otherwise sampled, a function of `seed` and of the rows' keys (for bare observations, of how
        often this agent has acted before). An agent that remembers knows a Step's games by their keys, and those of
        observations by their place in the list and their `key`, which Maple's envs give. Where there is no `key` all
        are of one seat, and `reset()` has to be called before a new game.
        """
        if isinstance(seen, Step):
            return self.choose(seen.view, seen.keys, seed, greedy)
        rows = [seen] if isinstance(seen, Mapping) else list(seen)
        view = np.stack([self._view(row) for row in rows])
        self._acts += 1
        count = np.arange(len(rows), dtype=np.int32)
        seat, decision = np.array([row.get("key", UNKNOWN) for row in rows]).T
        keys = Keys(count, np.full(len(rows), self._acts, np.int64), seat.astype(np.int8), decision.astype(np.int32))
        action = self.choose(view, keys, seed, greedy)
        return int(action[0]) if isinstance(seen, Mapping) else action

    def reset(self) -> None:
        """Forget the games so far: what is seen next belongs to new ones. Only agents that remember need to be told."""
        self.memory = Memory()

    def set_caution(self, caution: float) -> None:
        """Play with another attitude to risk than in training: only agents of after-state values have one."""
        if not isinstance(self.policy, OptionValue):
            raise ConfigError(f"caution is of after-state values, and this agent learned by {self.config.algo}")
        self.policy.set_caution(caution)

    def _view(self, row: Observed) -> NDArray[np.uint64]:
        """The words of one observation, if there is something to decide."""
        words = self.game.spec.view
        view = np.asarray(row.get("view", ()), np.uint64)
        if view.shape != (words,):
            raise ActionError(
                f"an agent of {self.game.spec.name} plays from 'view', {words} words; hand it what observe(seat) gives"
            )
        if "action_mask" in row and not np.any(row["action_mask"]):
            raise ActionError("nothing is legal in this action_mask; let an agent act only for the seat in turn")
        return view

    def choose(self, view: NDArray[np.uint64], keys: Keys, seed: int, greedy: bool = True) -> NDArray[np.int32]:
        """Actions for rows of views."""
        return self.policy.choose(view, keys, seed, greedy, self.memory).action.astype(np.int32)

    def __call__(self, view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int32]:
        """Greedy play, for evaluation."""
        return self.choose(view, keys, seed)


def load_agent(run_or_checkpoint: str | Path, runs_dir: Path | None = None, team: Team | None = None) -> Agent:
    """The agent of a run's newest checkpoint, by the run's name or path, of `NAME@best`, or of a checkpoint folder."""
    path = find_checkpoint(run_or_checkpoint, runs_dir)
    checkpoint = load_checkpoint(path, with_state=False)
    game = make_game(checkpoint.config.name, checkpoint.config.game)
    return _agent(checkpoint, game, team or Team(available_cores()), str(path))


def load_agent_for(game: Game, run_or_checkpoint: str | Path, runs_dir: Path | None, team: Team) -> Agent:
    """The same for a seat of this game, whose options may be others than the run's if a seat sees the same by them."""
    path = find_checkpoint(run_or_checkpoint, runs_dir)
    checkpoint = load_checkpoint(path, with_state=False)
    if checkpoint.config.name != game.spec.name:
        raise GameError(f"that run plays {checkpoint.config.name}, not {game.spec.name}; name a run of the same game")
    try:
        return _agent(checkpoint, game, team, str(path))
    except CheckpointError:
        raise GameError(
            "that run was trained with game options under which a seat sees other things; name a run with the options "
            "of this game"
        ) from None


def _agent(checkpoint: Checkpoint, game: Game, team: Team, where: str) -> Agent:
    net = checkpoint_net(checkpoint.config, checkpoint.weights, game, team, where)
    meta = checkpoint.meta
    return Agent(net, game, checkpoint.config, int(meta["step"]), meta["sha256"]["weights.safetensors"])
