"""For users of Stable-Baselines3: `VecEnv` hands it Maple's arenas, `load` its saved policies to Maple."""

from maple.adapters.sb3 import Sb3Agent, VecEnv, load

__all__ = ["Sb3Agent", "VecEnv", "load"]
