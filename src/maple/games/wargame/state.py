"""A table as one record, what is known of a finished game, and the numbers that actions and phases have."""

from __future__ import annotations

import numpy as np

from maple.games.wargame.content import MAX_SQUADS

__all__ = [
    "ACTIONS",
    "BLOW",
    "BRACE",
    "BRACED",
    "CHARGE",
    "CHARGED",
    "CHARGE_PHASE",
    "COMMAND_PHASE",
    "COMPONENTS",
    "DEFER",
    "DEFERRED",
    "DONE",
    "ENDED",
    "FIGHT",
    "FIGHT_PHASE",
    "FOCUS",
    "HOLD",
    "MOVE_PHASE",
    "NERVE",
    "NOBODY",
    "PHASES",
    "RALLY",
    "REACH",
    "ROLLS",
    "ROUND_LIMIT",
    "RULES",
    "RUN",
    "RUSHED",
    "SHAKEN",
    "SHOOT",
    "SHOOT_PHASE",
    "SHOT",
    "STAY",
    "STEP_CAP",
    "SURGE",
    "TABLE",
    "USED_BRACE",
    "USED_FOCUS",
    "USED_RALLY",
    "USED_SURGE",
    "WINDOW",
    "WIPE_OUT",
]

# Actions: a move by where it leads in a window around the squad, then what it does to an enemy's slot, then the rest.
REACH = 8  # cells of the window to each side
WINDOW = 2 * REACH + 1
STAY = REACH * WINDOW + REACH  # the window's own cell: never an action, that is HOLD
SHOOT = WINDOW * WINDOW
CHARGE = SHOOT + MAX_SQUADS
FIGHT = CHARGE + MAX_SQUADS
HOLD = FIGHT + MAX_SQUADS
DEFER = HOLD + 1
FOCUS = DEFER + 1
SURGE = FOCUS + 1
BRACE = SURGE + 1  # by own slot
RALLY = BRACE + MAX_SQUADS  # by own slot
ACTIONS = RALLY + MAX_SQUADS

COMMAND_PHASE, MOVE_PHASE, SHOOT_PHASE, CHARGE_PHASE, FIGHT_PHASE = range(5)
PHASES = ("command", "move", "shoot", "charge", "fight")
WIPE_OUT, ROUND_LIMIT, STEP_CAP = 1, 2, 3
NOBODY = 255  # a slot that is none

# Flags of a squad.
SHAKEN, RUSHED, CHARGED, BRACED, DONE, DEFERRED = 1, 2, 4, 8, 16, 32

USED_FOCUS, USED_SURGE, USED_BRACE, USED_RALLY = 1, 2, 4, 8  # bits of TABLE.tactics

# What dice were thrown for, and what is kept of them beside who threw at whom.
SHOT, BLOW, RUN, NERVE = (
    1,
    2,
    3,
    4,
)  # throws, hits, wounds, unsaved, models lost (both); inches, needed; 2d6, leadership
ROLLS = 32  # that are kept of one decision: both sides can fight out a phase without a choice, and lose their nerve

COMPONENTS = ("win", "margin", "vp", "damage", "hold", "luck")  # of the reward

RULES = np.dtype(
    [
        ("rounds", np.int64),
        ("step_cap", np.int64),
        ("points", np.int64),  # that an army may cost
        ("squads", np.int64),  # that an army may have
        ("mirrored", np.bool_),  # both sides draw the same army
        ("army", np.int64, (2,)),  # a named army for each side; -1 to draw one
        ("weight", np.float32, (len(COMPONENTS),)),
        ("every", np.int64, (len(COMPONENTS),)),  # decisions between payments; 1 for critical ones
        ("vp_scale", np.float32),
    ],
    align=True,
)

TABLE = np.dtype(
    [
        ("deal", np.int64),  # the key of set-up and dice
        ("game", np.int64),
        ("reward", np.float32, (2, 1)),
        ("pending", np.float32, (2, len(COMPONENTS))),  # earned and not yet paid, before weights
        ("parts", np.float32, (2, len(COMPONENTS))),  # paid so far, weighted
        ("cell", np.int16, (2, MAX_SQUADS)),  # -1 for a squad that is gone
        ("unit", np.uint8, (2, MAX_SQUADS)),
        ("models", np.uint8, (2, MAX_SQUADS)),
        ("wounds", np.uint8, (2, MAX_SQUADS)),  # left of the model in front
        ("flags", np.uint8, (2, MAX_SQUADS)),
        ("targets", np.uint8, (2, MAX_SQUADS)),  # bits: enemies in range and sight
        ("engaged", np.uint8, (2, MAX_SQUADS)),  # bits: enemies next to it
        ("stale", np.uint8, (2,)),  # bits: squads whose two answers above must be looked up again
        ("squads", np.uint8, (2,)),
        ("vp", np.int16, (2,)),
        ("destroyed", np.int16, (2,)),  # points that a side has destroyed
        ("kills", np.int16, (2,)),  # squads that a side has destroyed
        ("charges", np.int16, (2,)),  # that a side has made
        ("scored", np.int16, (2,)),  # VP of objectives alone
        ("decision", np.int16, (2,)),
        ("command", np.uint8, (2,)),  # points for tactics
        ("tactics", np.uint8, (2,)),  # bits: tactics used this turn: focus, surge, brace, rally
        ("board", np.uint8),
        ("mission", np.uint8),
        ("round", np.uint8),  # from 1
        ("phase", np.uint8),
        ("turn", np.uint8),  # the side whose turn it is
        ("first", np.uint8),  # the side that began
        ("side", np.uint8),  # that decides now
        ("slot", np.uint8),  # the squad that decides; NOBODY in the command phase
        ("fighter", np.uint8),  # the side that fights next, once the chargers have
        ("boost", np.uint8),  # the tactic in effect for the squad that decides: 1 focus, 2 surge
        ("rolled", np.uint8),  # how often dice were thrown since the last decision, to watch; also those of ...
        (
            "rolls",
            np.uint8,
            (ROLLS, 8),
        ),  # ... squads without a choice: kind, side and slot, foe, then what it says above
    ],
    align=True,
)

ENDED = np.dtype(
    [
        ("how", np.int8),  # an Outcome; 0 while the game goes on
        ("end_reason", np.int8),
        ("winner", np.int8),  # -1 for a draw
        ("mission", np.uint8),
        ("board", np.uint8),
        ("first", np.uint8),
        ("round", np.uint8),
        ("hands", np.int16),
        ("length", np.int32),
        ("reward", np.float32, (2, 1)),
        ("score", np.float32, (2,)),  # 1 for a win, 0.5 for a draw
        ("parts", np.float32, (2, len(COMPONENTS))),
        ("vp", np.int16, (2,)),
        ("scored", np.int16, (2,)),
        ("destroyed", np.int16, (2,)),
        ("health", np.float32, (2,)),  # points that are left, over those at the start
        ("kills", np.int16, (2,)),
        ("charges", np.int16, (2,)),
        ("decisions", np.int16, (2,)),
    ],
    align=True,
)
