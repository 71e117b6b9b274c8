"""A position as a picture: the board, objectives by who holds them, squads with what is left of them."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

from maple.core.svg import INK, words
from maple.games.wargame.content import CELLS, HEIGHT, WIDTH, Roster
from maple.games.wargame.ground import controlled
from maple.games.wargame.show import MINE, THEIRS
from maple.games.wargame.state import BRACED, PHASES, SHAKEN
from maple.games.wargame.tables import BLOCKING, COVER

__all__ = ["picture"]

CELL = 40
_TOP, _SIDE, _LIST = 64, 24, 300  # pixels above, beside, and for the list of squads
COLOURS = ("#2563a8", "#b8452c")
_PAPER, _GRID, _WALL, _COVER, _NEUTRAL = "#f6f1e4", "#e4dcc6", "#5b5348", "#b9c79a", "#a89f8a"


def _at(cell: int) -> tuple[float, float]:
    return _SIDE + (cell % WIDTH + 0.5) * CELL, _TOP + (cell // WIDTH + 0.5) * CELL


def _ground(board: int, book: Any) -> list[str]:
    """Cells: open ground, walls, cover."""
    parts = []
    for cell in range(CELLS):
        kind, (x, y) = int(book["terrain"][board, cell]), _at(cell)
        left, top = x - CELL / 2, y - CELL / 2
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{CELL}" height="{CELL}" fill="{_PAPER}" stroke="{_GRID}"/>'
        )
        if kind == BLOCKING:
            parts.append(f'<rect x="{left + 1:.1f}" y="{top + 1:.1f}" width="38" height="38" rx="3" fill="{_WALL}"/>')
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
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="13" fill="{_PAPER}" stroke="{colour}" stroke-width="2"/>')
        parts.append(words(x, y + 5, 15, str(vp), colour, "middle", "bold"))
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
    ring = f'<circle cx="{x}" cy="{y}" r="20" fill="none" stroke="#d9a514" stroke-width="3"/>' if acts else ""
    brace = (
        f'<circle cx="{x}" cy="{y}" r="18.5" fill="none" stroke="{INK}" stroke-width="1"/>' if flags & BRACED else ""
    )
    opacity = 0.45 if flags & SHAKEN else 1
    return (
        f'<g><circle cx="{x}" cy="{y}" r="16" fill="{_PAPER}" stroke="{_GRID}" stroke-width="4"/>'
        f'<path d="M {x} {y - 16} A 16 16 0 {int(share > 0.5)} 1 {end[0]:.2f} {end[1]:.2f}" fill="none" '
        f'stroke="{COLOURS[side]}" stroke-width="4"/><circle cx="{x}" cy="{y}" r="12" fill="{COLOURS[side]}" '
        f'fill-opacity="{opacity}"/>{words(x, y + 5, 14, (MINE, THEIRS)[side][slot], "#fff", "middle", "bold")}'
        f"{ring}{brace}</g>"
    )


def _roster_list(table: Any, roster: Roster) -> list[str]:
    """Beside the board: who is who, what is left, who is gone."""
    x, y, parts = _SIDE * 2 + WIDTH * CELL, _TOP + 14.0, []
    units = list(roster.units.values())
    for side, heading in enumerate(("First side", "Second side")):
        parts.append(words(x, y, 17, f"{heading}: {int(table['vp'][side])} VP", COLOURS[side], weight="bold"))
        y += 24
        for slot in range(int(table["squads"][side])):
            unit = units[int(table["unit"][side, slot])]
            gone = int(table["cell"][side, slot]) < 0
            share = 0.0 if gone else _share_left(table, side, slot, roster)
            colour = _NEUTRAL if gone else INK
            name = f"{(MINE, THEIRS)[side][slot]}  {unit.name}"
            parts.append(words(x, y, 14, f"{name} (gone)" if gone else name, colour))
            parts.append(f'<rect x="{x + 170}" y="{y - 10:.0f}" width="90" height="8" rx="4" fill="{_GRID}"/>')
            if share:
                bar = f'width="{90 * share:.0f}" height="8" rx="4" fill="{COLOURS[side]}"'
                parts.append(f'<rect x="{x + 170}" y="{y - 10:.0f}" {bar}/>')
            y += 23
        y += 20
    return parts


def picture(table: Any, book: Any, roster: Roster, title: str) -> str:
    """An SVG of a table."""
    width, height = 2 * _SIDE + WIDTH * CELL + _LIST, _TOP + HEIGHT * CELL + _SIDE
    first, second = controlled(table, book)
    turn = COLOURS[int(table["turn"])]
    head = f"Round {int(table['round'])}, {PHASES[int(table['phase'])]} phase"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#fffdf7"/>',
        f'<circle cx="{_SIDE + 9}" cy="31" r="9" fill="{turn}"/>',
        words(_SIDE + 28, 40, 26, head, weight="bold"),
        words(_SIDE + WIDTH * CELL, 40, 16, title, anchor="end"),
        *_ground(int(table["board"]), book),
        *_objectives(table, book, (int(first), int(second))),
    ]
    for side in range(2):
        for slot in range(int(table["squads"][side])):
            if int(table["cell"][side, slot]) >= 0:
                parts.append(_token(table, side, slot, roster))
    return "\n".join([*parts, *_roster_list(table, roster), "</svg>"]) + "\n"
