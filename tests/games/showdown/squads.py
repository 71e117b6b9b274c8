"""A team made up for the tests, in the form that Showdown exports."""

from __future__ import annotations

__all__ = ["HERD"]

HERD = """
Tauros @ Choice Band
Ability: Intimidate
Tera Type: Normal
EVs: 252 Atk / 4 Def / 252 Spe
Jolly Nature
- Body Slam
- Close Combat
- Earthquake
- Zen Headbutt

Mudsdale @ Leftovers
Ability: Stamina
Tera Type: Ground
EVs: 252 HP / 252 Def / 4 SpD
Impish Nature
- Earthquake
- Heavy Slam
- Stealth Rock
- Body Press

Houndoom @ Life Orb
Ability: Flash Fire
Tera Type: Fire
EVs: 252 SpA / 4 SpD / 252 Spe
Timid Nature
- Fire Blast
- Dark Pulse
- Nasty Plot
- Sludge Bomb
"""
