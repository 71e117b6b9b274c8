from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.core.step import Options
from maple.games.contract import Game
from maple.games.ofc import options as described_options
from maple.games.ofc.cards import mask_of, parse_cards
from tests.games.ofc.described import (
    Feature,
    feature_numbers,
    option_features,
    shared_features,
    state_features,
)
from tests.games.ofc.oracle import legal_actions
from tests.games.ofc.sight import VARIANTS, Sight, decisions, game_of

META = {"street": 0, "position": 1, "seats": 2, "next": 3, "previous": 4, "mode": 5, "pineapple": 6, "jokers": 7}


def describe(game: Game, view: NDArray[np.uint64]) -> Options:
    count = np.zeros(len(view), np.int64)
    game.count_options(view, count, 0, len(view))
    spec = game.spec.options
    assert spec is not None
    options = Options.allocate(spec, len(view), int(count.sum()))
    np.cumsum(count, out=options.offset[1:])
    game.describe(view, options, 0, len(view))
    return options


def parts_of(options: Options, row: int, option: int) -> list[list[int]]:
    """The features of each part of one option."""
    where = options.option_part[options.offset[row] + option]
    return [sorted(options.part[p, : options.part_length[p]].tolist()) for p in where]


def shared_of(options: Options, row: int) -> list[int]:
    return sorted(options.shared[row, : options.shared_length[row]].tolist())


def numbers(features: Sequence[Feature]) -> list[int]:
    return sorted(feature_numbers()[feature] for feature in features)


def choice_of(game: Game, view: NDArray[np.uint64], action: NDArray[np.int16]) -> list[list[int]]:
    spec = game.spec.options
    assert spec is not None
    feature, length = np.zeros((len(view), spec.state_width), np.int16), np.zeros(len(view), np.int16)
    game.describe_choice(view, action, feature, length, 0, len(view))
    return [sorted(row[:n].tolist()) for row, n in zip(feature, length)]


def test_features_have_numbers_of_their_own() -> None:
    assert len(feature_numbers()) == described_options.FEATURES


@pytest.mark.parametrize("variant", VARIANTS)
def test_options_match_the_slow_description(variant: str) -> None:
    game, rng = game_of(variant), np.random.default_rng(1)
    view = decisions(variant)
    rows = rng.choice(len(view), 60, replace=False)
    options = describe(game, view[rows])
    for i, row in enumerate(rows):
        sight = Sight.read(view[row])
        legal = legal_actions(sight.boards[0], sight.hand)
        first, last = options.offset[i], options.offset[i + 1]
        assert options.action[first:last].tolist() == legal
        assert shared_of(options, i) == numbers(shared_features(sight))
        for option in rng.choice(len(legal), min(len(legal), 10), replace=False):
            expected = [numbers(part) for part in option_features(sight, legal[option])]
            assert parts_of(options, i, int(option)) == expected


@pytest.mark.parametrize("variant", VARIANTS)
def test_choice_is_shared_and_the_chosen_parts(variant: str) -> None:
    game, rng = game_of(variant), np.random.default_rng(2)
    view = decisions(variant)[::3].copy()
    options = describe(game, view)
    chosen = [int(rng.integers(options.offset[i + 1] - options.offset[i])) for i in range(len(view))]
    action = np.array([options.action[options.offset[i] + o] for i, o in enumerate(chosen)], np.int16)
    for i, features in enumerate(choice_of(game, view, action)):
        parts = [feature for part in parts_of(options, i, chosen[i]) for feature in part]
        assert features == sorted(shared_of(options, i) + parts)


@pytest.mark.parametrize("variant", VARIANTS)
def test_state_matches_the_slow_description(variant: str) -> None:
    game, view = game_of(variant), decisions(variant)[::5].copy()
    spec = game.spec.options
    assert spec is not None
    feature, length = np.zeros((len(view), spec.state_width), np.int16), np.zeros(len(view), np.int16)
    game.describe_state(view, feature, length, 0, len(view))
    for i in range(len(view)):
        assert sorted(feature[i, : length[i]].tolist()) == numbers(state_features(Sight.read(view[i])))


@pytest.mark.parametrize("variant", VARIANTS)
def test_number_of_options_is_the_number_of_legal_actions(variant: str) -> None:
    game, view = game_of(variant), decisions(variant)
    observation = np.zeros((len(view), game.spec.observation), np.uint8)
    mask = np.zeros((len(view), game.spec.actions), np.bool_)
    game.observe(view, observation, mask, 0, len(view))
    options = describe(game, view)
    np.testing.assert_array_equal(np.diff(options.offset), mask.sum(1))
    for i in range(len(view)):
        actions = options.action[options.offset[i] : options.offset[i + 1]]
        np.testing.assert_array_equal(actions, np.flatnonzero(mask[i]))
    spec = game.spec.options
    assert spec is not None
    assert mask.sum(1).max() == spec.max_options == 232


@pytest.mark.parametrize("variant", VARIANTS)
def test_descriptions_fit_their_buffers(variant: str) -> None:
    game, view = game_of(variant), decisions(variant)
    options, spec = describe(game, view), game.spec.options
    assert spec is not None
    assert options.shared_length.max() <= spec.shared_width
    assert options.part_length.max() <= spec.part_width
    assert min(options.part.min(), options.shared.min()) >= 0
    assert max(options.part.max(), options.shared.max()) < spec.features
    for i in range(len(view)):
        used = options.option_part[options.offset[i] : options.offset[i + 1]]
        assert i * spec.max_parts <= used.min()
        assert used.max() < (i + 1) * spec.max_parts


def make_view(mine: tuple[str, str, str], hand: str, **meta: int) -> NDArray[np.uint64]:
    """A view by hand: my rows, my hand; nothing else is seen."""
    view = np.zeros((1, 12), np.uint64)
    view[0, :3] = [mask_of(row) for row in mine]
    view[0, 9] = mask_of(hand)
    word = 0
    for name, value in {"seats": 3, "pineapple": 1, **meta}.items():
        word |= value << 8 * META[name]
    view[0, 11] = word
    return view


@pytest.mark.parametrize(
    ("mine", "hand", "rows", "foul"),
    [
        # The last two cards complete the top with a pair over a middle of high cards.
        (("Ac 2d", "3c 4d 6h 9s Jd", "5c 5d 5h 5s"), "Ad 7h 8h", {"Ad": 0, "7h": 2}, True),
        (("Tc 2d", "3c 4d 6h 9s Jd", "5c 5d 5h 5s"), "8d 7h Kh", {"8d": 0, "7h": 2}, False),
        (("Ac 2d", "3c 4d 6h 9s Ad", "5c 5d 5h 5s"), "Kd 7h 8h", {"Kd": 0, "7h": 2}, True),  # AK over A9
        # Top and bottom are complete in the wrong order: no middle can lie between.
        (("Ac Ad", "3c 4d 6h", "9c 9d 8h 7s 2c"), "Ah 7h 8h", {"Ah": 0, "7h": 1}, True),
        (("2c 3d", "3c 4d 6h", "9c 9d 8h 7s 2h"), "Ah 7h 8h", {"Ah": 0, "7h": 1}, False),
        # Equality is legal.
        (("2c 3d", "Ac Kd 9h 8s", "As Kh 9c 8d 3h"), "3c 7h 4h", {"4h": 0, "3c": 1}, False),
    ],
)
def test_certain_foul_flag(mine: tuple[str, str, str], hand: str, rows: dict[str, int], foul: bool) -> None:
    view, game = make_view(mine, hand, street=4), game_of("pineapple")
    sight = Sight.read(view[0])
    wanted = {parse_cards(name)[0]: row for name, row in rows.items()}
    discard = next(i for i, card in enumerate(sight.hand) if card not in wanted)
    low, high = (wanted[card] for card in sight.hand if card in wanted)
    action = 243 + 9 * discard + 3 * high + low
    flag = feature_numbers()[("foul", foul)]
    assert flag in choice_of(game, view, np.array([action], np.int16))[0]


def test_a_joker_that_can_step_down_is_no_certain_foul() -> None:
    view, game = (
        make_view(("Kc Kd", "Ac Ad 9h 8s 3c", "5c 5d 5h 5s"), "Xa 7h 8h", street=4, jokers=2),
        game_of("jokers"),
    )
    action = 243 + 9 * 0 + 3 * 0 + 2  # the seven goes, the eight to the bottom, the joker to the top
    features = choice_of(game, view, np.array([action], np.int16))[0]
    assert feature_numbers()[("foul", False)] in features
    assert feature_numbers()[("jokers", 0, 1)] in features


@pytest.mark.parametrize(
    ("cards", "step"),
    [("9c 9d 9h 9s", 17), ("Tc Jc Qc Kc", 17), ("9c 9d 9h Ks", 11), ("2c 3d 5h 9s", 0)],
)
def test_strength_of_a_complete_row(cards: str, step: int) -> None:
    """Quads and better are the highest step, and no row's steps reach into the next row's features."""
    view, game = make_view(("2d 3h", "", cards), "Ac 7h 8h", street=3), game_of("pineapple")
    action = 243 + 9 * 1 + 3 * 2 + 0  # the seven to the top, the ace to the bottom
    features = choice_of(game, view, np.array([action], np.int16))[0]
    assert feature_numbers()[("strength", 2, step)] in features
