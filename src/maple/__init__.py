"""Maple trains agents for turn-based games as fast as the machine allows, and proves that the speed cost no strength.

    arena = maple.make_arena("ofc", tables=1024, seed=0)     # play: recv() hands out decisions, send() takes actions
    maple.train("ofc", minutes=5, run="first")               # train, with checkpoints; the same call resumes
    agent = maple.load("first")                              # a trained agent
    env = maple.aec_env("ofc")                               # PettingZoo's AEC env ...
    agent.act(env.observe(env.agent_selection))              # ... and the agent in turn
    env = maple.gym_env("ofc", opponents="random")           # a Gymnasium env with action_masks()
    with maple.perf.span("mine"): ...                        # time of one's own code, in the profile of a run

Importing this package imports neither torch nor any game: names are resolved when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maple import perf
    from maple.adapters import aec_env, gym_env, parallel_env
    from maple.api import load, make_arena, train
    from maple.core.errors import MapleError, UserError
    from maple.core.spec import EntityGroup
    from maple.core.step import Step
    from maple.training.agent import Agent

__all__ = [
    "Agent",
    "EntityGroup",
    "MapleError",
    "Step",
    "UserError",
    "__version__",
    "aec_env",
    "gym_env",
    "load",
    "make_arena",
    "parallel_env",
    "perf",
    "train",
]

__version__ = "0.1.0"

_HOMES = {
    "Agent": "maple.training.agent",
    "EntityGroup": "maple.core.spec",
    "MapleError": "maple.core.errors",
    "Step": "maple.core.step",
    "UserError": "maple.core.errors",
    "aec_env": "maple.adapters",
    "gym_env": "maple.adapters",
    "load": "maple.api",
    "make_arena": "maple.api",
    "parallel_env": "maple.adapters",
    "train": "maple.api",
}


def __getattr__(name: str) -> Any:
    if name in ("perf", "sb3"):
        return import_module(f"maple.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'maple' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
