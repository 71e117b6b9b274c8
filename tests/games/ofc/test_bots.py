from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.core.errors import GameError
from maple.core.step import Keys
from maple.games import make_game
from maple.games.contract import Game
from maple.games.ofc.cards import mask_of, parse_cards
from tests.games.ofc.match import play_match
from tests.games.ofc.oracle import judge, legal_actions, pair_points, placement
from tests.games.ofc.sight import VARIANTS, Sight, decisions, game_of
from tests.games.ofc.test_options import make_view


def choose(game: Game, bot: str, view: NDArray[np.uint64], seed: int = 1) -> NDArray[np.int32]:
    """One choice for each view; each is a table of its own."""
    n = len(view)
    keys = Keys(np.arange(n, dtype=np.int32), np.zeros(n, np.int64), np.zeros(n, np.int8), np.zeros(n, np.int32))
    action = np.full(n, -1, np.int32)
    game.bot(bot)(view, seed, keys, action, 0, n)
    return action


def last_decisions(variant: str) -> list[tuple[NDArray[np.uint64], Sight]]:
    """Views in which the two cards to place are the last of the hand, so that nothing is left to chance."""
    found = [(view, Sight.read(view)) for view in decisions(variant)]
    return [(v, s) for v, s in found if s.street == 4 and s.position == s.seats - 1 and not any(s.fantasy)]


@pytest.mark.parametrize("bot", ["random", "safe", "rollout"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_bots_play_legal_actions(variant: str, bot: str) -> None:
    view = decisions(variant)[::4].copy()
    for row, action in zip(view, choose(game_of(variant), bot, view)):
        sight = Sight.read(row)
        assert action in legal_actions(sight.boards[0], sight.hand)


def test_random_is_uniform_over_the_legal_actions() -> None:
    view = np.repeat(decisions("pineapple")[:1], 23_200, axis=0)
    counts = np.bincount(choose(game_of("pineapple"), "random", view), minlength=243)
    sight = Sight.read(view[0])
    legal = legal_actions(sight.boards[0], sight.hand)
    assert counts[legal].sum() == 23_200
    chi2 = ((counts[legal] - 100.0) ** 2 / 100.0).sum()
    assert 150 < chi2 < 330  # 231 degrees of freedom, standard deviation 21


@pytest.mark.parametrize("bot", ["random", "rollout"])
def test_the_seed_matters(bot: str) -> None:
    view = decisions("pineapple")[:10].copy()
    game = game_of("pineapple")
    np.testing.assert_array_equal(choose(game, bot, view, 1), choose(game, bot, view, 1))
    assert (choose(game, bot, view, 1) != choose(game, bot, view, 2)).any()


def test_safe_depends_on_the_view_alone() -> None:
    view = decisions("pineapple")[::7].copy()
    game = game_of("pineapple")
    np.testing.assert_array_equal(choose(game, "safe", view, 1), choose(game, "safe", view, 2))


@pytest.mark.parametrize("variant", ["pineapple", "two seats", "jokers"])
def test_rollout_is_exact_when_nothing_is_left_to_chance(variant: str) -> None:
    last = last_decisions(variant)
    assert len(last) >= 5
    chosen = choose(game_of(variant), "rollout", np.array([view for view, _ in last]))
    for action, (_, sight) in zip(chosen, last):
        others = [judge(board) for board in sight.boards[1 : sight.seats]]
        points = {}
        for option in legal_actions(sight.boards[0], sight.hand):
            placed, _ = placement(option, sight.hand)
            mine = judge([sight.boards[0][row] + placed[row] for row in range(3)])
            points[option] = sum(pair_points(mine, theirs) for theirs in others)
        assert points[int(action)] == max(points.values())


def test_rollout_counts_what_a_joker_may_be() -> None:
    """The joker's flush in the middle would beat the straight below; the joker's straight pays."""
    boards = ("2c 3s", "4h 5h 6h Xa", "9c Tc Jd Qs Kh")
    fouled = ("As Ad Ah", "8s 8d Ts Js 4c", "Qd Qc 8h 6s 4s", "Kc Kd 3d", "7d 7s 5d 3h 9s", "Jh Jc 5s 8c 2s")
    view = make_view(boards, "9h 7c 2d", street=4, position=2, jokers=2)
    view[0, 3:9] = [mask_of(row) for row in fouled]
    placed, _ = placement(int(choose(game_of("jokers"), "rollout", view)[0]), Sight.read(view[0]).hand)
    assert placed[1] == parse_cards("7c")


@pytest.mark.parametrize("variant", ["pineapple", "two seats"])
def test_safe_avoids_every_foul_that_it_can_at_the_end(variant: str) -> None:
    last = last_decisions(variant)
    avoidable = 0
    for action, (_, sight) in zip(choose(game_of(variant), "safe", np.array([view for view, _ in last])), last):
        fouls = {}
        for option in legal_actions(sight.boards[0], sight.hand):
            placed, _ = placement(option, sight.hand)
            fouls[option] = judge([sight.boards[0][row] + placed[row] for row in range(3)]).foul
        avoidable += any(fouls.values()) and not all(fouls.values())
        assert not fouls[int(action)] or all(fouls.values())
    assert avoidable > 0


def test_safe_beats_random() -> None:
    """Measured on 30,000 hands: +14.5 points, 3.7 % fouls; the contract asks for +6 and less than 10 %."""
    game = make_game("ofc", {"fantasyland": "off"})
    score = play_match(game, game.bot("safe"), game.bot("random"), deals=1500, seed=6)
    assert score.error < 0.3
    assert score.points > 13
    assert score.foul < 0.06
    assert score.royalty > 2


def test_rollout_beats_random() -> None:
    """Measured on 12,000 hands: +12.7 points, 0.3 % fouls."""
    game = make_game("ofc", {"fantasyland": "off"})
    score = play_match(game, game.bot("rollout"), game.bot("random"), deals=500, seed=6)
    assert score.error < 0.4
    assert score.points > 10.5
    assert score.foul < 0.01


def test_random_against_itself_is_even() -> None:
    game = make_game("ofc", {"fantasyland": "off"})
    score = play_match(game, game.bot("random"), game.bot("random"), deals=4000, seed=2)
    assert abs(score.points) < 4 * score.error


def test_an_unknown_bot_is_a_sentence() -> None:
    with pytest.raises(GameError, match=r"ofc has no opponent 'rolout'; did you mean 'rollout'\?"):
        game_of("pineapple").bot("rolout")
