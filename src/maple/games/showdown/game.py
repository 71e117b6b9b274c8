"""Pokémon Showdown battles as a `Game`: the options a user sets, and what is made of the bridge's views."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from maple.core.errors import GameError, nearest
from maple.core.spec import GameSpec, Metric
from maple.core.step import Keys, Options, Outcome
from maple.games.bridged import Program
from maple.games.contract import Bot, Tables
from maple.games.rewards import Component, Ledger, subtotals
from maple.games.showdown import bots, encode, options
from maple.games.showdown.places import parse_servers
from maple.games.showdown.refusals import explain
from maple.games.showdown.runtime import find_node, installed_modules
from maple.games.showdown.schema import BRIDGE, REWARD_PARTS, ended_dtype, load_schema, row_dtype
from maple.games.showdown.teams import read_team_files

__all__ = ["RewardSettings", "ShowdownGame", "ShowdownSettings"]

_BOTS = {
    "random": bots.play_random,
    "power": bots.play_power,
    "effective": bots.play_effective,
    "heuristic": bots.play_heuristic,
}
_SEATS = 2
# Room for what a wave of battles needs for a moment, in MiB: of the usual 16 a part is copied on before it is let go.
# In turns, two processes of 32 battles each: 1.08 times the decisions, a simulator alone the same.
_NODE_FLAGS = ("--max-semi-space-size=64",)
_FIGURES = np.dtype(
    [
        ("how", "i1"),
        ("reward", "f4", (_SEATS, 1)),
        ("score", "f4", (_SEATS,)),  # 1 for a win, 0.5 for a tie
        ("hands", "i4"),
        ("turns", "i4"),
        ("decisions", "i4", (_SEATS,)),
        ("refused", "i4"),
        ("parts", "f4", (_SEATS, len(REWARD_PARTS))),  # of the reward, weighted; they add up to the game's total
    ]
)


class RewardSettings(BaseModel):
    """What a seat earns, `--set game.rewards.NAME=WEIGHT` or `={weight: W, every: K}`; each against the other's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    win: Component = Field(Component(weight=1.0), description="a win; as much is lost with a defeat")
    faint: Component = Field(Component(weight=0.1), description="each Pokémon that they have lost more than I")
    hp: Component = Field(Component(weight=0.1), description="each whole Pokémon's HP that I have more than they")
    status: Component = Field(Component(), description="each status condition that they have more than I")
    turn: Component = Field(Component(), description="cost of a turn")


class ShowdownSettings(BaseModel):
    """The options of the game, `--set game.NAME=VALUE`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = Field("gen9randombattle", description="a singles format")
    team: str = Field(
        "", description="files or folders of teams, by commas, exported or packed; for formats that make none"
    )
    max_turns: int = Field(300, ge=1, le=1000, description="turns after which a battle is cut off")
    team_pool: int = Field(16384, ge=1, le=1_000_000, description="teams that battles are drawn from")
    accelerate: bool = Field(True, description="cheap event look-up, where it was verified")
    servers: str = Field("", description="play on these: HOST:PORT, HOST:PORT/BATTLES, by commas; here if empty")
    patience_s: float = Field(
        15.0, ge=0.5, le=600, description="for a word from a server; a battle may stand still for six times as long"
    )
    layout: str = Field(default_factory=lambda: load_schema().hash, description="of the views: kept with checkpoints")
    rewards: RewardSettings = RewardSettings()

    @field_validator("format")
    @classmethod
    def _as_id(cls, value: str) -> str:
        return re.sub(r"[^a-z0-9]+", "", value.lower())

    @field_validator("team")
    @classmethod
    def _as_paths(cls, value: str) -> str:
        return ",".join(str(Path(part.strip()).expanduser().resolve()) for part in value.split(",") if part.strip())

    @field_validator("servers")
    @classmethod
    def _as_places(cls, value: str) -> str:
        parse_servers(value)
        return value

    @field_validator("layout")
    @classmethod
    def _this_layout(cls, value: str) -> str:
        if value != load_schema().hash:
            raise ValueError(
                f"views are laid out by {load_schema().hash} here; use the Maple that wrote the checkpoint"
            )
        return value


class ShowdownGame:
    """A format with its options chosen.

    With a `name`, it is played on the first of its servers, against whoever challenges the user of that name; no more
    than `battles` of them, if that is not 0. With `record`, the log of every finished battle is kept
    (`NodeArena.records`).
    """

    def __init__(
        self, settings: ShowdownSettings | None = None, name: str = "", battles: int = 0, record: bool = False
    ) -> None:
        schema = load_schema()
        self.settings = settings or ShowdownSettings()
        self.name, self.battles, self.record = name, battles, record
        self.spec = GameSpec(
            name="showdown",
            seats=_SEATS,
            actions=schema.actions,
            observation=encode.observation_plan().size,
            view=schema.words,
            signals=("reward",),
            figures=_FIGURES,
            opponents=tuple(_BOTS),
            metric=Metric("win_rate", 0.02),
            options=options.option_spec(),
            entities=encode.observation_plan().entities,
        )

    @property
    def files(self) -> dict[str, str]:
        """The SHA-256 of each team file."""
        found = read_team_files(self.settings.team)
        return {one["file"]: hashlib.sha256(one["text"].encode()).hexdigest() for one in found}

    def program(self, seed: int, tables_per_deal: int) -> Program:
        chosen = self.settings
        rules = {
            "format": chosen.format,
            "seed": str(seed),
            "tablesPerDeal": tables_per_deal,
            "maxTurns": chosen.max_turns,
            "teamPool": chosen.team_pool,
            "teams": read_team_files(chosen.team),
            "accelerate": chosen.accelerate,
            "servers": [asdict(server) for server in parse_servers(chosen.servers)],
            "name": self.name,
            "battles": self.battles,
            "patience": chosen.patience_s,
            "record": self.record,
        }
        script = "server_main.js" if chosen.servers else "main.js"
        command = (find_node(), *_NODE_FLAGS, str(BRIDGE / "src" / script), str(installed_modules()))
        return Program(command, rules, load_schema().hash, row_dtype(), ended_dtype(), pooled=not chosen.servers)

    def ledger(self, tables: int) -> Ledger:
        earns = self.settings.rewards
        parts = (earns.win, earns.faint, earns.hp, earns.status, earns.turn)
        return Ledger(dict(zip(REWARD_PARTS, parts, strict=True)), tables, _SEATS)

    def figures(self, ended: NDArray[Any], reward: NDArray[Any], parts: NDArray[Any]) -> NDArray[Any]:
        found = np.zeros(len(ended), _FIGURES)
        found["how"], found["hands"] = ended["outcome"], 1
        found["reward"][:, :, 0], found["parts"] = reward, parts
        won = ended["winner"][:, None] == np.arange(_SEATS)
        tied = (ended["winner"] < 0)[:, None] & (ended["outcome"] != Outcome.LOST)[:, None]
        found["score"] = np.where(won, 1.0, np.where(tied, 0.5, 0.0))
        for name in ("turns", "decisions", "refused"):
            found[name] = ended[name]
        return found

    def refuse(self, failure: Mapping[str, Any]) -> Exception:
        return GameError(explain(failure))

    def remark(self, said: Mapping[str, Any]) -> str:
        if not said["notAccelerated"] or not self.settings.accelerate or self.settings.servers:
            return ""
        return f"battles are played without the accelerator: {said['notAccelerated']}"

    def tables(self, count: int, seed: int, first_table: int = 0, tables_per_deal: int = 1) -> Tables:
        raise GameError("showdown is played in Node processes, not in this one; use an arena (maple.make_arena)")

    def observe(
        self, view: NDArray[np.uint64], observation: NDArray[np.uint8], mask: NDArray[np.bool_], lo: int, hi: int
    ) -> None:
        encode.observe(_bytes(view), encode.observation_plan().steps, encode.mask_byte(), observation, mask, lo, hi)

    def count_options(self, view: NDArray[np.uint64], count: NDArray[np.int64], lo: int, hi: int) -> None:
        options.count_options(_bytes(view), options.places(), count, lo, hi)

    def describe(self, view: NDArray[np.uint64], out: Options, lo: int, hi: int) -> None:
        parts = (out.shared, out.shared_length, out.part, out.part_length, out.option_part)
        options.describe(_bytes(view), options.places(), out.offset, *parts, out.action, lo, hi)

    def describe_state(
        self, view: NDArray[np.uint64], feature: NDArray[np.int16], length: NDArray[np.int16], lo: int, hi: int
    ) -> None:
        options.describe_state(_bytes(view), options.places(), feature, length, lo, hi)

    def describe_choice(
        self,
        view: NDArray[np.uint64],
        action: NDArray[np.int16],
        feature: NDArray[np.int16],
        length: NDArray[np.int16],
        lo: int,
        hi: int,
    ) -> None:
        options.describe_choice(_bytes(view), options.places(), action, feature, length, lo, hi)

    def permute(
        self, view: NDArray[np.uint64], action: NDArray[np.int16], random: NDArray[np.uint64], lo: int, hi: int
    ) -> None:
        raise GameError("showdown has no equivalent decisions to learn from; leave ppo.augment off")

    def bot(self, name: str) -> Bot:
        if name not in _BOTS:
            raise GameError(f"showdown has no opponent {name!r}; {nearest(name, _BOTS)}")
        kernel = _BOTS[name]

        def choose(
            view: NDArray[np.uint64], seed: int, keys: Keys, action: NDArray[np.int32], lo: int, hi: int
        ) -> None:
            draws = (np.uint64(seed), keys.table, keys.game, keys.seat, keys.decision)
            kernel(_bytes(view), bots.places(), *draws, action, lo, hi)

        return choose

    def summarize(self, figures: NDArray[Any], seat: NDArray[np.int64]) -> dict[str, float]:
        whole = figures["how"] != Outcome.LOST
        figures, seat = figures[whole], seat[whole]
        games, count = np.arange(len(figures)), max(1, len(figures))
        return {
            "win_rate": float(figures["score"][games, seat].sum() / count),
            "turns": float(figures["turns"].sum() / count),
            "truncated": float((figures["how"] == Outcome.TRUNCATED).sum() / count),
            "refused": float(figures["refused"].sum() / count),
            **subtotals(REWARD_PARTS, figures["parts"], seat),
        }


def _bytes(view: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(view).view(np.uint8)
