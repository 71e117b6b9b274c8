"""Policies that Stable-Baselines3 saved, as opponents: their weights alone are read, nothing is unpickled."""

from __future__ import annotations

import pickle
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maple.core.errors import ActionError, CheckpointError, ConfigError
from maple.core.step import Keys

__all__ = ["Sb3Agent", "load"]

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


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
    if activation not in ACTIVATIONS:
        raise ConfigError(
            f"there is no activation {activation!r}; give {' or '.join(ACTIVATIONS)}, as the model has it"
        )
    source = Path(path if str(path).endswith(".zip") else f"{path}.zip")
    return Sb3Agent(_tower(_weights(source), source, ACTIVATIONS[activation]), source)


def _weights(source: Path) -> dict[str, Tensor]:
    """What a saved model's policy.pth holds: arrays by name, and nothing that has to be run to be read."""
    try:
        with zipfile.ZipFile(source) as archive:
            content = archive.read("policy.pth")
        found = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise CheckpointError(
            f"policy.pth in {source} is damaged or holds more than weights, such as code, and was not loaded; "
            "give what model.save() wrote"
        ) from None
    except (
        OSError,
        LookupError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise CheckpointError(
            f"{source} cannot be read as a model of Stable-Baselines3 ({type(error).__name__}); give what model.save() "
            "wrote"
        ) from None
    if not isinstance(found, Mapping) or not all(isinstance(weight, Tensor) for weight in found.values()):
        raise CheckpointError(f"policy.pth in {source} is no list of weights; give what model.save() wrote")
    return dict(found)


def _tower(weights: dict[str, Tensor], source: Path, activation: type[nn.Module]) -> nn.Sequential:
    """The layers from an observation to the logits."""
    begin = "mlp_extractor.policy_net."
    numbers = [name.removeprefix(begin).removesuffix(".weight") for name in weights if name.startswith(begin)]
    hidden = sorted(int(number) for number in numbers if number.isdigit())
    names = [*(f"{begin}{number}" for number in hidden), "action_net"]
    if not hidden or any(f"{name}.{kind}" not in weights for name in names for kind in ("weight", "bias")):
        raise CheckpointError(
            f"{source} holds no MlpPolicy with an actor; save a PPO, A2C or MaskablePPO model with one"
        )
    parts: list[nn.Module] = []
    width = weights[f"{names[0]}.weight"].shape[-1]
    for name in names:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        if weight.dim() != 2 or weight.shape[1] != width or bias.shape != weight.shape[:1]:
            raise CheckpointError(f"the layers in {source} do not fit together at {name}; give what model.save() wrote")
        width = weight.shape[0]
        layer = nn.Linear(weight.shape[1], width)
        layer.load_state_dict({"weight": weight, "bias": bias})
        parts += [layer, activation()]
    return nn.Sequential(*parts[:-1]).requires_grad_(False)
