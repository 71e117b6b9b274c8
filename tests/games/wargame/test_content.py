"""Rosters, maps and missions: what ships is sound, and a mistake is one clear sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from maple.core.errors import GameError
from maple.games.wargame.content import (
    CELLS,
    check_fit,
    load_map,
    load_mission,
    load_roster,
    names_of,
    path_costs,
)
from tests.games.wargame.match import wargame
from tests.games.wargame.slow_table import SlowGame


def test_what_ships_is_enough_and_fits_together() -> None:
    assert len(names_of("maps")) >= 8
    assert len(names_of("missions")) >= 4
    assert len(load_roster("starter").units) == 8
    for mission in names_of("missions"):
        assert load_mission(mission).points_per_vp <= 20
        for name in names_of("maps"):
            check_fit(mission, load_mission(mission), name, load_map(name))


def test_maps_are_the_same_after_half_a_turn() -> None:
    for name in names_of("maps"):
        board = load_map(name)
        for cell in range(CELLS):
            mark, other = board.mark(cell), board.mark(CELLS - 1 - cell)
            assert mark == other or (mark.isdigit() and other.isdigit())


def test_tables_match_the_slow_lines_and_ways() -> None:
    game = wargame(maps=["ruins"])
    slow, book, board = SlowGame(game, 0, 0), game.book[0], load_map("ruins")
    for a in range(0, CELLS, 7):
        assert book["path"][0, a].tolist() == (path_costs(board, [a]) if board.mark(a) != "#" else [255] * CELLS)
        for b in range(CELLS):
            ends = (a % 22, a // 22), (b % 22, b // 22)
            bit = [int(book[name][0, a, b >> 6]) >> (b & 63) & 1 for name in ("sight", "shade")]
            assert bit == [slow.sees(*ends), slow.covered(*ends)]


def test_sight_goes_both_ways_and_survives_half_a_turn() -> None:
    book = wargame().book[0]
    for board in range(int(book["boards"])):
        words = book["sight"][board]
        sees = [[int(words[a, b >> 6]) >> (b & 63) & 1 for b in range(CELLS)] for a in range(0, CELLS, 11)]
        for row, a in enumerate(range(0, CELLS, 11)):
            for b in range(CELLS):
                back, turned = int(words[b, a >> 6]), int(words[CELLS - 1 - a, (CELLS - 1 - b) >> 6])
                assert sees[row][b] == back >> (a & 63) & 1
                assert sees[row][b] == turned >> ((CELLS - 1 - b) & 63) & 1


def _roster() -> dict[str, Any]:
    unit = load_roster("starter").units["heavy_guard"].model_dump()
    return {"units": {"guard": unit}, "armies": {"one": ["guard"]}}


def _map() -> dict[str, Any]:
    return load_map("orchard").model_dump()


def _changed(tree: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    node = tree
    for part in path[:-1]:
        node = node[part]
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return tree


def _body(key: str, value: Any) -> dict[str, Any]:
    return _changed(_roster(), ("units", "guard", "body", key), value)


GUARD = ("units", "guard")
LATE = {"vp": 1, "opens": 6}
WALL = [".....#" + "." * 10 + "#....."] * 7


@pytest.mark.parametrize(
    ("kind", "tree", "words"),
    [
        ("roster", _body("wounds", None), ["units.guard.body.wounds is missing; write a whole number from 1 to 24"]),
        ("roster", _body("models", True), ["body.models = True", "integer; write a whole number from 1 to 20"]),
        ("roster", _body("points", "80"), ["units.guard.body.points = '80'", "integer"]),
        ("roster", _changed(_roster(), (*GUARD, "body"), None), ["guard.body is missing; write models, wounds"]),
        ("roster", _changed(_roster(), (*GUARD, "name"), None), ["guard.name is missing; write a text of 1 to 24"]),
        ("roster", _changed(_roster(), ("units", "body"), {}), ["units.body.name is missing; write a text"]),
        ("roster", _changed(_roster(), ("units",), None), ["units is missing; write 1 to 32, each with name"]),
        ("roster", _changed(_roster(), (*GUARD, "ranged", "rang"), 3), ["ranged.rang'; did you mean 'range'"]),
        ("maps", _changed(_map(), ("rows",), None), ["rows is missing; write 15 texts of 22 cells each"]),
        ("maps", _changed(_map(), ("deploy",), None), ["deploy is missing; write a whole number from 2 to 6"]),
        ("missions", {"objectives": {3: {"vp": 1}}}, ["points_per_vp is missing; write a whole number from 1 to 20"]),
        ("missions", {"points_per_vp": 20}, ["objectives is missing; write labels, each with vp and opens"]),
        ("missions", {"points_per_vp": 20, "objectives": {3: {}}}, ["objectives.3.vp is missing; write a whole"]),
        ("missions", {"points_per_vp": 20, "objectives": {"3": {"vp": 1}}}, ["objectives.3", "'3'", "integer"]),
        ("missions", {"points_per_vp": 20, "objectives": {3: LATE}}, ["3.opens = 6 is after the last round; 1 to 5"]),
        ("roster", _body("save", 1), ["units.guard.body.save = 1 is", "equal to 2; write a whole number from 2 to 7"]),
        ("roster", _body("move", 9), ["units.guard.body.move", "less than or equal to 6"]),
        ("roster", _body("speed", 3), ["no key 'units.guard.body.speed'"]),
        ("roster", _changed(_roster(), ("armies", "one"), ["gard"]), ["'gard'", "did you mean 'guard'"]),
        ("maps", _changed(_map(), ("rows", 3), "." * 21), ["rows[3]", "21 cells", "22"]),
        ("maps", _changed(_map(), ("rows", 3), "x" + "." * 21), ["rows[3]", "'x' in column 0", "allowed are"]),
        ("maps", _changed(_map(), ("rows", 0), "#" + "." * 21), ["half a turn"]),
        ("maps", {"deploy": 4, "rows": [*WALL, ".....#....33....#.....", *WALL]}, ["objective 3 cannot be reached"]),
        ("missions", {"points_per_vp": 30, "objectives": {3: {"vp": 1}}}, ["points_per_vp = 30", "20"]),
        ("missions", {"points_per_vp": 20, "objectives": {9: {"vp": 1}}}, ["objective 9", "1 to 6"]),
        ("missions", {"points_per_vp": 20, "objectives": {1: {"vp": 1}}}, ["objectives.1 faces 5", "same vp"]),
        ("missions", {"points_per_vp": 20, "objectives": {6: {"vp": 1}}}, ["objectives.6 is not marked"]),
    ],
)  # fmt: skip
def test_a_mistake_names_the_file_the_key_and_what_is_allowed(
    kind: str, tree: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(yaml.safe_dump(tree))
    with pytest.raises(GameError) as error:
        wargame(**{kind: str(path) if kind == "roster" else [str(path)]})
    for word in (str(path), *words):
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_an_objective_may_open_in_the_last_round(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(yaml.safe_dump({"points_per_vp": 20, "objectives": {3: LATE}}))
    wargame(missions=[str(path)], rounds=6)
    wargame(rounds=1)  # what ships is for whole games: a short one leaves the late objectives out
    with pytest.raises(GameError, match="opens = 3 is after the last round"):
        wargame(missions=["unfold"], rounds=2)


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("about: fine\nrows: [unclosed\nmore: x: y\n")
    with pytest.raises(GameError, match=r"mine.yml, line \d is not YAML"):
        wargame(maps=[str(path)])


def test_a_key_that_is_there_twice_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("units:\n  guard: {}\n  swarm: {}\n  guard: {}\n")
    with pytest.raises(GameError, match=r"mine.yml, line 4: 'guard' is there twice"):
        wargame(roster=str(path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maps": ["ruin"]}, "there is no map 'ruin'; did you mean 'ruins'"),
        ({"roster": "nowhere.yml"}, "nowhere.yml cannot be read"),
        ({"armies": "asault"}, "no army 'asault'; did you mean 'assault'"),
        ({"armies": "assault,gunline,raiders"}, "names 3 armies"),
        ({"rewards": {"wins": 1}}, "no option 'rewards.wins'; did you mean 'win'"),
        ({"rewards": {"win": {"wight": 1}}}, "no option 'rewards.win.wight'; did you mean 'weight'"),
        ({"rewards": {"hold": {"every": 0}}}, "game.rewards.hold.every = 0 cannot be used"),
        ({"rewards": {"win": "much"}}, "game.rewards.win = 'much' cannot be used: write a weight, or {weight: W"),
    ],
)
def test_bad_options_are_a_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(GameError, match=words):
        wargame(**options)


def test_a_unit_of_ones_own_plays(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(yaml.safe_dump(_roster()))
    game = wargame(roster=str(path), armies="one")
    assert [squad.unit.name for squad in SlowGame(game, 0, 0).sides[1]] == ["Heavy Guard"]
