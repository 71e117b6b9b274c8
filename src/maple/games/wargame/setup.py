"""How a game begins: its deal, the armies, where they stand."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.wargame.book import MODELS, POINTS, WOUNDS
from maple.games.wargame.content import CELLS, MAX_SQUADS
from maple.games.wargame.state import COMPONENTS, DONE

__all__ = ["deal_number", "set_up"]

_DEAL = int(Purpose.DEAL)


@kernel
def deal_number(table, game, tables_per_deal):
    """The deal of a game: its own in training; in paired play, `tables_per_deal` neighbours share one."""
    return (table // tables_per_deal) * (np.int64(1) << 32) + game


@kernel
def _draw_army(t, book, rules, side, state):
    """Squads for a side, at random as long as one fits into the points; returns the stream. Writes t."""
    points, count = rules.points, 0
    units = book.units
    while count < rules.squads:
        fitting = 0
        for unit in range(units):
            fitting += book.profile[unit, POINTS] <= points
        if fitting == 0:
            break
        state = stream_next(state)
        pick, unit = bounded(scramble(state), fitting), -1
        while pick >= 0:
            unit += 1
            pick -= book.profile[unit, POINTS] <= points
        t.unit[side, count] = unit
        points -= book.profile[unit, POINTS]
        count += 1
    t.squads[side] = count
    return state


@kernel
def _muster(t, book, rules, seed):
    """Give both sides their squads. Writes t."""
    state = key(seed, _DEAL, t.deal, 0, 0, 0, 1)
    for side in range(2):
        army = rules.army[side]
        if army >= 0:
            count = 0
            while count < MAX_SQUADS and book.army[army, count] >= 0:
                t.unit[side, count] = book.army[army, count]
                count += 1
            t.squads[side] = count
        elif side == 1 and rules.mirrored and rules.army[0] < 0:
            t.squads[1] = t.squads[0]
            for slot in range(MAX_SQUADS):
                t.unit[1, slot] = t.unit[0, slot]
        else:
            state = _draw_army(t, book, rules, side, state)


@kernel
def _deploy(t, book, seed):
    """Put the squads on free cells of their zones: the second side's places are the first's after half a turn."""
    state = key(seed, _DEAL, t.deal, 0, 0, 0, 2)
    zone = book.zone[t.board].copy()
    count = book.zone_size[t.board]
    for slot in range(MAX_SQUADS):
        state = stream_next(state)
        j = slot + bounded(scramble(state), count - slot)
        zone[slot], zone[j] = zone[j], zone[slot]
        for side in range(2):
            present = slot < t.squads[side]
            t.cell[side, slot] = (zone[slot] if side == 0 else CELLS - 1 - zone[slot]) if present else -1
            profile = book.profile[t.unit[side, slot]]
            t.models[side, slot] = profile[MODELS] if present else 0
            t.wounds[side, slot] = profile[WOUNDS] if present else 0
            t.flags[side, slot] = 0 if present else DONE
            t.targets[side, slot], t.engaged[side, slot] = 0, 0


@kernel
def set_up(t, book, rules, seed, deal, game):
    """Clear a table and set up a game. Writes t."""
    t.deal, t.game = deal, game
    state = key(seed, _DEAL, deal, 0, 0, 0, 0)
    t.board = bounded(scramble(stream_next(state)), book.boards)
    t.mission = bounded(scramble(stream_next(stream_next(state))), book.missions)
    t.first = bounded(scramble(stream_next(stream_next(stream_next(state)))), 2)
    for side in range(2):
        t.reward[side, 0] = 0.0
        t.vp[side], t.destroyed[side], t.kills[side], t.charges[side], t.scored[side] = 0, 0, 0, 0, 0
        t.decision[side], t.command[side], t.tactics[side] = 0, 0, 0
        for c in range(len(COMPONENTS)):
            t.pending[side, c], t.parts[side, c] = 0.0, 0.0
        for slot in range(MAX_SQUADS):
            t.unit[side, slot] = 0
    _muster(t, book, rules, seed)
    _deploy(t, book, seed)
    for side in range(2):
        t.stale[side] = (1 << t.squads[side]) - 1
    t.round, t.turn = 1, t.first
