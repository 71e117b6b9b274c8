"""What Maple does not play, each for a reason of its own."""

from __future__ import annotations

from gymnasium import spaces

from tests.games.external.envs import Walk


def no_env() -> int:
    return 3


class Continuous(Walk):
    """A walk whose actions are numbers on a line, which Maple does not play."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1, 1, (1,))


class Wide(Walk):
    """A walk with too many combinations of actions."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.MultiDiscrete([20, 20, 20])


class Words(Walk):
    """A walk that is described in words."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Text(10)
