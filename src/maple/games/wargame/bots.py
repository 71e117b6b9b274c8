"""Scripted players: one that weighs what options promise, and one that plays its best options out."""

from __future__ import annotations

import numpy as np

from maple.core.kernels import kernel
from maple.core.rng import Purpose, bounded, key
from maple.games.wargame.combat import destroyed_points
from maple.games.wargame.content import MAX_SQUADS, OBJECTIVES
from maple.games.wargame.ground import WAYS, cell_at, controlled
from maple.games.wargame.legal import legal_actions
from maple.games.wargame.promise import ENEMY, GOAL, PROMISES, promise, survey
from maple.games.wargame.rules import PLAYING, advance
from maple.games.wargame.state import ACTIONS, NOBODY, SHOOT
from maple.games.wargame.view import options_of

__all__ = ["play_random", "play_rollout", "play_script"]

_BOT = int(Purpose.BOT)
CANDIDATES, SAMPLES = 6, 4  # of the rollout player: options that are played out, and how often
POINTS_PER_VP = 20.0  # what its judgement takes material for
FAR_SIGHT = 0.5  # of the VP that held objectives would pay in later rounds
VICTORY = 10.0  # VP that the end of a game won is worth on top


@kernel
def _scores(t, book, script, legal, count, ways, score):
    """What a script makes of each option. Writes score."""
    enemies, goals = np.empty((MAX_SQUADS, ENEMY), np.float32), np.empty((OBJECTIVES, GOAL), np.float32)
    out = np.empty(PROMISES, np.float32)
    own = np.int64(-1)
    if t.slot != NOBODY:
        survey(t, book, np.int64(t.side), np.int64(t.slot), enemies, goals)
        own = np.int64(t.cell[t.side, t.slot])
    for k in range(count):
        action = np.int64(legal[k])
        place = cell_at(np.int64(t.side), own, action) if action < SHOOT else own
        promise(t, book, action, place, enemies, goals, ways, out)
        total = np.float32(0)
        for p in range(PROMISES):
            total += script[p] * out[p]
        score[k] = total


@kernel
def play_random(view, book, scratch, seed, table, game, seat, decision, action, lo, hi):
    """Any legal action. Writes scratch, action."""
    legal = np.empty(ACTIONS, np.int16)
    ways = np.empty(WAYS, np.uint64)
    for i in range(lo, hi):
        count = options_of(view[i], book[0], scratch[0], legal, ways)
        action[i] = legal[bounded(key(seed, _BOT, table[i], game[i], seat[i], decision[i], 0), count)]


@kernel
def play_script(view, book, scratch, script, action, lo, hi):
    """The option that a script likes best; the first of equals. Writes scratch, action."""
    legal, score = np.empty(ACTIONS, np.int16), np.empty(ACTIONS, np.float32)
    ways = np.empty(WAYS, np.uint64)
    for i in range(lo, hi):
        t = scratch[0]
        count = options_of(view[i], book[0], t, legal, ways)
        _scores(t, book[0], script, legal, count, ways, score)
        action[i] = legal[np.argmax(score[:count])]


@kernel
def _judge(t, book, rules, how, winner):
    """What a position is worth to side 0, in VP."""
    value = np.float64(t.vp[0]) - np.float64(t.vp[1])
    if how != PLAYING:
        return value + (VICTORY if winner == 0 else (-VICTORY if winner == 1 else 0.0))
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        for slot in range(t.squads[side]):
            left = destroyed_points(book, t.unit[side, slot], 0)
            left -= destroyed_points(book, t.unit[side, slot], np.int64(t.models[side, slot]))
            value += sign * left / POINTS_PER_VP
    mine, theirs = controlled(t, book)
    rounds = min(2, rules.rounds + 1 - t.round)
    for objective in range(OBJECTIVES):
        vp = FAR_SIGHT * rounds * book.vp[t.mission, objective]
        value += vp * ((mine >> objective & 1) - (theirs >> objective & 1))
    return value


@kernel
def _turns(t):
    """How many turns have begun."""
    return 2 * np.int64(t.round) + (t.turn != t.first)


@kernel
def _play_out(sim, book, rules, seed, script, until, end, legal, ways, score):
    """Let a script play both sides to the beginning of a turn. Writes sim, end, legal, ways, score."""
    t = sim[0]
    while end[0].how == PLAYING and _turns(t) < until:
        count = legal_actions(t, book, legal, ways)
        _scores(t, book, script, legal, count, ways, score)
        advance(t, book, rules, seed, legal[np.argmax(score[:count])], end[0])


@kernel
def play_rollout(view, book, rules, scratch, end, script, seed, table, game, seat, decision, action, lo, hi):
    """One-ply search: the option that turns out best when a script plays on. Writes scratch (2,), end (1,), action."""
    legal, score, liked = np.empty(ACTIONS, np.int16), np.empty(ACTIONS, np.float32), np.empty(ACTIONS, np.float32)
    ways = np.empty(WAYS, np.uint64)
    candidate = np.empty(CANDIDATES, np.int64)
    base, sim = scratch[:1], scratch[1:]
    for i in range(lo, hi):
        count = options_of(view[i], book[0], base[0], legal, ways)
        base[0].decision[0], base[0].decision[1] = 0, 0
        _scores(base[0], book[0], script, legal, count, ways, liked)
        some = min(CANDIDATES, count)
        for k in range(some):
            best = np.argmax(liked[:count])
            candidate[k], liked[best] = legal[best], -np.inf
        top, until = -np.inf, _turns(base[0]) + 2  # my turn and theirs are played out
        for k in range(some):
            total = 0.0
            for sample in range(SAMPLES):
                sim[0] = base[0]
                # the same dice for each candidate, and none that the game itself will throw
                sim[0].deal = np.int64(key(seed, _BOT, table[i], game[i], seat[i], decision[i], sample) >> np.uint64(1))
                advance(sim[0], book[0], rules[0], seed, candidate[k], end[0])
                _play_out(sim, book[0], rules[0], seed, script, until, end, legal, ways, score)
                total += _judge(sim[0], book[0], rules[0], end[0].how, end[0].winner)
            if total > top:
                top, action[i] = total, candidate[k]
