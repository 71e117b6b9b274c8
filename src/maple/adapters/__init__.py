"""Maple's games in the forms that other libraries speak."""

from maple.adapters.gymnasium import gym_env
from maple.adapters.parallel import parallel_env
from maple.adapters.pettingzoo import aec_env

__all__ = ["aec_env", "gym_env", "parallel_env"]
