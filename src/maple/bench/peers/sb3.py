"""sb3-contrib's MaskablePPO on SubprocVecEnv over Maple's own Gymnasium env, or on its VecEnv over battles in Node."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maple.adapters import gym_env
from maple.bench.peers.sb3_side import NEEDED, Sb3LearningSide
from maple.core.errors import MissingExtraError
from maple.games import make_game
from maple.games.bridged import Bridged

__all__ = ["Sb3Policy", "Sb3Side"]

ENVS, STEPS, BATCH, EPOCHS, LEARNING_RATE = 4, 2048, 256, 10, 1e-4
BATTLES = 32  # envs of one VecEnv, for as many steps in all


class Sb3Policy:
    """MaskablePPO's network on a batch of observations under their masks, by torch's own threads."""

    name = "sb3-contrib's policy, its own network"

    def __init__(self, observation: NDArray[Any], mask: NDArray[np.bool_], threads: int) -> None:
        try:
            from gymnasium.spaces import Box, Discrete
            from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
        except ImportError:
            raise MissingExtraError(NEEDED) from None
        space = Box(0, 1, (observation.shape[1],), np.float32)
        self._policy = MaskableActorCriticPolicy(space, Discrete(mask.shape[1]), lambda _: LEARNING_RATE)
        self._observation, self._mask, self._threads = observation, mask, threads

    def slice(self, seconds: float) -> float:
        """Choose for `seconds`; returns decisions a second."""
        torch.set_num_threads(self._threads)
        began, rows = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            with torch.no_grad():
                seen = torch.from_numpy(self._observation).float()
                self._policy(seen, action_masks=self._mask)
            rows += len(self._observation)
        torch.set_num_threads(1)
        return rows / (time.perf_counter() - began)


class Sb3Side(Sb3LearningSide):
    """A MaskablePPO run that is measured in slices of whole updates: one learner, random opponents."""

    def __init__(self, game: str, game_options: dict[str, Any], seed: int, steps: int = STEPS) -> None:
        try:
            from sb3_contrib import MaskablePPO
            from stable_baselines3.common.vec_env import SubprocVecEnv
        except ImportError:
            raise MissingExtraError(NEEDED) from None
        if isinstance(make_game(game, game_options), Bridged):
            from maple.adapters.sb3 import VecEnv

            kind, envs, steps = "maple.sb3.VecEnv", BATTLES, max(1, ENVS * steps // BATTLES)
            env = VecEnv(game, envs=envs, seed=seed, opponents="random", **game_options)
        else:
            kind, envs = "SubprocVecEnv", ENVS
            makers = [partial(gym_env, game, opponents="random", seed=seed + i, **game_options) for i in range(envs)]
            env = SubprocVecEnv(makers, start_method="forkserver")
        self.name = f"sb3-contrib MaskablePPO, {kind}({envs}), n_steps {steps}, batch {BATCH}, {EPOCHS} epochs"
        model = MaskablePPO(
            "MlpPolicy",
            env,
            learning_rate=LEARNING_RATE,
            n_steps=steps,
            batch_size=BATCH,
            n_epochs=EPOCHS,
            device="cpu",
            seed=seed,
        )
        super().__init__(env, model, envs * steps, EPOCHS / BATCH)
