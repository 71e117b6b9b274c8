"""For users of Stable-Baselines3: Maple's arenas as its VecEnv, and its saved policies as opponents."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.arena.choose import external_arena
from maple.arena.serial import SerialArena
from maple.arena.workers import WorkerArena
from maple.core.cores import available_cores
from maple.core.errors import ActionError, CheckpointError, GameError, MissingExtraError
from maple.core.spec import GameSpec
from maple.core.step import Ended, Keys, Outcome, Step
from maple.games import make_game
from maple.games.external.game import ExternalGame

try:
    from stable_baselines3.common.vec_env import VecEnv as BaseVecEnv
except ImportError:
    raise MissingExtraError("stable-baselines3 is not installed; get it with pip install 'maple-rl[peers]'") from None

__all__ = ["Sb3Agent", "VecEnv", "load"]


class VecEnv(BaseVecEnv):  # type: ignore[misc]  # Stable-Baselines3 is not typed here
    """Envs of the user's own in a Maple arena. Masks come with the observations: asking for them is no round trip.

        envs = maple.sb3.VecEnv("my_package.my_module:make_env", envs=32, size=9)
        MaskablePPO("MlpPolicy", envs).learn(100_000)

    A native game is an env too: `VecEnv("maple.adapters:gym_env", envs=32, game_name="ofc")`. What is not a parameter
    here is an argument of the env.
    """

    def __init__(
        self, env: str, *, envs: int = 32, seed: int = 0, workers: int | Literal["auto"] = "auto", **arguments: Any
    ) -> None:
        game = make_game(env, arguments)
        if not isinstance(game, ExternalGame) or game.spec.seats != 1:
            raise GameError(
                f"{env} is no env with one seat, which is all that Stable-Baselines3 knows; for a game of several "
                'seats give "maple.adapters:gym_env" and its name as game_name'
            )
        self._game, self._count, self._workers = game, envs, workers
        self._arena = self._open(seed)
        self._step: Step | None = None
        self._action: NDArray[Any] = np.zeros(envs, np.int64)
        self._began = time.time()
        super().__init__(envs, _observation_space(game.spec), Discrete(game.spec.actions))

    def _open(self, seed: int) -> SerialArena | WorkerArena:
        return external_arena(
            self._game, self._count, seed, self._workers, available_cores(), halves=1, grace_s=float("inf")
        )

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Play the games of another seed from the next reset() on."""
        if seed is not None:
            self._arena.close()
            self._arena, self._step = self._open(seed), None
        return [seed] * self.num_envs

    def reset(self) -> NDArray[Any]:
        """The first observations; games that are under way go on, as an arena's do."""
        if self._step is None:
            self._step = self._arena.recv()
        return self._step.observation.copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions."""
        self._action = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play them."""
        self._arena.send(self._action)
        self._step = step = self._arena.recv()
        reward = step.reward[:, 0].copy()
        done = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if len(step.ended.table):
            done[step.ended.table] = True
            reward[step.ended.table] = step.ended.reward[:, 0, 0]
            self._tell_ended(step.ended, infos)
        return step.observation.copy(), reward, done, infos

    def _tell_ended(self, ended: Ended, infos: list[dict[str, Any]]) -> None:
        cut = {int(row): view for row, view in zip(ended.cut, ended.last_view, strict=True)}
        for row, table in enumerate(ended.table.tolist()):
            figures, info = ended.figures[row], infos[table]
            info["TimeLimit.truncated"] = row in cut
            info["lost"] = bool(ended.outcome[row] == Outcome.LOST)
            info["episode"] = {
                "r": float(figures["score"][0]),
                "l": int(figures["length"]),
                "t": time.time() - self._began,
            }
            if row in cut:
                info["terminal_observation"] = self._game.plan.layout.observation_of(cut[row])[0].copy()

    def action_masks(self) -> NDArray[np.bool_]:
        """(N, A) the open actions of every env."""
        if self._step is None:
            self._step = self._arena.recv()
        return self._step.mask.copy()

    def close(self) -> None:
        """End the arena."""
        self._arena.close()

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
        known = {"render_mode": None} | ({"action_masks": None} if self._game.plan.layout.masked else {})
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


class Sb3Agent:
    """A policy that Stable-Baselines3 trained; plays greedily, under masks."""

    def __init__(self, tower: nn.Sequential, path: Path) -> None:
        self._tower, self._path = tower, path
        first = tower[0]
        assert isinstance(first, nn.Linear)
        self.observation = first.in_features

    @torch.no_grad()
    def choose(self, observation: NDArray[Any], mask: NDArray[Any]) -> NDArray[np.int32]:
        """An action for every row."""
        logits: Tensor = self._tower(torch.from_numpy(np.ascontiguousarray(observation, np.float32)))
        if logits.shape[1] != mask.shape[1] or observation.shape[1] != self.observation:
            raise ActionError(
                f"{self._path} plays {self.observation} numbers and {logits.shape[1]} actions, not "
                f"{observation.shape[1]} and {mask.shape[1]}; it was trained on another game"
            )
        open_to = torch.from_numpy(np.ascontiguousarray(mask, np.bool_))
        return logits.masked_fill(~open_to, -torch.inf).argmax(1).numpy().astype(np.int32)

    def act(self, seen: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> NDArray[np.int32] | int:
        """The action for one `observe(seat)` of an AEC env, or for several: an opponent for `gym_env`."""
        rows = [seen] if isinstance(seen, Mapping) else list(seen)
        observation = np.stack([row["observation"] for row in rows])
        action = self.choose(observation, np.stack([row["action_mask"] for row in rows]))
        return int(action[0]) if isinstance(seen, Mapping) else action

    def player(self, game: Any) -> Any:
        """The policy as a player of `maple.training.evaluate`, from a game's views."""

        def choose(view: NDArray[np.uint64], keys: Keys, seed: int) -> NDArray[np.int32]:
            observation = np.empty((len(view), game.spec.observation), game.spec.dtype)
            mask = np.empty((len(view), game.spec.actions), np.bool_)
            game.observe(view, observation, mask, 0, len(view))
            return self.choose(observation, mask)

        return choose


def load(path: str | Path, activation: Literal["tanh", "relu"] = "tanh") -> Sb3Agent:
    """The actor of a model that Stable-Baselines3 or sb3-contrib saved with an `MlpPolicy`.

    Only its weights are read, without unpickling anything; so the activation, which is saved as a pickle, has to be
    told where it is not the usual one.
    """
    source = Path(path if str(path).endswith(".zip") else f"{path}.zip")
    try:
        with zipfile.ZipFile(source) as archive:
            weights: dict[str, Tensor] = torch.load(
                BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True
            )
    except (OSError, KeyError, zipfile.BadZipFile, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{source} cannot be read as a model of Stable-Baselines3 ({type(error).__name__}); give what model.save() "
            "wrote"
        ) from None
    return Sb3Agent(_tower(weights, source, {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]), source)


def _tower(weights: dict[str, Tensor], source: Path, activation: type[nn.Module]) -> nn.Sequential:
    """The layers from an observation to the logits."""
    prefix = "mlp_extractor.policy_net."
    numbers = sorted(int(name.split(".")[2]) for name in weights if name.startswith(prefix) and name.endswith("weight"))
    names = [*(f"{prefix}{number}" for number in numbers), "action_net"]
    if any(f"{name}.weight" not in weights for name in names) or len(numbers) == 0:
        raise CheckpointError(
            f"{source} holds no MlpPolicy with an actor; save a PPO, A2C or MaskablePPO model with one"
        )
    parts: list[nn.Module] = []
    for name in names:
        height, width = weights[f"{name}.weight"].shape
        layer = nn.Linear(width, height)
        layer.load_state_dict({"weight": weights[f"{name}.weight"], "bias": weights[f"{name}.bias"]})
        parts += [layer, activation()]
    return nn.Sequential(*parts[:-1]).requires_grad_(False)
