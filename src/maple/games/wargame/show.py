"""A game as text: the board, objectives and squads, what is done, and the dice that were thrown for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maple.games.wargame.content import CELLS, HEIGHT, MAX_SQUADS, WIDTH, Roster
from maple.games.wargame.ground import cell_at, controlled
from maple.games.wargame.state import (
    BRACE,
    BRACED,
    CHARGE,
    CHARGED,
    DEFER,
    FIGHT,
    FOCUS,
    HOLD,
    NERVE,
    NOBODY,
    PHASES,
    RALLY,
    ROUND_LIMIT,
    RUN,
    RUSHED,
    SHAKEN,
    SHOOT,
    SHOT,
    STEP_CAP,
    SURGE,
    TABLE,
    WIPE_OUT,
)
from maple.games.wargame.tables import BLOCKING, COVER
from maple.games.wargame.view import read_view, rounds_of

__all__ = [
    "action_text",
    "board_text",
    "ending_text",
    "frame_text",
    "objective_text",
    "show_view",
    "squad_lines",
    "told_text",
]

_FLAGS = {SHAKEN: "shaken", RUSHED: "rushed", CHARGED: "charged", BRACED: "braced"}
MINE, THEIRS = "ABCDEFGH", "abcdefgh"  # by slot


def board_text(table: Any, book: Any) -> str:
    """The board: `#` blocks, `+` is cover, a digit is an objective and `o` its reach, letters are squads.

    Capitals are those of the first side.
    """
    board = int(table["board"])
    terrain, near = book["terrain"][board], book["near"][board] & book["used"][int(table["mission"])]
    marks = ["." for _ in range(CELLS)]
    for cell in range(CELLS):
        if near[cell]:
            marks[cell] = "o"
        if terrain[cell] in (BLOCKING, COVER):
            marks[cell] = "#" if terrain[cell] == BLOCKING else "+"
    for label in np.flatnonzero(book["vp"][int(table["mission"])]).tolist():
        for cell in np.flatnonzero(book["way"][board, label] == 0).tolist():
            marks[cell] = str(label + 1)
    for side, letters in enumerate((MINE, THEIRS)):
        for slot, cell in enumerate(table["cell"][side].tolist()):
            if cell >= 0:
                marks[cell] = letters[slot]
    return "\n".join(" ".join(marks[y * WIDTH : (y + 1) * WIDTH]) for y in range(HEIGHT))


def objective_text(table: Any, book: Any, owners: tuple[str, str]) -> str:
    """Who holds what, what it is worth, and from which round on."""
    mission, held, parts = int(table["mission"]), controlled(table, book), []
    for label in np.flatnonzero(book["vp"][mission]).tolist():
        owner = next((owners[side] for side in range(2) if int(held[side]) >> label & 1), "nobody")
        opens = int(book["opens"][mission, label])
        closed = f" from round {opens}" if int(table["round"]) < opens else ""
        parts.append(f"{label + 1} {owner} ({int(book['vp'][mission, label])} VP{closed})")
    return f"objectives: {', '.join(parts)}"


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
    objectives = objective_text(table, books[0], ("mine", "theirs"))
    return "\n".join([head, objectives, board_text(table, books[0]), *squads])


def _name(table: Any, roster: Roster, side: int, slot: int) -> str:
    unit = list(roster.units.values())[int(table["unit"][side, slot])]
    return f"{unit.name} {(MINE, THEIRS)[side][slot]}"


def action_text(table: Any, action: int, roster: Roster) -> str:
    """What a squad is about to do, in words."""
    side, slot = int(table["side"]), int(table["slot"])
    if action >= BRACE:
        verb, squad = ("braces", action - BRACE) if action < RALLY else ("rallies", action - RALLY)
        return f"{_name(table, roster, side, squad)} {verb}"
    if slot == NOBODY:
        return "no tactic in the command phase"
    who = _name(table, roster, side, slot)
    if action < SHOOT:
        cell = int(cell_at(side, int(table["cell"][side, slot]), action))
        return f"{who} goes to {cell % WIDTH},{cell // WIDTH}"
    for first, verb in ((FIGHT, "fights"), (CHARGE, "charges"), (SHOOT, "shoots at")):
        if first <= action < first + MAX_SQUADS:
            return f"{who} {verb} {_name(table, roster, 1 - side, action - first)}"
    return f"{who} {({HOLD: 'holds', DEFER: 'lets the others go first', FOCUS: 'focuses', SURGE: 'surges'})[action]}"


def told_text(table: Any, action: int, after: Any, roster: Roster) -> list[str]:
    """What came of an action: every throw of dice up to the next decision, then the points that were scored.

    The table after a game's last action is already the next game's, but for the dice.
    """
    left = table["models"].astype(int)
    lines: list[str] = []
    for kind, who, foe, *dice in after["rolls"][: int(after["rolled"])].tolist():
        side, slot = divmod(who, MAX_SQUADS)
        name, other = _name(table, roster, side, slot), _name(table, roster, 1 - side, foe)
        chosen = not lines and SHOOT <= action < HOLD  # then the action has said already who does what to whom
        if kind == NERVE:
            lines.append(f"{name} throws {dice[0]}, leadership {dice[1]}: {_outcome(dice, 'steady', 'shaken')}")
        elif kind == RUN:
            lines.append(f"{dice[0]} inches, {dice[1]} needed: {_outcome(dice, 'it goes home', 'it fails')}")
        else:
            left[1 - side, foe] -= dice[4]
            lost = f"{dice[4]} {'model' if dice[4] == 1 else 'models'} lost"
            gone = "" if left[1 - side, foe] else ", the squad is gone"
            verb = "shoots at" if kind == SHOT else "fights"
            hits = f"{dice[0]} dice, {dice[1]} hit, {dice[2]} wound, {dice[3]} not saved"
            lines.append(("" if chosen else f"{name} {verb} {other}: ") + f"{hits}: {lost}{gone}")
    if int(after["game"]) == int(table["game"]):
        scored = (after["vp"] - table["vp"]).tolist()
        sides = ("the first side", "the second side")
        lines += [f"{sides[side]} scores {scored[side]} VP" for side in range(2) if scored[side]]
    return lines


def _outcome(dice: list[int], enough: str, short: str) -> str:
    return enough if dice[0] >= dice[1] else short


def frame_text(table: Any, book: Any, roster: Roster) -> str:
    """A table as people watch it: round, phase, scores, objectives and the board."""
    vp, command = table["vp"].tolist(), table["command"].tolist()
    turn = ("first", "second")[int(table["turn"])]
    head = f"round {int(table['round'])}, {PHASES[int(table['phase'])]} phase, {turn} side's turn; "
    lines = [head + f"VP {vp[0]}:{vp[1]}, command points {command[0]}:{command[1]}"]
    lines += [
        objective_text(table, book, ("first", "second")),
        "",
        board_text(table, book),
        "",
        *squad_lines(table, 0, roster),
        *squad_lines(table, 1, roster),
    ]
    return "\n".join(lines)


def ending_text(end: dict[str, Any]) -> str:
    """Who won, by how much and why it ended there."""
    how = {WIPE_OUT: "a side is wiped out", ROUND_LIMIT: "the rounds are over", STEP_CAP: "cut off at the step cap"}
    won = ("the first side wins", "the second side wins", "a draw")[end["winner"]]
    score = f"{end['vp'][0]}:{end['vp'][1]} VP, {end['kills'][0]}:{end['kills'][1]} squads destroyed"
    return f"{won}, {score}; {how[end['end_reason']]} in round {end['round']}, after {end['length']} decisions"
