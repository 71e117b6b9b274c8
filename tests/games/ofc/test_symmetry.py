from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.games.ofc.cards import cards_of, mask_of
from tests.games.ofc.described import feature_numbers
from tests.games.ofc.oracle import legal_actions, placement
from tests.games.ofc.sight import VARIANTS, Sight, decisions, game_of
from tests.games.ofc.test_options import choice_of

ORDERS = list(permutations(range(4)))


def word_for(order: int) -> int:
    """A random word that picks this order of suits."""
    return ((2 * order + 1) << 63) // 24  # the middle of the order's share of all words


def renamed(card: int, order: tuple[int, ...]) -> int:
    return card if card >= 52 else card // 4 * 4 + order[card % 4]


def permuted(
    variant: str, view: NDArray[np.uint64], action: list[int], orders: list[int]
) -> tuple[NDArray[np.uint64], list[int]]:
    new_view, new_action = view.copy(), np.array(action, np.int16)
    random = np.array([word_for(order) for order in orders], np.uint64)
    game_of(variant).permute(new_view, new_action, random, 0, len(view))
    return new_view, new_action.tolist()


def sample(variant: str, seed: int) -> tuple[NDArray[np.uint64], list[int], list[int]]:
    """Some decisions, a legal action of each, and an order of suits for each."""
    rng = np.random.default_rng(seed)
    view = decisions(variant)[rng.choice(len(decisions(variant)), 96)]
    sights = [Sight.read(row) for row in view]
    action = [int(rng.choice(legal_actions(sight.boards[0], sight.hand))) for sight in sights]
    return view, action, [i % 24 for i in range(96)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_cards_go_to_the_same_rows(variant: str) -> None:
    view, action, orders = sample(variant, 1)
    new_view, new_action = permuted(variant, view, action, orders)
    for i, order in enumerate(ORDERS[o] for o in orders):
        for word in range(11):
            assert cards_of(new_view[i, word]) == sorted(renamed(card, order) for card in cards_of(view[i, word]))
        assert new_view[i, 11] == view[i, 11]
        before, after = Sight.read(view[i]), Sight.read(new_view[i])
        rows, discards = placement(action[i], before.hand)
        new_rows, new_discards = placement(new_action[i], after.hand)
        assert [sorted(renamed(c, order) for c in row) for row in rows] == [sorted(row) for row in new_rows]
        assert [renamed(c, order) for c in discards] == new_discards


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_new_action_is_legal_and_the_mask_moves_with_it(variant: str) -> None:
    view, _, orders = sample(variant, 2)
    for i in range(0, 96, 7):
        sight = Sight.read(view[i])
        legal = legal_actions(sight.boards[0], sight.hand)
        rows = np.repeat(view[i : i + 1], len(legal), axis=0)
        new_view, new_action = permuted(variant, rows, legal, [orders[i]] * len(legal))
        after = Sight.read(new_view[0])
        assert sorted(new_action) == legal_actions(after.boards[0], after.hand)


def test_all_orders_of_suits_occur() -> None:
    view = np.repeat(decisions("pineapple")[:1], 24, axis=0)
    new_view, _ = permuted("pineapple", view, [0] * 24, list(range(24)))
    assert len({tuple(row.tolist()) for row in new_view}) > 1
    view[:, 9] = mask_of([0, 5, 10, 15, 17])  # one card of each suit by rank: 24 different hands
    new_view, _ = permuted("pineapple", view, [0] * 24, list(range(24)))
    assert len({int(row[9]) for row in new_view}) == 24


@pytest.mark.parametrize("variant", VARIANTS)
def test_descriptions_differ_in_nothing_but_the_counts_of_unseen_suits(variant: str) -> None:
    view, action, orders = sample(variant, 3)
    new_view, new_action = permuted(variant, view, action, orders)
    game = game_of(variant)
    before = choice_of(game, view, np.array(action, np.int16))
    after = choice_of(game, new_view, np.array(new_action, np.int16))
    first_suit = feature_numbers()[("unseen suit", 0, 0)]
    last_suit = first_suit + 4 * 14
    for i, order in enumerate(ORDERS[o] for o in orders):
        plain = [[f for f in features if not first_suit <= f < last_suit] for features in (before[i], after[i])]
        assert plain[0] == plain[1]
        suits = {(f - first_suit) // 14: (f - first_suit) % 14 for f in before[i] if first_suit <= f < last_suit}
        moved = {(f - first_suit) // 14: (f - first_suit) % 14 for f in after[i] if first_suit <= f < last_suit}
        assert moved == {order[suit]: count for suit, count in suits.items()}
