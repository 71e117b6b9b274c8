"""Scripted opponents: pure functions of what the seat sees."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from maple.core.kernels import kernel
from maple.core.rng import Purpose, bounded, key, scramble, stream_next
from maple.games.showdown.schema import load_schema

__all__ = ["places", "play_effective", "play_heuristic", "play_power", "play_random"]

_BOT = int(Purpose.BOT)
MOVES, FIRST_SWITCH, ACTIONS = 4, 8, 14
WHOLE = 128.0  # a share of 1 in the damage fields


@cache
def places() -> NDArray[np.int64]:
    """Where the bots find things in a view."""
    groups = load_schema().groups
    move, switch, turn = groups["move"], groups["switch"], groups["turn"]
    return np.array(
        [
            turn.byte("mask"),
            move.byte("power"),
            move.byte("accuracy"),
            move.byte("effectiveness"),
            move.byte("damage"),
            move.byte("gimmick_damage"),
            move.byte("category"),
            move.byte("priority"),
            move.stride,
            switch.byte("dealt"),
            switch.byte("taken"),
            switch.byte("entry"),
            switch.byte("faster"),
            switch.stride,
        ],
        np.int64,
    )


@kernel
def _open(row, at):
    return np.int64(row[at[0]]) | (np.int64(row[at[0] + 1]) << 8)


@kernel
def _pick(bits, word):
    """One of the set bits."""
    count = 0
    for action in range(ACTIONS):
        count += (bits >> action) & 1
    skip = bounded(word, max(1, count))
    for action in range(ACTIONS):
        if (bits >> action) & 1:
            if skip == 0:
                return action
            skip -= 1
    return 0


@kernel
def play_random(seen, at, seed, table, game, seat, decision, action, lo, hi):
    """Any open action. Writes action."""
    for i in range(lo, hi):
        word = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        action[i] = _pick(_open(seen[i], at), word)


@kernel
def _strongest(row, at, bits, effective):
    """The open plain move with the most base power, times its effectiveness if asked; -1 where none has any."""
    best, worth = -1, 0.0
    for m in range(MOVES):
        if (bits >> m) & 1:
            base = m * at[8]
            power = float(row[at[1] + base]) + 256.0 * float(row[at[1] + base + 1])
            if effective:
                step = np.int64(row[at[3] + base])
                power *= 0.0 if step == 0 else 2.0 ** (step - 3)
                power *= min(100.0, float(row[at[2] + base])) / 100.0
            if power > worth:
                best, worth = m, power
    return best


@kernel
def _play_by_power(seen, at, seed, table, game, seat, decision, action, effective, lo, hi):
    for i in range(lo, hi):
        row, bits = seen[i], _open(seen[i], at)
        best = _strongest(row, at, bits, effective)
        word = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        action[i] = best if best >= 0 else _pick(bits, word)


@kernel
def play_power(seen, at, seed, table, game, seat, decision, action, lo, hi):
    """The move with the most base power; where there is none, anything. Writes action."""
    _play_by_power(seen, at, seed, table, game, seat, decision, action, False, lo, hi)


@kernel
def play_effective(seen, at, seed, table, game, seat, decision, action, lo, hi):
    """The same with type effectiveness and accuracy. Writes action."""
    _play_by_power(seen, at, seed, table, game, seat, decision, action, True, lo, hi)


@kernel
def _matchup(row, at, member):
    """How well a member of the team stands against their active: what it deals less what it takes."""
    base = member * at[13]
    dealt, taken = float(row[at[9] + base]) / WHOLE, float(row[at[10] + base]) / WHOLE
    quick = 0.15 if row[at[12] + base] == 1 else 0.0
    return min(1.2, dealt) - min(1.2, taken) + quick - float(row[at[11] + base]) / 255.0


@kernel
def _best_switch(row, at, bits):
    best, worth = -1, -1e9
    for member in range(ACTIONS - FIRST_SWITCH):
        if (bits >> (FIRST_SWITCH + member)) & 1:
            stand = _matchup(row, at, member)
            if stand > worth:
                best, worth = member, stand
    return best, worth


@kernel
def _best_move(row, at, bits, word):
    """The open move, with the gimmick or not, that is expected to do most."""
    best, worth = -1, -1.0
    for action in range(FIRST_SWITCH):
        if (bits >> action) & 1:
            base = (action % MOVES) * at[8]
            special = action >= MOVES
            share = float(row[(at[5] if special else at[4]) + base]) / WHOLE
            hit = min(100.0, float(row[at[2] + base])) / 100.0
            score = min(share, 1.0) * hit
            if share >= 1.0 and row[at[7] + base] > 8:
                score += 0.3
            if row[at[6] + base] == 0:  # a move that does no damage: now and then
                score = 0.25 * float(bounded(scramble(stream_next(word + np.uint64(action))), 1000)) / 1000.0
            if special:
                score -= 0.1  # not for little
            if score > worth:
                best, worth = action, score
    return best, worth


@kernel
def play_heuristic(seen, at, seed, table, game, seat, decision, action, lo, hi):
    """Expected damage, and a switch where the match-up is bad and another is much better. Writes action."""
    for i in range(lo, hi):
        row, bits = seen[i], _open(seen[i], at)
        word = key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0)
        move, worth = _best_move(row, at, bits, word)
        member, stand = _best_switch(row, at, bits)
        here = _matchup(row, at, 0)
        if move < 0:
            action[i] = FIRST_SWITCH + member if member >= 0 else _pick(bits, word)
        elif member >= 0 and worth < 0.6 and here < -0.3 and stand > here + 0.6:
            action[i] = FIRST_SWITCH + member
        else:
            action[i] = move
