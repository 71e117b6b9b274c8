from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games.ofc.cards import cards_of, mask_of
from maple.games.ofc.encode import LEGAL_COUNT, LEGAL_MASK
from tests.games.ofc.oracle import legal_actions
from tests.games.ofc.sight import VARIANTS, Sight, decisions, game_of


def observe(variant: str, view: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    game = game_of(variant)
    observation = np.full((len(view), game.spec.observation), 77, np.uint8)
    mask = np.ones((len(view), game.spec.actions), np.bool_)
    game.observe(view, observation, mask, 0, len(view))
    return observation, mask


def slow_observation(sight: Sight) -> list[int]:
    """Planes and scalars as the documentation tells them."""
    rows = [row for board in sight.boards for row in board]
    planes = [*rows, sight.hand, sight.discards, sight.unseen]
    deck = range(52 + sight.jokers)
    streets = 5 if sight.pineapple else 9
    high = [sum(card // 4 == rank for card in sight.unseen) for rank in (10, 11, 12)]
    return [
        *(int(card in plane) for plane in planes for card in deck),
        *(int(street == sight.street) for street in range(streets)),
        *(int(position == sight.position) for position in range(3)),
        *(size - len(row) for size, row in zip((3, 5, 5), sight.boards[0])),
        *sight.fantasy,
        *high,
        *(int(mode == sight.mode) for mode in range(3)),
        sight.seats,
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_observation_and_mask_match_plain_python(variant: str) -> None:
    view = decisions(variant)
    observation, mask = observe(variant, view)
    streets = set()
    for i in range(0, len(view), 2):
        sight = Sight.read(view[i])
        streets.add(sight.street)
        assert observation[i].tolist() == slow_observation(sight)
        assert np.flatnonzero(mask[i]).tolist() == legal_actions(sight.boards[0], sight.hand)
    assert streets == set(range(9 if variant == "regular" else 5))


@pytest.mark.parametrize("variant", VARIANTS)
def test_entities_are_rows_of_cards_and_what_lies_in_none(variant: str) -> None:
    view, spec = decisions(variant), game_of(variant).spec
    observation, mask = observe(variant, view)
    deck = 54 if variant == "jokers" else 52
    mine, theirs, loose = spec.entities
    assert loose.end == 12 * deck  # all that follows is global
    for i in range(0, len(view), 5):
        sight = Sight.read(view[i])
        rows = {
            mine: sight.boards[0],
            theirs: [row for board in sight.boards[1:] for row in board],
            loose: [sight.hand, sight.discards, sight.unseen],
        }
        for group, cards in rows.items():
            seen = observation[i, group.begin : group.end].reshape(group.count, group.width)
            assert [np.flatnonzero(row).tolist() for row in seen] == [sorted(row) for row in cards]
        for row, action in enumerate(mine.pointing):  # a single card can go where there is room
            assert mask[i, action] == (len(sight.hand) == 1 and len(sight.boards[0][row]) < (3, 5, 5)[row])
    assert len(mine.pointing) == (3 if variant == "regular" else 0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_planes_hold_every_card_once(variant: str) -> None:
    """Each card is in exactly one plane: nothing is lost and nothing is in two places."""
    deck = 54 if variant == "jokers" else 52
    observation, _ = observe(variant, decisions(variant))
    planes = observation[:, : 12 * deck].reshape(-1, 12, deck)
    assert (planes.sum(1) == 1).all()


def test_first_street_has_232_actions() -> None:
    view = decisions("pineapple")
    _, mask = observe("pineapple", view)
    first = np.array([Sight.read(row).street == 0 for row in view])
    assert (mask[first].sum(1) == 232).all()
    assert (mask[~first].sum(1) <= 27).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_action_index_belongs_to_one_kind_of_street(variant: str) -> None:
    view = decisions(variant)
    _, mask = observe(variant, view)
    for i in range(len(view)):
        cards = len(Sight.read(view[i]).hand)
        legal = np.flatnonzero(mask[i])
        low, high = {5: (0, 243), 3: (243, 270), 1: (270, 273)}[cards]
        assert low <= legal.min()
        assert legal.max() < high


def test_legal_tables_for_every_state_of_the_rows() -> None:
    """All free places, also those that no game of random play reaches."""
    for kind, hand in enumerate(([0, 1, 2, 3, 4], [0, 1, 2], [0])):
        for top in range(4):
            for middle in range(6):
                for bottom in range(6):
                    filler = iter(range(10, 52))
                    free = (top, middle, bottom)
                    board = [[next(filler) for _ in range(size - n)] for size, n in zip((3, 5, 5), free)]
                    at = ((kind * 4 + top) * 6 + middle) * 6 + bottom
                    expected = legal_actions(board, hand)
                    assert np.flatnonzero(LEGAL_MASK[at]).tolist() == expected
                    assert LEGAL_COUNT[at] == len(expected)


def _hide_again(record: Any, acting: int, seats: int, jokers: int, rng: np.random.Generator) -> None:
    """Deal all that `acting` cannot see anew: the rest of the deck, others' discards, fantasyland boards."""
    cursor, size = int(record["cursor"]), 52 + jokers
    others = [seat for seat in range(seats) if seat != acting]
    hidden = record["deck"][cursor:size].tolist()
    for seat in others:
        hidden += cards_of(record["discards"][seat])
        if record["fantasy"][seat]:
            hidden += [card for word in record["board"][seat] for card in cards_of(word)]
    fresh = iter(rng.permutation(hidden).tolist())
    for seat in others:
        count = len(cards_of(record["discards"][seat]))
        record["discards"][seat] = mask_of([next(fresh) for _ in range(count)])
        if record["fantasy"][seat]:
            for row in range(3):
                count = len(cards_of(record["board"][seat][row]))
                record["board"][seat][row] = mask_of([next(fresh) for _ in range(count)])
    record["deck"][cursor:size] = list(fresh)


def _enter_fantasyland(record: Any, acting: int, seats: int, jokers: int, rng: np.random.Generator) -> None:
    """Make the next seat one that has set its hand face down, from cards that nobody has seen."""
    seat = (acting + 1) % seats
    cursor, size = int(record["cursor"]), 52 + jokers
    owned = [card for word in record["board"][seat] for card in cards_of(word)] + cards_of(record["discards"][seat])
    pool = rng.permutation(record["deck"][cursor:size].tolist() + owned).tolist()
    if len(pool) < 14:
        return
    record["fantasy"][seat] = 14
    record["board"][seat] = [mask_of(pool[:3]), mask_of(pool[3:8]), mask_of(pool[8:13])]
    record["discards"][seat] = mask_of(pool[13:14])
    record["deck"][cursor:size] = 0
    record["cursor"] = size - len(pool[14:])
    record["deck"][record["cursor"] : size] = pool[14:]


@pytest.mark.parametrize("fantasyland", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_hidden_leaks(variant: str, fantasyland: bool) -> None:
    game, rng = game_of(variant), np.random.default_rng(8)
    seats, jokers = game.spec.seats, VARIANTS[variant].get("jokers", 0)
    with Team(1) as team:
        arena, other = (NativeArena(game, 6, 4, team, options=True) for _ in range(2))
        for _ in range(seats * 5):
            records = arena.state()["tables"].copy()
            acting = ((records["button"].astype(int) + 1 + records["position"]) % seats).tolist()
            if fantasyland:
                for row in range(6):
                    _enter_fantasyland(records[row], acting[row], seats, jokers, rng)
            swapped = records.copy()
            for row in range(6):
                _hide_again(swapped[row], acting[row], seats, jokers, rng)
            seen = []
            for tables in (records, swapped):
                other.restore({**arena.state(), "tables": tables})
                step = other.recv()
                assert step.options is not None
                seen.append([a.copy() for a in (step.view, step.observation, step.mask, step.options.shared)])
            assert (records["deck"] != swapped["deck"]).any()
            for before, after in zip(*seen):
                np.testing.assert_array_equal(before, after)
            step, action = arena.recv(), np.zeros(6, np.int32)
            game.bot("random")(step.view, 1, step.keys, action, 0, 6)
            arena.send(action)


def test_what_is_visible_does_show() -> None:
    """The other side of the leak test: change an opponent's open card or one's own hand and the view changes."""
    game = game_of("pineapple")
    with Team(1) as team:
        arena = NativeArena(game, 1, 4, team)
        for _ in range(4):
            step, action = arena.recv(), np.zeros(1, np.int32)
            game.bot("random")(step.view, 1, step.keys, action, 0, 1)
            arena.send(action)
        view = arena.recv().view.copy()
        state = {name: array.copy() for name, array in arena.state().items()}
        record = state["tables"][0]
        record["hand"] = mask_of([*cards_of(record["hand"])[1:], int(record["deck"][51])])
        arena.restore(state)
        changed = arena.recv().view != view
    assert np.flatnonzero(changed[0]).tolist() == [9]
