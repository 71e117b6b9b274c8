"""The wargame as a `Game`: the options a user sets, the arrays that the kernels play."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from maple.core.errors import GameError, nearest
from maple.core.spec import EntityGroup, GameSpec, Metric, OptionSpec
from maple.core.step import Keys, Options
from maple.games.contract import Bot, Tables
from maple.games.rewards import Component, subtotals, weights_and_intervals
from maple.games.wargame import bots, encode, options, state, view
from maple.games.wargame.book import make_book
from maple.games.wargame.content import (
    MAX_SQUADS,
    Roster,
    check_fit,
    check_opens,
    is_file,
    load_map,
    load_mission,
    load_roster,
    names_of,
    sha256_of,
)
from maple.games.wargame.scripts import SCRIPTS, weights
from maple.games.wargame.show import action_text, ending_text, frame_text, show_view, told_text
from maple.games.wargame.svg import picture

__all__ = ["RewardSettings", "WargameGame", "WargameSettings"]

_BOTS = ("random", *SCRIPTS, "rollout")
_END_REASONS = {"wipe_out": state.WIPE_OUT, "round_limit": state.ROUND_LIMIT, "step_cap": state.STEP_CAP}


class RewardSettings(BaseModel):
    """What a seat earns, `--set game.rewards.NAME=WEIGHT` or `={weight: W, every: K}`; each against the other's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    win: Component = Field(Component(weight=1.0), description="a win; as much is lost with a defeat")
    margin: Component = Field(
        Component(weight=0.5), description="VP ahead in units of vp_scale, as a potential: taken back at the end"
    )
    vp: Component = Field(Component(), description="each VP, for good")
    damage: Component = Field(Component(), description="each hundred points destroyed")
    hold: Component = Field(Component(), description="each objective held when it scores")
    luck: Component = Field(
        Component(),
        description="each hundred points destroyed beyond what the dice should destroy on average; less than 0 takes "
        "it back, which changes what is learned in no way but that it is less noisy",
    )


class WargameSettings(BaseModel):
    """The options of the game, `--set game.NAME=VALUE`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    roster: str = Field("starter", description="units and armies: a name or a .yml file")
    maps: list[str] = Field(default_factory=list, description="names or .yml files; all that ship if empty")
    missions: list[str] = Field(default_factory=list, description="names or .yml files; all that ship if empty")
    armies: str = Field("mirrored", description="mirrored, drawn (each side its own), or a roster's army, or two: a,b")
    points: int = Field(600, ge=100, le=2000, description="that a drawn army may cost")
    squads: int = Field(MAX_SQUADS, ge=1, le=MAX_SQUADS, description="that a drawn army may have")
    rounds: int = Field(5, ge=1, le=20, description="after which a game ends")
    step_cap: int = Field(1000, ge=1, le=30_000, description="decisions after which a game is cut off")
    vp_scale: float = Field(20.0, gt=0, description="VP that the margin is counted in")
    rewards: RewardSettings = RewardSettings()

    @field_validator("roster", "maps", "missions")
    @classmethod
    def _as_paths(cls, value: str | list[str]) -> str | list[str]:
        """Files by their absolute paths, so that a run goes on from wherever it is started again."""
        return _absolute(value) if isinstance(value, str) else [_absolute(name) for name in value]


def _absolute(name: str) -> str:
    return str(Path(name).expanduser().resolve()) if is_file(name) else name


@cache
def _load(
    roster: str, maps: tuple[str, ...], missions: tuple[str, ...], _contents: tuple[str, ...]
) -> tuple[Roster, NDArray[Any]]:
    """A roster and the book of it, these maps and these missions; read again where the contents of a file change."""
    units = load_roster(roster)
    boards = {name: load_map(name) for name in maps}
    tasks = {name: load_mission(name) for name in missions}
    for task, mission in tasks.items():
        for name, board in boards.items():
            check_fit(task, mission, name, board)
    return units, make_book(units, boards, tasks)


def _armies(text: str, roster: Roster) -> list[int]:
    """The numbers of the armies that a setting names; -1 where they are drawn."""
    if text in ("mirrored", "drawn"):
        return [-1, -1]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in roster.armies:
            known = ("mirrored", "drawn", *roster.armies)
            raise GameError(f"game.armies = {text!r}: the roster has no army {name!r}; {nearest(name, known)}")
    if len(names) > 2:
        raise GameError(f"game.armies = {text!r} names {len(names)} armies; one for both sides or two are allowed")
    numbers = [list(roster.armies).index(name) for name in names]
    return [numbers[0], numbers[-1]]


class _WargameTables:
    """A batch of tables: records and the kernels over them."""

    def __init__(self, game: WargameGame, count: int, seed: int, first_table: int, tables_per_deal: int) -> None:
        self.state: NDArray[Any] = np.zeros(count, state.TABLE)
        self.ended: NDArray[Any] = np.zeros(count, state.ENDED)
        self.last_view = np.zeros((count, 2, view.VIEW_WORDS), np.uint64)
        self._book, self._rules = game.book, game.rules
        self._deals = (np.uint64(seed), first_table, tables_per_deal)

    def start(self, lo: int, hi: int) -> None:
        view.start(self.state, self._book, self._rules, *self._deals, lo, hi)

    def decisions(self, keys: Keys, reward: NDArray[np.float32], view_: NDArray[np.uint64], lo: int, hi: int) -> None:
        view.views(self.state, self._rules, keys.seat, reward, keys.game, keys.decision, view_, lo, hi)

    def play(self, action: NDArray[np.int32], lo: int, hi: int) -> None:
        args = (self._book, self._rules, *self._deals, action, self.ended, self.last_view)
        view.play(self.state, *args, lo, hi)


class WargameGame:
    """The wargame with its options chosen."""

    def __init__(self, settings: WargameSettings | None = None) -> None:
        chosen = settings or WargameSettings()
        self.settings = chosen
        self.maps = tuple(dict.fromkeys(chosen.maps or names_of("maps")))
        self.missions = tuple(dict.fromkeys(chosen.missions or names_of("missions")))
        named = (chosen.roster, *self.maps, *self.missions)
        self.files = {name: sha256_of(name) for name in named if is_file(name)}
        self.roster, self.book = _load(chosen.roster, self.maps, self.missions, tuple(self.files.values()))
        # Those that ship are for whole games, and shorter ones leave their late objectives out.
        for name in chosen.missions:
            check_opens(name, load_mission(name), chosen.rounds)
        cheapest = min(unit.body.points for unit in self.roster.units.values())
        if chosen.points < cheapest:
            raise GameError(f"game.points = {chosen.points} buys no squad; the cheapest of the roster costs {cheapest}")
        earns = chosen.rewards
        parts = (earns.win, earns.margin, earns.vp, earns.damage, earns.hold, earns.luck)
        weight, every = weights_and_intervals(dict(zip(state.COMPONENTS, parts, strict=True)))
        self.rules = np.zeros(1, state.RULES)
        self.rules[0] = (
            chosen.rounds,
            chosen.step_cap,
            chosen.points,
            chosen.squads,
            chosen.armies == "mirrored",
            _armies(chosen.armies, self.roster),
            weight,
            every,
            chosen.vp_scale,
        )
        self.spec = GameSpec(
            name="wargame",
            seats=2,
            actions=state.ACTIONS,
            observation=encode.OBSERVATION,
            view=view.VIEW_WORDS,
            signals=("reward",),
            figures=state.ENDED,
            opponents=_BOTS,
            metric=Metric("win_rate", 0.02),
            options=OptionSpec(
                features=options.FEATURES,
                option_parts=1,
                max_parts=options.MAX_OPTIONS,
                part_width=options.PART_WIDTH,
                shared_width=options.SHARED_WIDTH,
                state_width=options.SHARED_WIDTH + options.PART_WIDTH,
                max_options=options.MAX_OPTIONS,
                shares_all=True,
            ),
            entities=(
                EntityGroup("own", encode.GLOBALS, MAX_SQUADS, encode.ROW, actions=(state.BRACE, state.RALLY)),
                EntityGroup(
                    "enemies",
                    encode.GLOBALS + MAX_SQUADS * encode.ROW,
                    MAX_SQUADS,
                    encode.ROW,
                    actions=(state.SHOOT, state.CHARGE, state.FIGHT),
                ),
            ),
            energy=12_000.0,
        )

    def tables(self, count: int, seed: int, first_table: int = 0, tables_per_deal: int = 1) -> Tables:
        return _WargameTables(self, count, seed, first_table, tables_per_deal)

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[np.uint8], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None:
        encode.observe(view, self.book, _scratch(), observation, mask, lo, hi)

    def count_options(self, view: NDArray[np.uint64], count: NDArray[np.int64], lo: int, hi: int) -> None:
        options.count_options(view, self.book, _scratch(), count, lo, hi)

    def describe(self, view: NDArray[np.uint64], out: Options, lo: int, hi: int) -> None:
        parts = (out.shared, out.shared_length, out.part, out.part_length, out.option_part)
        options.describe(view, self.book, _scratch(), out.offset, *parts, out.action, lo, hi)

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None:
        options.describe_state(view, self.book, _scratch(), feature, length, lo, hi)

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None:
        options.describe_choice(view, self.book, _scratch(), action, feature, length, lo, hi)

    def permute(
        self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64], lo: int, hi: int
    ) -> None:
        raise GameError("the wargame has no equivalent decisions to learn from; leave ppo.augment off")

    def bot(self, name: str) -> Bot:
        if name not in _BOTS:
            raise GameError(f"wargame has no opponent {name!r}; {nearest(name, _BOTS)}")
        script = weights(name if name in SCRIPTS else "tactician")

        def choose(
            view: NDArray[np.uint64], seed: int, keys: Keys, action: NDArray[np.int32], lo: int, hi: int
        ) -> None:
            draws = (np.uint64(seed), keys.table, keys.game, keys.seat, keys.decision)
            if name == "random":
                bots.play_random(view, self.book, _scratch(), *draws, action, lo, hi)
            elif name == "rollout":
                room = (_scratch(2), np.zeros(1, state.ENDED))
                bots.play_rollout(view, self.book, self.rules, *room, script, *draws, action, lo, hi)
            else:
                bots.play_script(view, self.book, _scratch(), script, action, lo, hi)

        return choose

    def summarize(self, figures: NDArray[Any], seat: NDArray[np.int64]) -> dict[str, float]:
        games, count = np.arange(len(figures)), max(1, len(figures))

        def mean(name: str, side: NDArray[np.int64]) -> float:
            return float(figures[name][games, side].sum() / count)

        return {
            "win_rate": mean("score", seat),
            "vp": mean("vp", seat),
            "vp_margin": mean("vp", seat) - mean("vp", 1 - seat),
            "kills": mean("kills", seat),
            "losses": mean("kills", 1 - seat),
            "charges": mean("charges", seat),
            "health": mean("health", seat),
            "their_health": mean("health", 1 - seat),
            "rounds": float(figures["round"].sum() / count),
            "length": float(figures["length"].sum() / count),
            **{f"end_{name}": float((figures["end_reason"] == n).sum() / count) for name, n in _END_REASONS.items()},
            **subtotals(state.COMPONENTS, figures["parts"], seat),
        }

    def show(self, view: NDArray[np.uint64]) -> str:
        return show_view(view, self.book, self.roster)

    def frame(self, table: Any) -> str:
        return frame_text(table, self.book[0], self.roster)

    def say(self, table: Any, action: int) -> str:
        return action_text(table, action, self.roster)

    def tell(self, table: Any, action: int, after: Any) -> list[str]:
        return told_text(table, action, after, self.roster)

    def picture(self, table: Any, action: int, after: Any) -> str:
        names = (self.maps[int(table["board"])], self.missions[int(table["mission"])])
        board, mission = (Path(name).stem if is_file(name) else name for name in names)
        captions = [f"map {board}, mission {mission}", self.say(table, action), *self.tell(table, action, after)]
        return picture(table, action, self.book[0], self.roster, captions)

    def ending(self, end: dict[str, Any]) -> str:
        return ending_text(end)


def _scratch(tables: int = 1) -> NDArray[Any]:
    """Room for tables that views are read back to."""
    return np.zeros(tables, state.TABLE)
