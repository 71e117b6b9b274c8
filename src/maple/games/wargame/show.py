"""A position as text: the board as a seat sees it, then its squads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.games.wargame.content import CELLS, HEIGHT, WIDTH, Roster
from maple.games.wargame.ground import cell_at
from maple.games.wargame.state import (
    BRACE,
    BRACED,
    CHARGE,
    CHARGED,
    DEFER,
    FIGHT,
    FOCUS,
    HOLD,
    NOBODY,
    PHASES,
    RALLY,
    ROUND_LIMIT,
    RUSHED,
    SHAKEN,
    SHOOT,
    STEP_CAP,
    SURGE,
    TABLE,
    WIPE_OUT,
)
from maple.games.wargame.tables import BLOCKING, COVER
from maple.games.wargame.view import read_view, rounds_of

__all__ = ["action_text", "board_text", "dice_text", "ending_text", "frame_text", "show_view", "squad_lines"]

_FLAGS = {SHAKEN: "shaken", RUSHED: "rushed", CHARGED: "charged", BRACED: "braced"}
MINE, THEIRS = "ABCDEFGH", "abcdefgh"  # by slot


def board_text(table: Any, book: Any) -> str:
    """The board: `#` blocks, `+` is cover, `o` the reach of an objective, capitals the first side, small the second."""
    board = int(table["board"])
    terrain, near = book["terrain"][board], book["near"][board] & book["used"][int(table["mission"])]
    marks = ["." for _ in range(CELLS)]
    for cell in range(CELLS):
        if near[cell]:
            marks[cell] = "o"
        if terrain[cell] in (BLOCKING, COVER):
            marks[cell] = "#" if terrain[cell] == BLOCKING else "+"
    for side, letters in enumerate((MINE, THEIRS)):
        for slot, cell in enumerate(table["cell"][side].tolist()):
            if cell >= 0:
                marks[cell] = letters[slot]
    return "\n".join(" ".join(marks[y * WIDTH : (y + 1) * WIDTH]) for y in range(HEIGHT))


def squad_lines(table: Any, side: int, roster: Roster) -> list[str]:
    """One line for each squad of a side that is left."""
    units, lines = list(roster.units.values()), []
    for slot, cell in enumerate(table["cell"][side].tolist()):
        if cell < 0:
            continue
        unit = units[int(table["unit"][side, slot])]
        flags = int(table["flags"][side, slot])
        marks = [word for bit, word in _FLAGS.items() if flags & bit]
        marks += ["engaged"] if table["engaged"][side, slot] else []
        left = f"{int(table['models'][side, slot])}/{unit.body.models} models"
        if unit.body.wounds > 1:
            left += f", {int(table['wounds'][side, slot])}/{unit.body.wounds} wounds"
        place = f"{cell % WIDTH},{cell // WIDTH}"
        lines.append(f"{(MINE, THEIRS)[side][slot]} {unit.name:16} {left:26} at {place:6} {' '.join(marks)}".rstrip())
    return lines


def show_view(view: NDArray[np.uint64], books: NDArray[Any], roster: Roster) -> str:
    """What a seat sees: round, phase and scores, the board, both sides' squads."""
    tables = np.zeros(1, TABLE)
    read_view(view, tables[0])
    table = tables[0]
    vp, command = table["vp"].tolist(), table["command"].tolist()
    head = (
        f"round {int(table['round'])} of {int(rounds_of(view))}, {PHASES[int(table['phase'])]} phase; "
        f"VP {vp[0]}:{vp[1]}, command points {command[0]}:{command[1]}"
    )
    squads = ["mine", *squad_lines(table, 0, roster), "theirs", *squad_lines(table, 1, roster)]
    return "\n".join([head, board_text(table, books[0]), *squads])


def action_text(table: Any, action: int, roster: Roster) -> str:
    """What a squad is about to do, in words."""
    side, slot = int(table["side"]), int(table["slot"])
    own, other = (MINE, THEIRS) if side == 0 else (THEIRS, MINE)

    def name(letters: str, of: int, number: int) -> str:
        return f"{list(roster.units.values())[int(table['unit'][of, number])].name} {letters[number]}"

    if action >= BRACE:
        verb, squad = ("braces", action - BRACE) if action < RALLY else ("rallies", action - RALLY)
        return f"{name(own, side, squad)} {verb}"
    if slot == NOBODY:
        return "no tactic in the command phase"
    who = name(own, side, slot)
    if action < SHOOT:
        cell = int(cell_at(side, int(table["cell"][side, slot]), action))
        return f"{who} goes to {cell % WIDTH},{cell // WIDTH}"
    for first, verb in ((FIGHT, "fights"), (CHARGE, "charges"), (SHOOT, "shoots at")):
        if first <= action < first + len(other):
            return f"{who} {verb} {name(other, 1 - side, action - first)}"
    return f"{who} {({HOLD: 'holds', DEFER: 'lets the others go first', FOCUS: 'focuses', SURGE: 'surges'})[action]}"


def dice_text(table: Any) -> str:
    """The last dice, in words; nothing if none were thrown."""
    kind, *roll = table["roll"].tolist()
    if kind in (1, 2):
        return f"{roll[0]} dice: {roll[1]} hits, {roll[2]} wounds, {roll[3]} not saved, {roll[4]} models lost"
    if kind == 3:
        return f"2d6 for the charge: {roll[0]} inches, {roll[1]} needed: {'it goes home' if roll[2] else 'it fails'}"
    return ""


def frame_text(table: Any, book: Any, roster: Roster) -> str:
    """A table as people watch it: round, phase, scores, dice and the board."""
    vp, command = table["vp"].tolist(), table["command"].tolist()
    head = f"round {int(table['round'])}, {PHASES[int(table['phase'])]} phase, side {int(table['turn'])}'s turn; "
    lines = [head + f"VP {vp[0]}:{vp[1]}, command points {command[0]}:{command[1]}"]
    lines += [dice_text(table)] if dice_text(table) else []
    lines += ["", board_text(table, book), "", *squad_lines(table, 0, roster), *squad_lines(table, 1, roster)]
    return "\n".join(lines)


def ending_text(end: dict[str, Any]) -> str:
    """Who won, by how much and why it ended there."""
    how = {WIPE_OUT: "a side is wiped out", ROUND_LIMIT: "the rounds are over", STEP_CAP: "cut off at the step cap"}
    won = ("the first side wins", "the second side wins", "a draw")[end["winner"]]
    score = f"{end['vp'][0]}:{end['vp'][1]} VP, {end['kills'][0]}:{end['kills'][1]} squads destroyed"
    return f"{won}, {score}; {how[end['end_reason']]} in round {end['round']}, after {end['length']} decisions"
