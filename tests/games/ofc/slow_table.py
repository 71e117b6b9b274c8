"""One OFC table in plain Python: deals, turns, sessions and rewards, by the rules as they are told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from maple.games.ofc.cards import cards_of
from maple.games.ofc.game import OfcSettings
from maple.games.ofc.solver import solve
from tests.core.splitmix import slow_key, slow_shuffle
from tests.games.ofc.oracle import Judged, judge, next_fantasyland, pair_points, placement

__all__ = ["EndedGame", "SlowTable"]

_DEAL = 1


@dataclass
class EndedGame:
    """What is known of a finished game, a list entry for each seat."""

    truncated: bool
    hands: int
    score: list[int]
    fouls: list[int]
    royalty: list[int]
    entries: list[int]
    stays: list[int]
    fantasy_hands: list[int]
    decisions: list[int]
    earned: list[float]  # score and fouls since each seat last acted
    earned_fouls: list[int]
    next_hands: list[list[int]] = field(default_factory=list)  # where truncated: each seat's hand that does not come


@dataclass
class SlowTable:
    """A table that deals itself games, one after the other."""

    settings: OfcSettings
    seed: int
    table: int
    tables_per_deal: int = 1
    game: int = 0
    boards: list[list[list[int]]] = field(default_factory=list)
    discards: list[list[int]] = field(default_factory=list)
    hand: list[int] = field(default_factory=list)  # sorted, of the seat in turn
    fantasy: list[int] = field(default_factory=list)
    last_judged: list[Judged] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seats = self.settings.seats
        self.pineapple = self.settings.variant == "pineapple"
        self._begin_game()

    def _zeros(self) -> list[int]:
        return [0] * self.seats

    def _begin_game(self) -> None:
        self.record = EndedGame(False, 0, *(self._zeros() for _ in range(7)), [0.0] * self.seats, self._zeros())
        self.fantasy = self._zeros()
        self.button = self.game % self.seats
        self._begin_hand()
        self._give_turn()

    def _begin_hand(self) -> None:
        deal = (self.table // self.tables_per_deal) * 2**32 + self.game
        state = slow_key(self.seed, _DEAL, deal, 0, 0, self.record.hands, 0)
        self.deck = slow_shuffle(range(52 + self.settings.jokers), state)
        self.dealt: list[int] = []
        self.boards = [[[], [], []] for _ in range(self.seats)]
        self.discards = [[] for _ in range(self.seats)]
        self.record.hands += 1
        order = [(self.button + 1 + i) % self.seats for i in range(self.seats)]
        streets = 5 if self.pineapple else 9
        self.turns = [(street, seat) for street in range(streets) for seat in order if not self.fantasy[seat]]
        for seat in range(self.seats):
            if self.fantasy[seat]:
                self.record.fantasy_hands[seat] += 1
                cards = np.array(sorted(self._draw(self.fantasy[seat])), np.int64)
                rows = solve(cards, self.settings.stay_value, self.settings.stay_full_house)
                self.boards[seat] = [cards_of(row) for row in rows]

    def _draw(self, count: int) -> list[int]:
        cards, self.deck = self.deck[:count], self.deck[count:]
        self.dealt += cards
        return cards

    def _cards_on(self, street: int) -> int:
        return 5 if street == 0 else (3 if self.pineapple else 1)

    def _give_turn(self) -> bool:
        if not self.turns:
            return False
        self.street, self.seat = self.turns.pop(0)
        self.hand = sorted(self._draw(self._cards_on(self.street)))
        return True

    def coming(self) -> list[list[int]]:
        """A cheat for tests that want to see fantasyland: this hand and the next ones of the seat in turn."""
        hands, cursor = [self.hand], 0
        for street, seat in self.turns:
            count = self._cards_on(street)
            if seat == self.seat:
                hands.append(sorted(self.deck[cursor : cursor + count]))
            cursor += count
        return hands

    def step(self, action: int) -> EndedGame | None:
        """Play one action; the finished game if it ended one."""
        rows, discarded = placement(action, self.hand)
        for row in range(3):
            self.boards[self.seat][row] += rows[row]
            assert len(self.boards[self.seat][row]) <= (3, 5, 5)[row]
        self.discards[self.seat] += discarded
        self.record.decisions[self.seat] += 1
        self.record.earned[self.seat], self.record.earned_fouls[self.seat] = 0.0, 0
        while not self._give_turn():
            self._showdown()
            if not any(self.fantasy) or self.record.hands >= self.settings.hand_cap:
                self.record.truncated = any(self.fantasy)
                ended = self.record
                if ended.truncated:
                    ended.next_hands = self._look_ahead()
                self.game += 1
                self._begin_game()
                return ended
            self.button = (self.button + 1) % self.seats
            self._begin_hand()
        return None

    def _look_ahead(self) -> list[list[int]]:
        """The first five cards of each seat in the next hand; none for a seat in fantasyland."""
        record = replace(self.record, fantasy_hands=self._zeros())
        self.record, ended = record, self.record
        self.button = (self.button + 1) % self.seats
        self._begin_hand()
        hands: list[list[int]] = [[] for _ in range(self.seats)]
        for street, seat in self.turns:
            if street == 0:
                hands[seat] = sorted(self._draw(5))
        self.record = ended
        return hands

    def _showdown(self) -> None:
        judged = [judge(board) for board in self.boards]
        self.last_judged = judged
        chosen, record = self.settings, self.record
        for seat, mine in enumerate(judged):
            points = sum(pair_points(mine, judged[other]) for other in range(self.seats) if other != seat)
            record.score[seat] += points
            record.earned[seat] += points / chosen.reward_scale
            record.fouls[seat] += mine.foul
            record.earned_fouls[seat] += mine.foul
            record.royalty[seat] += mine.royalty
            inside = self.fantasy[seat] > 0
            cards = next_fantasyland(
                mine, inside, chosen.fantasyland, self.pineapple, chosen.stay_full_house, chosen.stay_by_top
            )
            record.stays[seat] += inside and cards > 0
            record.entries[seat] += not inside and cards > 0
            self.fantasy[seat] = cards
