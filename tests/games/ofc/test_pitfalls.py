"""What other implementations of OFC got wrong, each with its own test."""

from __future__ import annotations

import numpy as np

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games import make_game
from maple.games.ofc.cards import mask_of
from maple.games.ofc.evaluate import board_keys, is_foul, row_key, row_royalty
from tests.games.ofc.oracle import legal_actions, placement


def _key(cards: str) -> int:
    return int(row_key(mask_of(cards)))


def _play(settings: dict[str, object], tables: int, bot: str) -> tuple[np.ndarray, np.ndarray]:
    """First games of some tables: figures of each, and all rewards that each seat got on the way."""
    game = make_game("ofc", settings)
    seats = game.spec.seats
    figures, earned = np.zeros(tables, game.spec.figures), np.zeros((tables, seats, 2))
    done, action = np.zeros(tables, np.bool_), np.zeros(tables, np.int32)
    with Team(1) as team:
        arena = NativeArena(game, tables, 8, team)
        while True:
            step = arena.recv()
            for place, row in enumerate(step.ended.table):
                if not done[row]:
                    figures[row] = step.ended.figures[place]
                    earned[row] += step.ended.reward[place]
            done[step.ended.table] = True
            if done.all():
                return figures, earned
            playing = np.flatnonzero(~done)
            earned[playing, step.keys.seat[playing]] += step.reward[playing]
            game.bot(bot)(step.view, 8, step.keys, action, 0, tables)
            arena.send(action)


def test_aces_are_not_low() -> None:
    assert _key("Ac 9d 3h") > _key("Kc Qd Jh")
    assert row_royalty(0, _key("Ac Ad 2h")) == 9
    assert row_royalty(0, _key("Ac Ad Ah")) == 22


def test_top_trips_compare_with_their_rank() -> None:
    bottom = mask_of("Tc Jc Qc Kc Ac")
    assert is_foul(*board_keys(mask_of("9c 9d 9h"), mask_of("8c 8d 8h Ks Qs"), bottom))
    assert not is_foul(*board_keys(mask_of("8c 8d 8h"), mask_of("9c 9d 9h Ks Qs"), bottom))


def test_an_action_index_means_one_thing() -> None:
    """First-street indices are below 243, later ones from 243 on: no index fits both."""
    empty: list[list[int]] = [[], [], []]
    first, later, single = (set(legal_actions(empty, list(range(n)))) for n in (5, 3, 1))
    assert max(first) < 243 <= min(later)
    assert len(first | later | single) == len(first) + len(later) + len(single)
    for legal, n in ((first, 5), (later, 3), (single, 1)):
        assert len({str(placement(action, list(range(n)))) for action in legal}) == len(legal)


def test_no_bonus_hides_the_cost_of_a_foul() -> None:
    """The rewards of a game are its score over the scale and nothing else: zero-sum, and a foul never pays."""
    for settings in ({"fantasyland": "off"}, {"hand_cap": 3, "reward_scale": 5.0}, {"seats": 2, "fantasyland": "off"}):
        figures, earned = _play(settings, 60, "safe")
        seats = earned.shape[1]
        scale = float(settings.get("reward_scale", 10.0))  # type: ignore[arg-type]
        np.testing.assert_allclose(earned[:, :, 0], figures["score"][:, :seats] / scale, atol=1e-4)
        np.testing.assert_allclose(earned[:, :, 0].sum(1), 0, atol=1e-4)
        np.testing.assert_array_equal(earned[:, :, 1], figures["fouls"][:, :seats])
    figures, _ = _play({"fantasyland": "off"}, 200, "random")
    fouled = figures["fouls"] == 1
    assert fouled.any()
    assert (figures["score"][fouled] <= 0).all()
    lone = fouled & (figures["fouls"].sum(1, keepdims=True) == 1)
    assert (figures["score"][lone] <= -12).all()  # six to each of the others, at least


def test_royalties_are_not_scores() -> None:
    """A summary tells them apart: by one game whose figures are known."""
    game = make_game("ofc", {"fantasyland": "off"})
    figures = np.zeros(2, game.spec.figures)
    figures["hands"] = 1, 3
    figures["score"] = [(10, -4, -6), (-8, 20, -12)]
    figures["royalty"] = [(7, 0, 0), (2, 9, 1)]
    figures["fouls"] = [(0, 0, 1), (1, 0, 0)]
    figures["entries"] = [(0, 0, 0), (0, 1, 0)]
    figures["stays"] = [(0, 0, 0), (0, 1, 0)]
    figures["fantasy_hands"] = [(0, 0, 0), (0, 2, 0)]
    assert game.summarize(figures, np.array([0, 1])) == {
        "points_per_hand": (10 + 20) / 4,
        "foul": 0.0,
        "royalty": (7 + 9) / 4,
        "fantasyland_entry": 1 / 2,
        "fantasyland_stay": 1 / 2,
        "reward": (10 + 20) / 10 / 2,  # a game
    }
    assert game.summarize(figures, np.array([2, 0]))["foul"] == 2 / 4


def test_royalties_pay_only_on_legal_boards() -> None:
    figures, _ = _play({"fantasyland": "off"}, 200, "safe")
    fouled = figures["fouls"] == 1
    assert (figures["royalty"][fouled] == 0).all()
    assert figures["royalty"].sum() > 0
    assert (figures["score"] != figures["royalty"]).any()
