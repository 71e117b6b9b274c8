"""What others got wrong, each as a test."""

from __future__ import annotations

import numpy as np
import pytest

from maple.arena.native import NativeArena
from maple.core.threads import Team
from maple.games.wargame.combat import roll_d6, roll_two
from maple.games.wargame.content import load_roster
from maple.games.wargame.state import COMPONENTS
from tests.games.wargame.match import play, wargame
from tests.games.wargame.slow_table import HOLD, SHOOT, SHOOTING, SlowGame


def test_a_d6_rolls_from_one_to_six_alike() -> None:
    state, rolls = np.uint64(1), []
    for _ in range(6000):
        die, state = roll_d6(np.uint64(state))
        rolls.append(int(die))
    counts = np.bincount(rolls, minlength=7)
    assert counts[0] == 0
    assert len(counts) == 7
    assert (abs(counts[1:] - 1000) < 120).all()


def test_two_dice_make_a_bell() -> None:
    state, sums = np.uint64(2), []
    for _ in range(3600):
        total, state = roll_two(np.uint64(state))
        sums.append(int(total))
    counts = np.bincount(sums, minlength=13)
    assert counts[:2].tolist() == [0, 0]
    assert counts.argmax() == 7
    assert abs(counts[7] - 600) < 90


def test_a_better_skill_hits_more_often() -> None:
    game = wargame()
    units = list(game.roster.units)
    hit = game.book[0]["hit_on"][1]
    assert hit[units.index("heavy_guard")] == 3
    assert hit[units.index("field_gun")] == 5
    expect = game.book[0]["expect"]
    guard, rifles = units.index("heavy_guard"), units.index("line_rifles")
    # two shots, 3+ to hit, 4 against 3 wounds on 3+, a 5+ save made 6+ by one point of piercing
    assert expect[0, guard, rifles, 0] == pytest.approx(2 * 4 / 6 * 4 / 6 * 5 / 6)
    # in cover the save is 5+ again
    assert expect[0, guard, rifles, 1] == pytest.approx(2 * 4 / 6 * 4 / 6 * 4 / 6)


@pytest.mark.parametrize(
    ("strength", "toughness", "roll"), [(8, 4, 2), (5, 4, 3), (4, 4, 4), (3, 4, 5), (2, 4, 6), (4, 8, 6), (7, 8, 5)]
)
def test_wound_rolls(strength: int, toughness: int, roll: int) -> None:
    from maple.games.wargame.book import wound_roll

    assert wound_roll(strength, toughness) == roll


@pytest.mark.parametrize(
    ("save", "invulnerable", "piercing", "bonus", "roll"),
    [
        (3, 7, 0, 0, 3),
        (3, 7, 2, 0, 5),
        (3, 5, 3, 0, 5),
        (2, 7, 0, 1, 2),
        (6, 7, 1, 0, 7),
        (6, 7, 1, 1, 6),
        (2, 4, 0, 0, 2),
    ],
)
def test_save_rolls(save: int, invulnerable: int, piercing: int, bonus: int, roll: int) -> None:
    from maple.games.wargame.book import save_roll

    assert save_roll(save, invulnerable, piercing, bonus) == roll


def test_squads_of_an_army_choose_their_own_targets() -> None:
    game = wargame(armies="gunline", maps=["marsh"])
    for deal in range(10):
        slow, shot = SlowGame(game, 1, deal), {}
        while slow.over is None and slow.round < 4:
            legal = slow.legal()
            targets = [a for a in legal if SHOOT <= a < SHOOT + 8] if slow.phase == SHOOTING else []
            if len(targets) > 1:
                turn = (slow.round, slow.side)
                pick = next((a for a in targets if a not in shot.get(turn, [])), targets[0])
                shot.setdefault(turn, []).append(pick)
                slow.play(pick)
            else:
                slow.play(targets[0] if targets else HOLD if HOLD in legal else legal[0])
        if any(len(set(picks)) > 1 for picks in shot.values()):
            return
    pytest.fail("no turn with two targets was found")


def test_the_round_and_the_score_are_in_the_observation(team: Team) -> None:
    game = wargame()
    arena = NativeArena(game, 16, 2, team)
    action, rounds, scores = np.zeros(16, np.int32), set(), set()
    for _ in range(150):
        step = arena.recv()
        rounds |= set(step.observation[:, 0].tolist())
        scores |= set(step.observation[:, 9].tolist())
        game.bot("tactician")(step.view, 2, step.keys, action, 0, 16)
        arena.send(action)
    assert rounds == {1, 2, 3, 4, 5}
    assert len(scores) > 5


def test_every_action_of_the_mask_is_legal(team: Team) -> None:
    game, rng = wargame(), np.random.default_rng(0)
    arena = NativeArena(game, 32, 6, team, check=True)
    for _ in range(120):
        step = arena.recv()
        assert step.mask.sum(axis=1).min() >= 2  # a decision without a choice is none
        arena.send(np.array([rng.choice(np.flatnonzero(row)) for row in step.mask]))


def test_fighting_pays_and_games_do_not_all_end_on_the_limit(team: Team) -> None:
    figures = play(wargame(), ("tactician", "greedy"), 200, 1, team)
    assert (figures["kills"].sum(axis=1) == 0).mean() < 0.1
    assert 0.05 < (figures["end_reason"] == 1).mean() < 0.95
    idle = play(wargame(), ("charger", "random"), 60, 1, team)
    assert idle["destroyed"][:, 0].mean() > 100


def test_luck_is_nothing_on_average_and_much_of_what_decides(team: Team) -> None:
    figures = play(wargame(rewards={"win": 0, "margin": 0, "luck": 1}), ("tactician", "tactician"), 600, 3, team)
    luck, won = figures["parts"][:, 0, COMPONENTS.index("luck")], figures["score"][:, 0]
    assert abs(luck.mean()) < 3 * luck.std() / len(luck) ** 0.5
    assert np.corrcoef(luck, won)[0, 1] > 0.3


def test_the_roster_has_no_free_lunch() -> None:
    for unit in load_roster("starter").units.values():
        assert 50 <= unit.body.points <= 200
