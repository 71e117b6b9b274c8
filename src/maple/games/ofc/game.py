"""Open-face Chinese poker as a `Game`: the options a user sets, the arrays that the kernels play."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from maple.core.errors import GameError, nearest
from maple.core.spec import GameSpec, Metric, OptionSpec
from maple.core.step import Keys, Options
from maple.games.contract import Bot, Tables
from maple.games.ofc import bots, encode, options, rules, symmetry
from maple.games.ofc.show import action_text, ending_text, frame_text, show_view
from maple.games.ofc.svg import picture

__all__ = ["OfcGame", "OfcSettings"]

_FANTASYLAND = {
    "off": rules.FANTASYLAND_OFF,
    "fixed": rules.FANTASYLAND_FIXED,
    "progressive": rules.FANTASYLAND_PROGRESSIVE,
}
_BOTS = {"random": bots.play_random, "safe": bots.play_safe, "rollout": bots.play_rollout}


class OfcSettings(BaseModel):
    """The options of the game, `--set game.NAME=VALUE`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: Literal["pineapple", "regular"] = Field("pineapple", description="three cards a turn, or one")
    seats: int = Field(3, ge=2, le=3, description="players at a table")
    jokers: Literal[0, 2] = Field(0, description="in the deck")
    fantasyland: Literal["off", "fixed", "progressive"] = Field(
        "progressive", description="none, 14 cards for everybody, or more cards for a stronger top row"
    )
    stay_full_house: bool = Field(False, description="a full house in the middle also stays in fantasyland")
    stay_by_top: bool = Field(False, description="a stay is dealt by the top row instead of 14 cards")
    stay_value: float = Field(15.0, ge=0, le=100, description="points that the fantasyland solver takes a stay for")
    reward_scale: float = Field(10.0, gt=0, description="points that make a reward of 1")
    hand_cap: int = Field(20, ge=1, le=200, description="hands after which a session is cut off")

    @field_validator("fantasyland", mode="before")
    @classmethod
    def _off_in_yaml(cls, value: object) -> object:
        return "off" if value is False else value  # YAML reads a bare `off` as false


class _OfcTables:
    """A batch of OFC tables: records and the kernels over them."""

    def __init__(self, game: OfcGame, count: int, seed: int, first_table: int, tables_per_deal: int) -> None:
        self.state: NDArray[Any] = np.zeros(count, rules.TABLE)
        self.ended: NDArray[Any] = np.zeros(count, rules.ENDED)
        self.last_view = np.zeros((count, game.spec.seats, encode.VIEW_WORDS), np.uint64)
        self._rules = game.rules
        self._seed = np.uint64(seed)
        self._first_table = first_table
        self._tables_per_deal = tables_per_deal

    def start(self, lo: int, hi: int) -> None:
        rules.start(self.state, self._rules, self._seed, self._first_table, self._tables_per_deal, lo, hi)

    def decisions(self, keys: Keys, reward: NDArray[np.float32], view: NDArray[np.uint64], lo: int, hi: int) -> None:
        encode.views(self.state, self._rules, keys.seat, reward, keys.game, keys.decision, view, lo, hi)

    def play(self, action: NDArray[np.int32], lo: int, hi: int) -> None:
        encode.play(
            self.state,
            self._rules,
            self._seed,
            self._first_table,
            self._tables_per_deal,
            action,
            self.ended,
            self.last_view,
            lo,
            hi,
        )


class OfcGame:
    """OFC with its options chosen."""

    def __init__(self, settings: OfcSettings | None = None) -> None:
        chosen = settings or OfcSettings()
        pineapple = chosen.variant == "pineapple"
        self.settings = chosen
        self.rules = np.zeros(1, rules.RULES)
        self.rules[0] = (
            chosen.seats,
            pineapple,
            chosen.jokers,
            _FANTASYLAND[chosen.fantasyland],
            chosen.stay_full_house,
            chosen.stay_by_top,
            chosen.stay_value,
            chosen.hand_cap,
            1.0 / chosen.reward_scale,
        )
        self.spec = GameSpec(
            name="ofc",
            seats=chosen.seats,
            actions=270 if pineapple else 273,
            observation=encode.observation_size(chosen.jokers, pineapple),
            view=encode.VIEW_WORDS,
            signals=("score", "foul"),
            figures=rules.ENDED,
            opponents=tuple(_BOTS),
            metric=Metric("points_per_hand", 0.5),
            options=OptionSpec(
                features=options.FEATURES,
                option_parts=options.OPTION_PARTS,
                max_parts=options.MAX_PARTS,
                part_width=options.PART_WIDTH,
                shared_width=options.SHARED_WIDTH,
                state_width=options.STATE_WIDTH,
                max_options=232,
            ),
            entities=encode.entities(chosen.jokers, pineapple),
        )

    def tables(self, count: int, seed: int, first_table: int = 0, tables_per_deal: int = 1) -> Tables:
        return _OfcTables(self, count, seed, first_table, tables_per_deal)

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[np.uint8], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None:
        if self.settings.jokers:
            encode.observe_with_jokers(view, observation, mask, lo, hi)
        else:
            encode.observe(view, observation, observation.view(np.uint32), mask, lo, hi)

    def count_options(self, view: NDArray[np.uint64], count: NDArray[np.int64], lo: int, hi: int) -> None:
        options.count_options(view, count, lo, hi)

    def describe(self, view: NDArray[np.uint64], out: Options, lo: int, hi: int) -> None:
        options.describe(
            view,
            out.offset,
            out.shared,
            out.shared_length,
            out.part,
            out.part_length,
            out.option_part,
            out.action,
            lo,
            hi,
        )

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None:
        options.describe_state(view, feature, length, lo, hi)

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None:
        options.describe_choice(view, action, feature, length, lo, hi)

    def permute(
        self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64], lo: int, hi: int
    ) -> None:
        symmetry.permute_suits(view, action, random, lo, hi)

    def bot(self, name: str) -> Bot:
        if name not in _BOTS:
            raise GameError(f"ofc has no opponent {name!r}; {nearest(name, _BOTS)}")
        kernel = _BOTS[name]

        def choose(
            view: NDArray[np.uint64], seed: int, keys: Keys, action: NDArray[np.int32], lo: int, hi: int
        ) -> None:
            kernel(view, np.uint64(seed), keys.table, keys.game, keys.seat, keys.decision, action, lo, hi)

        return choose

    def summarize(self, figures: NDArray[Any], seat: NDArray[np.int64]) -> dict[str, float]:
        games = np.arange(len(figures))
        hands = max(1, int(figures["hands"].sum()))
        played = max(1, hands - int(figures["fantasy_hands"][games, seat].sum()))
        return {
            "points_per_hand": float(figures["score"][games, seat].sum() / hands),
            "foul": float(figures["fouls"][games, seat].sum() / played),
            "royalty": float(figures["royalty"][games, seat].sum() / hands),
            "fantasyland_entry": float(figures["entries"][games, seat].sum() / played),
            "fantasyland_stay": float(
                figures["stays"][games, seat].sum() / max(1, figures["fantasy_hands"][games, seat].sum())
            ),
            "reward": float(figures["score"][games, seat].sum() / self.settings.reward_scale / max(1, len(figures))),
        }

    def show(self, view: NDArray[np.uint64]) -> str:
        return show_view(view)

    def frame(self, table: Any) -> str:
        return frame_text(table, self.spec.seats)

    def say(self, table: Any, action: int) -> str:
        return action_text(table, action, self.spec.seats)

    def tell(self, table: Any, action: int, after: Any) -> list[str]:
        return []  # an action says all of it: which cards go where

    def picture(self, table: Any, action: int, after: Any) -> str:
        return picture(table, self.spec.seats)

    def ending(self, end: dict[str, Any]) -> str:
        return ending_text(end, self.spec.seats)
