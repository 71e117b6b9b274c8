"""For users of Stable-Baselines3: `VecEnv` hands it Maple's arenas, `load` its saved policies to Maple."""

from maple.adapters.sb3 import VecEnv
from maple.adapters.sb3_policy import Sb3Agent, load

__all__ = ["Sb3Agent", "VecEnv", "load"]
