"""Games of the user's own: Gymnasium and PettingZoo environments, by import path or registered id.

This package imports neither torch nor Numba on its own: worker processes read it and must start fast.
"""
