"""Described options against a slow reading of the view, and that nothing of a view is left unread."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.games import make_game
from maple.games.showdown import options as described
from maple.games.showdown import shared as around
from maple.games.showdown.layout import FIELDS
from maple.games.showdown.schema import load_schema

UNREAD: dict[tuple[str, str], str] = {
    ("turn", "mask"): "says which options there are, and nothing of any of them",
}
GROUPS = load_schema().groups
TEAM, MOVES = 6, 4


@pytest.fixture(scope="module")
def views() -> NDArray[np.uint64]:
    """Decisions of random battles of two generations."""
    found = []
    for name in ("gen9randombattle", "gen7randombattle"):
        game = make_game("showdown", {"format": name, "max_turns": 60})
        with NodeArena(game, 8, 5, processes=1, lanes=1, limits=PoolLimits(spares=0)) as arena:
            for _ in range(90):
                step = arena.recv()
                found.append(step.view.copy())
                action = np.empty(len(step.keys), np.int32)
                game.bot("random")(step.view, 5, step.keys, action, 0, len(action))
                arena.send(action)
    return np.concatenate(found)


def described_as(view: NDArray[np.uint64]) -> list[list[int]]:
    """All features of each open option of a decision."""
    game = make_game("showdown")
    assert game.spec.options is not None
    bits = int(bytes_of(view)[GROUPS["turn"].byte("mask")]) + 256 * int(bytes_of(view)[GROUPS["turn"].byte("mask") + 1])
    found = []
    feature, length = np.zeros((1, game.spec.options.state_width), np.int16), np.zeros(1, np.int16)
    for action in range(14):
        if bits >> action & 1:
            game.describe_choice(view[None], np.array([action], np.int16), feature, length, 0, 1)
            found.append(feature[0, : length[0]].tolist())
    return found


def bytes_of(view: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(view).view(np.uint8)


FIELDS_OF_VIEWS = [(group.name, field) for group in GROUPS.values() for field in group.fields]


def test_every_field_is_listed_as_read_or_with_a_reason() -> None:
    read = {(group, field) for group, fields in FIELDS.items() for field in fields}
    assert read == set(FIELDS_OF_VIEWS)
    assert all(UNREAD.values())


@pytest.mark.parametrize(("group", "field"), [where for where in FIELDS_OF_VIEWS if where not in UNREAD])
def test_another_value_of_a_field_makes_other_features(group: str, field: str, views: NDArray[np.uint64]) -> None:
    place = GROUPS[group]
    size = place.fields[field].size * place.fields[field].count
    rng = np.random.default_rng(3)
    for _ in range(1500):
        mine, other = rng.choice(len(views), 2, replace=False)
        at = place.byte(field, int(rng.integers(place.repeat)))
        changed = views[mine].copy()
        given, taken = bytes_of(changed), bytes_of(views[other])
        if (given[at : at + size] == taken[at : at + size]).all():
            given[at] = 1 - min(1, given[at])  # what no battle here had
        else:
            given[at : at + size] = taken[at : at + size]
        if described_as(changed) != described_as(views[mine]):
            return
    pytest.fail(f"{group}.{field} is never read")


def slow_mean(seen: NDArray[np.uint8], figure: str, member: int, moves: range) -> int:
    """The strongest of the moves between a member of mine and each of theirs that may come in, on average."""
    pokemon, at, found = GROUPS["pokemon"], GROUPS["damage"].byte(figure), []
    for foe in range(TEAM):
        if seen[pokemon.byte("flags", TEAM + foe)] & 7 != 1:
            continue
        pairs = [
            (member * MOVES + k) * TEAM + foe if figure == "dealt" else (foe * MOVES + k) * TEAM + member for k in moves
        ]
        found.append(max(int(seen[at + pair]) for pair in pairs))
    return sum(found) // max(1, len(found))


def slow_switch(seen: NDArray[np.uint8], member: int) -> set[int]:
    """What a switch is described by beside its ids."""
    switch, pokemon = GROUPS["switch"], GROUPS["pokemon"]
    dealt, taken, entry, faster = (
        int(seen[switch.byte(name, member)]) for name in ("dealt", "taken", "entry", "faster")
    )
    hp = int(seen[pokemon.byte("hp", member)])
    falls = Fraction(taken, 128) * Fraction(hp, 255) >= Fraction(hp - entry, 255)
    return {
        described._IN_HP + min(8, -(-8 * hp // 255)),
        described._IN_STATUS + int(seen[pokemon.byte("status", member)]),
        described._IN_DEALT + min(16, dealt // 15),
        described._IN_TAKEN + min(16, taken // 15),
        described._IN_ENTRY + min(8, -(-8 * entry // 255)),
        described._IN_DUEL + 4 * faster + 2 * (dealt >= 128) + falls,
        described._IN_TO_OTHERS + min(16, slow_mean(seen, "dealt", member, range(MOVES)) // 15),
        described._IN_BY_OTHERS + min(16, slow_mean(seen, "taken", member, range(MOVES)) // 15),
    }


def slow_move(seen: NDArray[np.uint8], action: int) -> set[int]:
    """What a move would do, and what may happen before."""
    move, special, number = GROUPS["move"], action >= MOVES, action % MOVES
    share = int(seen[move.byte("gimmick_damage" if special else "damage", number)])
    priority, first = int(seen[move.byte("priority", number)]), int(seen[GROUPS["turn"].byte("faster")])
    if priority != 8:
        first = 1 if priority > 8 else 2
    power = int.from_bytes(seen[move.byte("power", number) :][:2].tobytes(), "little")
    fatal = int(seen[GROUPS["switch"].byte("taken", 0)]) >= 128
    return {
        described._DAMAGE + 17 * special + min(16, share // 15),
        described._DUEL + 4 * first + 2 * (share >= 128) + fatal,
        described._POWER + min(8, -(-power // 20)),
    }


def test_options_say_what_would_come_of_them(views: NDArray[np.uint64]) -> None:
    moves = switches = 0
    for view in views[::9]:
        seen = bytes_of(view)
        bits = int(seen[GROUPS["turn"].byte("mask")]) + 256 * int(seen[GROUPS["turn"].byte("mask") + 1])
        open_actions = [action for action in range(14) if bits >> action & 1]
        for action, features in zip(open_actions, described_as(view), strict=True):
            if action >= described.FIRST_SWITCH:
                assert slow_switch(seen, action - described.FIRST_SWITCH) <= set(features)
                switches += 1
            else:
                assert slow_move(seen, action) <= set(features)
                moves += 1
    assert min(moves, switches) > 100


def test_what_their_active_threatens_is_shared(views: NDArray[np.uint64]) -> None:
    threatened = 0
    for view in views[::5]:
        seen, at = bytes_of(view), GROUPS["damage"].byte("taken")
        shares = [int(seen[at + k * TEAM]) for k in range(MOVES)]
        wanted = sorted(around._THREAT + min(16, share // 15) for share in shares if share)
        for features in described_as(view):
            assert sorted(f for f in features if around._THREAT <= f < around.SHARED_FEATURES) == wanted
        threatened += bool(wanted)
    assert threatened > 20
