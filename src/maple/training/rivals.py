"""Rivals: agents of other runs as opponents, by `run:NAME@best`.

A rival is read once, when a run begins, and goes into the run's checkpoints with its config: whatever becomes of the
other run, this one goes on against the same opponent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.core.config import Config
from maple.core.errors import CheckpointError, ConfigError
from maple.core.threads import Team
from maple.games import make_game
from maple.games.contract import Game
from maple.training.checkpoint import find_checkpoint, load_checkpoint
from maple.training.learners import Net
from maple.training.networks import checkpoint_net
from maple.training.seating import OpponentMix

__all__ = ["Rival", "check_rivals", "find_rivals", "rival_nets", "rival_state", "stored_rivals"]


@dataclass(frozen=True, slots=True)
class Rival:
    """An agent of another run."""

    name: str  # as the opponents name it, without `run:`
    config: Config  # of its run
    weights: dict[str, NDArray[Any]]


def find_rivals(names: Sequence[str], runs_dir: Path | None) -> list[Rival]:
    """The agents that opponents name, as they are now."""
    rivals = []
    for name in names:
        checkpoint = load_checkpoint(find_checkpoint(name, runs_dir), with_state=False)
        rivals.append(Rival(name, checkpoint.config, checkpoint.weights))
    return rivals


def check_rivals(config: Config, runs_dir: Path) -> None:
    """Refuse opponents that are not there or do not fit, before anything is written or compiled."""
    game = make_game(config.name, config.game)
    rivals = find_rivals(OpponentMix.parse(config.opponents, game.spec.opponents).runs, runs_dir)
    with Team(1) as team:
        rival_nets(rivals, config.name, game, team)


def rival_nets(rivals: Sequence[Rival], name: str, game: Game, team: Team) -> list[Net]:
    """Their networks; a rival has to see and do what a seat of the game `name` sees and does."""
    nets: list[Net] = []
    for rival in rivals:
        if rival.config.name != name:
            raise ConfigError(
                f"--opponents run:{rival.name}: that run plays {rival.config.name}, not {name}; "
                "name a run of the same game"
            )
        try:
            nets.append(checkpoint_net(rival.config, rival.weights, game, team, f"run {rival.name}"))
        except CheckpointError:
            raise ConfigError(
                f"--opponents run:{rival.name}: that run was trained with game options under which a seat sees other "
                "things; name a run with the options of this one"
            ) from None
    return nets


def rival_state(rivals: Sequence[Rival]) -> dict[str, NDArray[Any]]:
    """Rivals as arrays, for a checkpoint."""
    state: dict[str, NDArray[Any]] = {}
    for number, rival in enumerate(rivals):
        about = json.dumps({"name": rival.name, "config": rival.config.model_dump()})
        state[f"{number}/about"] = np.frombuffer(about.encode(), np.uint8)
        state |= {f"{number}/weights/{name}": array for name, array in rival.weights.items()}
    return state


def stored_rivals(state: Mapping[str, NDArray[Any]]) -> list[Rival]:
    """What rival_state() gave, as rivals."""
    rivals = []
    for number in range(sum(name.endswith("/about") for name in state)):
        about, prefix = json.loads(state[f"{number}/about"].tobytes()), f"{number}/weights/"
        weights = {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
        rivals.append(Rival(about["name"], Config.model_validate(about["config"]), weights))
    return rivals
