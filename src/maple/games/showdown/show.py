"""A battle for people: as a replay that Showdown's own viewer plays, and as text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence

__all__ = ["VIEWER", "readable", "replay_html", "replay_log"]

VIEWER = "https://play.pokemonshowdown.com/js/replay-embed.js"
BRIDGE_NAMES = ("First", "Second")
_STATUS = {
    "brn": "burned",
    "par": "paralysed",
    "slp": "asleep",
    "frz": "frozen",
    "psn": "poisoned",
    "tox": "badly poisoned",
}
_STATS = {"atk": "attack", "def": "defense", "spa": "special attack", "spd": "special defense", "spe": "speed"}


def replay_log(lines: Sequence[str], names: tuple[str, str]) -> str:
    """The log as servers keep it, with the players' own names."""
    own = {bridge: name.replace("|", "") for bridge, name in zip(BRIDGE_NAMES, names, strict=True)}
    place = re.compile(rf"^(\|player\|p[12]\||\|win\|)({'|'.join(BRIDGE_NAMES)})(?=\||$)")
    return "".join(place.sub(lambda found: found[1] + own[found[2]], line) + "\n" for line in lines)


def replay_html(log: str, title: str) -> str:
    """A page that plays the log in Showdown's viewer, which it loads from its site; without a network it shows text."""
    alone = "document.querySelector('details').open = true; document.querySelector('.alone').hidden = false"
    safe = log.replace("</", "<\\/")
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n'
        "<body>\n"
        '<div class="wrapper replay-wrapper" style="max-width:1180px;margin:0 auto">\n'
        '<input type="hidden" name="replayid" value="maple">\n'
        '<div class="battle"></div><div class="battle-log"></div>\n'
        '<div class="replay-controls"></div><div class="replay-controls-2"></div>\n'
        f'<h1>{html.escape(title)}</h1>\n<script type="text/plain" class="battle-log-data">{safe}</script>\n'
        '<p class="alone" hidden>The viewer could not be loaded from its site: this is the battle as text.</p>\n'
        f"<details><summary>as text</summary><pre>{html.escape(readable(log))}</pre></details>\n"
        "</div>\n"
        f'<script src="{VIEWER}" onerror="{alone}"></script>\n'
        "</body></html>\n"
    )


def readable(log: str) -> str:
    """The log in sentences, a turn at a time."""
    told: list[str] = []
    for line in log.splitlines():
        _, *parts = line.split("|") if line.startswith("|") else ("", "")
        sentence = _SENTENCES[parts[0]](parts[1:]) if parts and parts[0] in _SENTENCES else ""
        if sentence:
            told.append(sentence)
    return "\n".join(told) + "\n"


def _who(ident: str) -> str:
    """`p2a: Name` as `Name (p2)`."""
    side, _, name = ident.partition(": ")
    return f"{name} ({side[:2]})"


def _why(parts: Sequence[str]) -> str:
    cause = next((part.removeprefix("[from] ") for part in parts if part.startswith("[from] ")), "")
    return f", by {cause.split(': ')[-1]}" if cause else ""


def _effect(text: str) -> str:
    return text.rpartition(": ")[2]


def _health(parts: Sequence[str]) -> str:
    return f"  {_who(parts[0])} is at {parts[1].split(' ')[0] if parts[1] != '0 fnt' else '0'}{_why(parts[2:])}"


def _move(parts: Sequence[str]) -> str:
    at = f" at {_who(parts[2])}" if len(parts) > 2 and ": " in parts[2] and parts[2] != parts[0] else ""
    return f"{_who(parts[0])} uses {parts[1]}{at}"


def _boost(sign: str) -> Callable[[Sequence[str]], str]:
    return lambda parts: f"  {_who(parts[0])}: {_STATS.get(parts[1], parts[1])} {sign}{parts[2]}"


_SENTENCES: dict[str, Callable[[Sequence[str]], str]] = {
    "player": lambda parts: f"{parts[0]} is {parts[1]}" if len(parts) > 1 and parts[1] else "",
    "tier": lambda parts: f"format: {parts[0]}",
    "poke": lambda parts: f"{parts[0]} brings {parts[1].split(',')[0]}",
    "turn": lambda parts: f"\nTurn {parts[0]}",
    "switch": lambda parts: f"{_who(parts[0])} comes in: {parts[1]}, {parts[2]}",
    "drag": lambda parts: f"{_who(parts[0])} is dragged in: {parts[1]}, {parts[2]}",
    "replace": lambda parts: f"  it was {_who(parts[0])} all along",
    "move": _move,
    "cant": lambda parts: f"{_who(parts[0])} cannot move ({_effect(parts[1])})",
    "faint": lambda parts: f"  {_who(parts[0])} faints",
    "detailschange": lambda parts: f"  {_who(parts[0])} becomes {parts[1].split(',')[0]}",
    "-damage": _health,
    "-heal": _health,
    "-sethp": _health,
    "-status": lambda parts: f"  {_who(parts[0])} is {_STATUS.get(parts[1], parts[1])}{_why(parts[2:])}",
    "-curestatus": lambda parts: f"  {_who(parts[0])} is no longer {_STATUS.get(parts[1], parts[1])}",
    "-boost": _boost("+"),
    "-unboost": _boost("-"),
    "-miss": lambda parts: f"  {_who(parts[0])} misses",
    "-fail": lambda parts: "  it fails",
    "-immune": lambda parts: f"  {_who(parts[0])} is immune",
    "-crit": lambda _: "  a critical hit",
    "-supereffective": lambda _: "  it is super effective",
    "-resisted": lambda _: "  it is not very effective",
    "-terastallize": lambda parts: f"{_who(parts[0])} terastallizes into {parts[1]}",
    "-mega": lambda parts: f"{_who(parts[0])} mega evolves",
    "-weather": lambda parts: f"  weather: {parts[0]}" if "[upkeep]" not in parts else "",
    "-fieldstart": lambda parts: f"  {_effect(parts[0])} begins",
    "-fieldend": lambda parts: f"  {_effect(parts[0])} ends",
    "-sidestart": lambda parts: f"  {_effect(parts[1])} on the side of {parts[0][:2]}",
    "-sideend": lambda parts: f"  {_effect(parts[1])} is gone from the side of {parts[0][:2]}",
    "-start": lambda parts: f"  {_who(parts[0])}: {_effect(parts[1])}",
    "-end": lambda parts: f"  {_who(parts[0])}: no more {_effect(parts[1])}",
    "-item": lambda parts: f"  {_who(parts[0])} has {parts[1]}",
    "-enditem": lambda parts: f"  {_who(parts[0])} no longer has {parts[1]}",
    "-ability": lambda parts: f"  {_who(parts[0])} has {parts[1]}",
    "win": lambda parts: f"\n{parts[0]} wins",
    "tie": lambda _: "\nnobody wins",
}
