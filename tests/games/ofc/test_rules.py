"""The compiled game against a slow one, decision for decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from maple.arena.native import NativeArena
from maple.core.step import Outcome, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.games.ofc.cards import cards_of
from maple.games.ofc.game import OfcSettings
from maple.games.ofc.solver import solve
from tests.games.ofc.oracle import legal_actions
from tests.games.ofc.sight import Sight
from tests.games.ofc.slow_table import EndedGame, SlowTable

SEED = 11
MODES = {"off": 0, "fixed": 1, "progressive": 2}
CASES: dict[str, dict[str, Any]] = {
    "single hands": {"fantasyland": "off"},
    "progressive": {"hand_cap": 6},
    "fixed, two seats": {"seats": 2, "fantasyland": "fixed", "hand_cap": 5},
    "stay by the top or a full house": {"stay_full_house": True, "stay_by_top": True, "hand_cap": 6},
    "short cap": {"hand_cap": 2, "reward_scale": 4.0},
    "regular": {"variant": "regular", "hand_cap": 4},
    "regular single hands, two seats": {"variant": "regular", "seats": 2, "fantasyland": "off"},
    "jokers": {"jokers": 2, "hand_cap": 4},
    "regular with jokers, two seats": {"variant": "regular", "seats": 2, "jokers": 2, "hand_cap": 3},
}
PLANNED = [name for name, case in CASES.items() if case.get("fantasyland") != "off"]


@dataclass
class Planner:
    """Looks into the deck and aims at boards that earn fantasyland, so that sessions are long; or plays at random."""

    rng: np.random.Generator
    target: dict[tuple[int, int, int], list[list[int]]] = field(default_factory=dict)

    def _aim(self, slow: SlowTable) -> list[list[int]]:
        """A board from the cards to come: the best of a few choices of discards."""
        boards = []
        for _ in range(8):
            kept = list(slow.coming()[0])
            for hand in slow.coming()[1:]:
                drop = self.rng.integers(len(hand)) if len(hand) == 3 else -1
                kept += [card for i, card in enumerate(hand) if i != drop]
            rows = [cards_of(row) for row in solve(np.array(sorted(kept), np.int64), 15.0, False)]
            boards.append((len({card // 4 for card in rows[0]}) < 3, max(card // 4 for card in rows[0]), rows))
        return max(boards)[2]

    def choose(self, slow: SlowTable) -> int:
        where = (slow.game, slow.record.hands, slow.seat)
        if slow.street == 0 and self.rng.random() < 0.85:
            self.target[where] = self._aim(slow)
        legal = legal_actions(slow.boards[slow.seat], slow.hand)
        if where not in self.target:
            return int(self.rng.choice(legal))
        rows = [next((r for r in range(3) if card in self.target[where][r]), -1) for card in slow.hand]
        if len(rows) == 1:
            return 270 + rows[0]
        if len(rows) == 5:
            return sum(row * 3**i for i, row in enumerate(rows))
        low, high = (row for row in rows if row >= 0)
        return 243 + 9 * rows.index(-1) + 3 * high + low


def expect_sight(slow: SlowTable) -> Sight:
    """What the seat in turn may know, by the rules."""
    others = [(slow.seat + i) % slow.seats for i in (1, 2)]
    present = [other != slow.seat for other in others]
    boards = [slow.boards[slow.seat]]
    for other, there in zip(others, present):
        boards.append(slow.boards[other] if there and not slow.fantasy[other] else [[], [], []])
    return Sight(
        boards=[[sorted(row) for row in board] for board in boards],
        hand=slow.hand,
        discards=sorted(slow.discards[slow.seat]),
        street=slow.street,
        position=(slow.seat - slow.button - 1) % slow.seats,
        seats=slow.seats,
        fantasy=[slow.fantasy[other] if there else 0 for other, there in zip(others, present)],
        mode=MODES[slow.settings.fantasyland],
        pineapple=slow.pineapple,
        jokers=slow.settings.jokers,
    )


def compare_decision(slow: SlowTable, step: Step, record: Any, row: int) -> None:
    """The waiting decision, and all that lies on the table."""
    assert step.keys.seat[row] == slow.seat
    assert step.keys.game[row] == slow.game
    assert step.keys.decision[row] == slow.record.decisions[slow.seat]
    assert Sight.read(step.view[row]) == expect_sight(slow)
    earned = [slow.record.earned[slow.seat], slow.record.earned_fouls[slow.seat]]
    assert step.reward[row].tolist() == pytest.approx(earned, abs=1e-4)
    assert np.flatnonzero(step.mask[row]).tolist() == legal_actions(slow.boards[slow.seat], slow.hand)
    deck = slow.dealt + slow.deck
    assert record["deck"][: len(deck)].tolist() == deck
    assert len(set(deck)) == len(deck) == 52 + slow.settings.jokers
    assert record["cursor"] == len(slow.dealt)
    for seat in range(slow.seats):
        assert [cards_of(word) for word in record["board"][seat]] == [sorted(r) for r in slow.boards[seat]]
        assert cards_of(record["discards"][seat]) == sorted(slow.discards[seat])
        assert record["fantasy"][seat] == slow.fantasy[seat]


def compare_end(expected: EndedGame, step: Step, place: int, seats: int) -> None:
    """The figures of a finished game."""
    ended, figures = step.ended, step.ended.figures[place]
    assert ended.outcome[place] == (Outcome.TRUNCATED if expected.truncated else Outcome.TERMINATED)
    assert figures["hands"] == expected.hands
    assert figures["length"] == sum(expected.decisions)
    for name in ("score", "fouls", "royalty", "entries", "stays", "fantasy_hands"):
        assert figures[name][:seats].tolist() == getattr(expected, name), name
        assert not figures[name][seats:].any()
    assert sum(expected.score) == 0
    best = max(expected.score)
    assert figures["winner"] == (expected.score.index(best) if expected.score.count(best) == 1 else -1)
    assert ended.reward[place, :, 0].tolist() == pytest.approx(expected.earned, abs=1e-4)
    assert ended.reward[place, :, 1].tolist() == expected.earned_fouls
    assert (place in ended.cut) == expected.truncated
    if expected.truncated:
        (row,) = np.flatnonzero(ended.cut == place)
        for seat, hand in enumerate(expected.next_hands):
            sight = Sight.read(ended.last_view[row, seat])
            assert sight.hand == hand
            assert sight.boards == [[[], [], []]] * 3
            assert (sight.seats, sight.street) == ((seats, 0) if hand else (0, 0))


def replay(case: dict[str, Any], tables: int, games: int, first_table: int = 0) -> list[EndedGame]:
    """Play some tables until each has finished `games` games, compared at every decision. Returns all games."""
    settings = OfcSettings(**case)
    slow = [SlowTable(settings, SEED, first_table + i) for i in range(tables)]
    planner = [Planner(np.random.default_rng([SEED, i])) for i in range(tables)]
    finished: list[EndedGame] = []
    with Team(1) as team:
        arena = NativeArena(make_game("ofc", case), tables, SEED, team, first_table=first_table)
        ended: dict[int, EndedGame] = {}
        while min(table.game for table in slow) < games:
            step, records = arena.recv(), arena.state()["tables"]
            assert (step.ended.table - first_table).tolist() == sorted(ended)
            for place, row in enumerate(sorted(ended)):
                assert step.ended.game[place] == slow[row].game - 1
                compare_end(ended[row], step, place, settings.seats)
            finished += ended.values()
            for row, table in enumerate(slow):
                compare_decision(table, step, records[row], row)
            action = [plan.choose(table) for plan, table in zip(planner, slow)]
            arena.send(np.array(action))
            results = {row: table.step(action[row]) for row, table in enumerate(slow)}
            ended = {row: result for row, result in results.items() if result is not None}
    return finished


@pytest.mark.parametrize("name", CASES)
def test_replay(name: str) -> None:
    finished = replay(CASES[name], tables=2 if "jokers" in CASES[name] else 6, games=5, first_table=2)
    assert len(finished) >= 8
    assert any(sum(game.fouls) for game in finished)
    assert any(sum(game.royalty) for game in finished) or name not in PLANNED
    if name in PLANNED:
        assert sum(sum(game.entries) for game in finished) > 2
        assert sum(sum(game.fantasy_hands) for game in finished) > 2
    else:
        assert all(game.hands == 1 for game in finished)
    if name == "short cap":
        assert any(game.truncated for game in finished)


def test_replays_see_stays() -> None:
    """Wild cards make quads common, so that the session rules are seen from inside fantasyland too."""
    finished = replay({"jokers": 2, "seats": 2, "hand_cap": 8, "stay_by_top": True}, tables=3, games=5)
    assert sum(sum(game.stays) for game in finished) > 1
    assert max(game.hands for game in finished) > 2


def test_a_cap_of_hands_truncates_at_that_hand() -> None:
    for game in replay({"hand_cap": 1}, tables=4, games=4):
        assert game.hands == 1
        assert game.truncated == (sum(game.entries) > 0)


@pytest.mark.parametrize(("variant", "cards"), [("pineapple", 51), ("regular", 39)])
def test_cards_used_at_three_seats(variant: str, cards: int) -> None:
    game = make_game("ofc", {"variant": variant, "fantasyland": "off"})
    with Team(1) as team:
        arena = NativeArena(game, 8, 1, team)
        for _ in range(3 * (5 if variant == "pineapple" else 9)):
            step = arena.recv()
            last = arena.state()["tables"]["cursor"].copy()
            action = np.zeros(8, np.int32)
            game.bot("random")(step.view, 1, step.keys, action, 0, 8)
            arena.send(action)
        assert len(arena.recv().ended.table) == 8
    assert (last == cards).all()


def test_uniform_random_play() -> None:
    """69.1 % fouls and 0.03 royalties; 60,000 boards have a standard error of 0.2 %."""
    game, tables = make_game("ofc", {"fantasyland": "off"}), 20_000
    with Team(2) as team:
        arena = NativeArena(game, tables, 5, team, observations=False, check=False)
        action = np.zeros(tables, np.int32)
        for _ in range(15):
            step = arena.recv()
            team.run(game.bot("random"), tables, step.view, 5, step.keys, action)
            arena.send(action)
        figures = arena.recv().ended.figures
    assert len(figures) == tables
    assert figures["fouls"].mean() == pytest.approx(0.691, abs=0.008)
    assert figures["royalty"].mean() == pytest.approx(0.03, abs=0.01)
    assert (figures["score"].sum(1) == 0).all()


@pytest.mark.parametrize("seats", [2, 3])
def test_duplicate_deals_share_decks(seats: int) -> None:
    game = make_game("ofc", {"seats": seats, "fantasyland": "off"})
    tables = 4 * seats
    decks: list[np.ndarray] = []
    with Team(1) as team:
        arena = NativeArena(game, tables, 3, team, tables_per_deal=seats)
        for _ in range(2 * 5 * seats):
            step = arena.recv()
            if not decks or len(step.ended.table):
                decks.append(arena.state()["tables"]["deck"][:, :52].reshape(4, seats, 52).copy())
                assert len(set(arena.state()["tables"]["button"].tolist())) == 1
            action = np.zeros(tables, np.int32)
            game.bot("random")(step.view, 9, step.keys, action, 0, tables)
            arena.send(action)
    assert len(decks) == 2
    for deck in decks:
        assert (deck == deck[:, :1]).all()
        assert len({tuple(row) for row in deck[:, 0].tolist()}) == 4
    assert (decks[0] != decks[1]).any()
