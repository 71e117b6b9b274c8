"""Networks from checkpoints, ready to play."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from maple.core.config import Config
from maple.core.errors import CheckpointError, ConfigError
from maple.core.threads import Team
from maple.games.contract import Game
from maple.nets.seen import Seen
from maple.training.learners import Net, load_weights, make_policy

__all__ = ["checkpoint_net", "choose_device"]


def choose_device(config: Config) -> torch.device:
    """Where the network lives."""
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda' cannot be used: torch sees no CUDA device here; leave device at 'auto'")
    return torch.device("cuda" if config.device != "cpu" and torch.cuda.is_available() else "cpu")


def checkpoint_net(config: Config, weights: dict[str, NDArray[Any]], game: Game, team: Team, where: str) -> Net:
    """The network of a checkpoint, ready to play; `where` names the checkpoint in errors."""
    net = make_policy(config, Seen(game, team), choose_device(config))
    try:
        load_weights(net, weights)
    except RuntimeError:
        raise CheckpointError(
            f"the weights in {where} are not of the network that its config describes; use the Maple that wrote them"
        ) from None
    return net.requires_grad_(False)
