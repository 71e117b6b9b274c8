"""A position as a picture: the board, objectives by who holds them, squads with what is left, and what is done next."""

from __future__ import annotations

from math import cos, hypot, pi, sin
from typing import Any

from maple.core.svg import INK, SANS, words
from maple.games.wargame.content import CELLS, HEIGHT, MAX_SQUADS, WIDTH, Roster
from maple.games.wargame.ground import cell_at, controlled
from maple.games.wargame.show import MINE, THEIRS
from maple.games.wargame.state import BRACED, HOLD, NOBODY, PHASES, SHAKEN, SHOOT
from maple.games.wargame.tables import BLOCKING, COVER

__all__ = ["picture"]

CELL = 40
_TOP, _SIDE, _LIST = 76, 30, 300  # pixels above, beside, and for the list of squads
_LINE = 22  # of a caption
COLOURS = ("#2563a8", "#b8452c")
_PAPER, _GRID, _WALL, _COVER, _NEUTRAL, _GOLD = "#f6f1e4", "#e4dcc6", "#5b5348", "#b9c79a", "#8d846f", "#d9a514"


def _at(cell: int) -> tuple[float, float]:
    return _SIDE + (cell % WIDTH + 0.5) * CELL, _TOP + (cell // WIDTH + 0.5) * CELL


def _ground(board: int, book: Any) -> list[str]:
    """Cells: open ground, walls, cover; their numbers along the edges."""
    parts = [words(_at(x)[0], _TOP - 6, 10, str(x), _NEUTRAL, "middle", font=SANS) for x in range(WIDTH)]
    for row in range(HEIGHT):
        parts.append(words(_SIDE - 7, _at(row * WIDTH)[1] + 4, 10, str(row), _NEUTRAL, "end", font=SANS))
    for cell in range(CELLS):
        kind, (x, y) = int(book["terrain"][board, cell]), _at(cell)
        left, top = x - CELL / 2, y - CELL / 2
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{CELL}" height="{CELL}" fill="{_PAPER}" stroke="{_GRID}"/>'
        )
        if kind == BLOCKING:
            parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{CELL}" height="{CELL}" fill="{_WALL}"/>')
            parts.append(
                f'<path d="M {left + 4} {top + 36} L {left + 36} {top + 4}" stroke="#6f665a" stroke-width="2"/>'
            )
        elif kind == COVER:
            for dx, dy, r in ((-8, 5, 9), (7, 7, 8), (1, -7, 10)):
                parts.append(f'<circle cx="{x + dx:.1f}" cy="{y + dy:.1f}" r="{r}" fill="{_COVER}"/>')
    return parts


def _objectives(table: Any, book: Any, held: tuple[int, int]) -> list[str]:
    """Rings in the colour of whoever controls them, dashed until they pay."""
    board, mission, parts = int(table["board"]), int(table["mission"]), []
    for label, vp in enumerate(book["vp"][mission].tolist()):
        if not vp:
            continue
        cells = [cell for cell in range(CELLS) if book["way"][board, label, cell] == 0]
        x = sum(_at(cell)[0] for cell in cells) / len(cells)
        y = sum(_at(cell)[1] for cell in cells) / len(cells)
        colour = next((COLOURS[side] for side in range(2) if held[side] >> label & 1), _NEUTRAL)
        dash = "" if int(table["round"]) >= book["opens"][mission, label] else ' stroke-dasharray="6 6"'
        width = (2.5 + (len(cells) - 1) / 2) * CELL
        parts.append(
            f'<rect x="{x - width:.1f}" y="{y - 2.5 * CELL:.1f}" width="{2 * width:.1f}" height="{5 * CELL}" rx="26" '
            f'fill="{colour}" fill-opacity="0.10" stroke="{colour}" stroke-width="2.5"{dash}/>'
        )
        parts.append(
            f'<path d="M {x} {y - 18} L {x + 18} {y} L {x} {y + 18} L {x - 18} {y} Z" fill="{_PAPER}" '
            f'stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(words(x, y + 5, 14, str(vp), colour, "middle", "bold", SANS))
    return parts


def _share_left(table: Any, side: int, slot: int, roster: Roster) -> float:
    body = list(roster.units.values())[int(table["unit"][side, slot])].body
    left = (int(table["models"][side, slot]) - 1) * body.wounds + int(table["wounds"][side, slot])
    return max(0.0, left / (body.models * body.wounds))


def _token(table: Any, side: int, slot: int, roster: Roster) -> str:
    """A squad: its letter, and an arc for what is left of it."""
    x, y = _at(int(table["cell"][side, slot]))
    share, flags = _share_left(table, side, slot, roster), int(table["flags"][side, slot])
    turn = 2 * pi * min(share, 0.9999)
    end = x + 16 * sin(turn), y - 16 * cos(turn)
    acts = side == int(table["side"]) and slot == int(table["slot"])
    ring = f'<circle cx="{x}" cy="{y}" r="20" fill="none" stroke="{_GOLD}" stroke-width="3"/>' if acts else ""
    brace = (
        f'<circle cx="{x}" cy="{y}" r="18.5" fill="none" stroke="{INK}" stroke-width="1"/>' if flags & BRACED else ""
    )
    opacity = 0.45 if flags & SHAKEN else 1
    return (
        f'<g><circle cx="{x}" cy="{y}" r="16" fill="{_PAPER}" stroke="{_GRID}" stroke-width="4"/>'
        f'<path d="M {x} {y - 16} A 16 16 0 {int(share > 0.5)} 1 {end[0]:.2f} {end[1]:.2f}" fill="none" '
        f'stroke="{COLOURS[side]}" stroke-width="4"/><circle cx="{x}" cy="{y}" r="12" fill="{COLOURS[side]}" '
        f'fill-opacity="{opacity}"/>{words(x, y + 5, 14, (MINE, THEIRS)[side][slot], "#fff", "middle", "bold", SANS)}'
        f"{ring}{brace}</g>"
    )


def _deed(table: Any, action: int) -> list[str]:
    """What the squad does next: an arrow to where it goes or whom it attacks."""
    side, slot = int(table["side"]), int(table["slot"])
    if slot == NOBODY or action >= HOLD:
        return []
    own, moves = int(table["cell"][side, slot]), action < SHOOT
    there = int(cell_at(side, own, action)) if moves else int(table["cell"][1 - side, (action - SHOOT) % MAX_SQUADS])
    (x, y), (to_x, to_y) = _at(own), _at(there)
    way = max(1.0, hypot(to_x - x, to_y - y))
    across, down = (to_x - x) / way, (to_y - y) / way
    # from the rim of the squad to the middle of a cell, or to the rim of its target
    begin, end = (x + 20 * across, y + 20 * down), way - (4 if moves else 23)
    tip = x + end * across, y + end * down
    neck = x + (end - 11) * across, y + (end - 11) * down
    head = (
        f"{tip[0]:.1f} {tip[1]:.1f} L {neck[0] - 6 * down:.1f} {neck[1] + 6 * across:.1f} "
        f"L {neck[0] + 6 * down:.1f} {neck[1] - 6 * across:.1f} Z"
    )
    colour, dash = (_GOLD, ' stroke-dasharray="7 5"') if moves else (COLOURS[side], "")
    parts = (
        [
            f'<path d="M {begin[0]:.1f} {begin[1]:.1f} L {neck[0]:.1f} {neck[1]:.1f}" stroke="{colour}" '
            f'stroke-width="3.5"{dash}/>'
        ]
        if end > 31
        else []
    )
    if moves:
        parts.append(f'<circle cx="{to_x}" cy="{to_y}" r="16" fill="{_GOLD}" fill-opacity="0.25"/>')
    return [*parts, f'<path d="M {head}" fill="{colour}"/>']


def _roster_list(table: Any, roster: Roster) -> list[str]:
    """Beside the board: who is who, what is left, who is gone."""
    x, y, parts = _SIDE * 2 + WIDTH * CELL, _TOP + 14.0, []
    units = list(roster.units.values())
    for side, heading in enumerate(("First side", "Second side")):
        command = int(table["command"][side])
        parts.append(words(x, y, 18, heading, COLOURS[side], weight="bold"))
        parts.append(words(x + 260, y, 18, f"{int(table['vp'][side])} VP", COLOURS[side], "end", "bold"))
        y += 20
        parts.append(words(x, y, 12, f"{command} command {'point' if command == 1 else 'points'}", _NEUTRAL, font=SANS))
        y += 26
        for slot in range(int(table["squads"][side])):
            unit = units[int(table["unit"][side, slot])]
            gone = int(table["cell"][side, slot]) < 0
            share = 0.0 if gone else _share_left(table, side, slot, roster)
            colour = _NEUTRAL if gone else INK
            name = f"{(MINE, THEIRS)[side][slot]}  {unit.name}"
            parts.append(words(x, y, 14, name, colour))
            if gone:
                parts.append(words(x + 260, y, 12, "gone", colour, "end", font=SANS))
            else:
                parts.append(f'<rect x="{x + 190}" y="{y - 10:.0f}" width="70" height="8" rx="4" fill="{_GRID}"/>')
                bar = f'width="{70 * share:.0f}" height="8" rx="4" fill="{COLOURS[side]}"'
                parts.append(f'<rect x="{x + 190}" y="{y - 10:.0f}" {bar}/>')
            y += 23
        y += 20
    return parts


def picture(table: Any, action: int, book: Any, roster: Roster, captions: list[str]) -> str:
    """An SVG of a table: captions are the heading, what is done, and lines about what comes of it."""
    title, deed, *told = captions
    foot = _TOP + HEIGHT * CELL + 34
    width, height = 2 * _SIDE + WIDTH * CELL + _LIST, foot + _LINE * (1 + len(told))
    first, second = controlled(table, book)
    turn = COLOURS[int(table["turn"])]
    head = f"Round {int(table['round'])}, {PHASES[int(table['phase'])]} phase"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#fffdf7"/>',
        f'<circle cx="{_SIDE + 9}" cy="33" r="9" fill="{turn}"/>',
        words(_SIDE + 28, 42, 26, head, weight="bold"),
        words(_SIDE + WIDTH * CELL, 42, 16, title, anchor="end"),
        *_ground(int(table["board"]), book),
        *_objectives(table, book, (int(first), int(second))),
    ]
    for side in range(2):
        for slot in range(int(table["squads"][side])):
            if int(table["cell"][side, slot]) >= 0:
                parts.append(_token(table, side, slot, roster))
    parts += [*_deed(table, action), words(_SIDE, foot, 17, deed, COLOURS[int(table["side"])], weight="bold")]
    parts += [words(_SIDE, foot + _LINE * (1 + i), 15, line) for i, line in enumerate(told)]
    return "\n".join([*parts, *_roster_list(table, roster), "</svg>"]) + "\n"
