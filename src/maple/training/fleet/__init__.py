"""Actors: processes with envs and the network side by side, which send back whole blocks of play."""
