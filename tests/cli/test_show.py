"""`maple show`, `maple bench balance` and `maple eval --against all` from the outside."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.command import maple


def test_show_prints_frames_and_writes_a_picture_and_a_record(tmp_path: Path) -> None:
    svg, record = tmp_path / "position.svg", tmp_path / "game.json"
    arguments = ("--seed", "3", "--players", "greedy,random", "--set", "game.rounds=2")
    done = maple("show", "wargame", *arguments, "--svg", svg, "--record", record)
    assert done.returncode == 0, done.stderr
    assert "round 1, command phase" in done.stdout
    assert "objectives: " in done.stdout
    told = [line for line in done.stdout.splitlines() if " dice, " in line]
    shots = [line for line in done.stdout.splitlines() if "→" in line and "shoots at" in line]
    assert len(told) >= len(shots) > 0  # each shot's dice, and those of squads that had no choice
    assert " VP" in done.stdout.split("── decision")[-1]
    assert "greedy against random: the first side wins, " in done.stdout
    assert "the rounds are over in round 2" in done.stdout
    root = ET.fromstring(svg.read_text())
    assert len(root.findall(".//{http://www.w3.org/2000/svg}rect")) > 330
    last = done.stdout.split("→ ")[-1].split("\n\n")[0].splitlines()
    assert {line.strip() for line in last} <= set(root.itertext())  # what is done and what comes of it
    again = maple("show", "wargame", "--replay", record, "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["actions"] == json.loads(record.read_text())["actions"]
    assert done.stdout.count("── decision") == told["decisions"]


def test_show_ofc_has_frames_and_a_picture(tmp_path: Path) -> None:
    svg = tmp_path / "hand.svg"
    game = ("show", "ofc", "--seed", "1", "--players", "safe", "--set", "game.fantasyland=off", "--svg", svg)
    done = maple(*game)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("── decision") == 15
    last = done.stdout.split("── decision 14")[1].splitlines()
    acts = next(line for line in last if line.startswith(">"))
    placed = [word for word in acts.split()[4:] if word not in "|."]
    assert len(placed) == 11
    said = next(line for line in last if line.startswith("→"))
    hand = next(line for line in last if line.startswith("to place")).split()[2:]
    gone = next(line for line in last if line.startswith("discards")).split()[1:]
    assert len(hand) == len(gone) == 3
    assert all(card in said for card in hand)
    words = ET.fromstring(svg.read_text()).itertext()
    ranks = [word for word in words if word in ("10", *"23456789JQKA")]
    assert len(ranks) == 11 + 13 + 13 + 3 + 3  # the boards, the hand, the discards


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "wargame", "--players", "a,b,c"), "names 3 players"),
        (("show", "wargame", "--players", "gredy"), "--players gredy: neither an opponent of wargame"),
        (("show", "showdown", "--svg", "x.svg"), "--svg does nothing with showdown"),
        (("show", "showdown", "--table", "0"), "--table does nothing with showdown"),
        (("show", "ofc", "--out", "here"), "--out does nothing with ofc; write --svg or --record"),
        (("show", "ofc", "--replay", "game.json", "--seed", "0"), "--seed does nothing with --replay"),
        (("show", "wargame", "--replay", "nowhere.json"), "cannot be read"),
        (("show", "wargame", "--set", "game.maps=[./none.yml]"), "none.yml cannot be read"),
        (("bench", "balance", "ofc"), "balance is measured of the wargame"),
    ],
)
def test_mistakes_are_one_sentence(arguments: tuple[str, ...], words: str) -> None:
    done = maple(*arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert not done.stdout


def test_a_place_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "game.json", tmp_path / "nowhere" / "game.json"):
        done = maple("show", "ofc", "--players", "safe", "--set", "game.fantasyland=off", "--record", place, "--json")
        assert done.returncode == 2, done.stderr
        assert f"cannot write {place}" in "".join(done.stderr.split("\n"))
        assert "choose another --record" in " ".join(done.stderr.split())


def test_balance_prints_its_table(tmp_path: Path) -> None:
    settings = ("--set", "game.points=200", "--set", "game.rounds=2")
    done = maple("bench", "balance", "wargame", "--games", "8", *settings, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["overall"]["games"] == 8
    assert [row["against"] for row in found["opponents"]] == [
        "random",
        "charger",
        "greedy",
        "racer",
        "tactician",
        "veteran",
    ]
    assert set(found["verdicts"]) >= {
        "sides_even",
        "first_player_even",
        "games_have_kills",
        "objectives_and_fighting_decide",
    }
    alone = found["overall"]["objectives_alone"], found["overall"]["kills_alone"]
    ahead = found["overall"]["winner_ahead_on_objectives"], found["overall"]["winner_ahead_on_kills"]
    assert ahead[0] - alone[0] == pytest.approx(ahead[1] - alone[1])  # ahead on both


def test_a_run_is_trained_and_judged_against_each_opponent(tmp_path: Path) -> None:
    tiny = ("--set", "tables=32", "--set", "net.hidden=[16]", "--set", "ppo.horizon=512", "--set", "ppo.minibatch=128")
    small = ("--set", "game.points=200", "--set", "game.rounds=2", "--set", "probe_hands=4")
    run = ("--run", "tiny", "--runs-dir", tmp_path)
    done = maple("train", "wargame", *run, "--steps", "1100", *tiny, *small, "--json")
    assert done.returncode == 0, done.stderr
    judged = maple("eval", "tiny", "--runs-dir", tmp_path, "--against", "all", "--hands", "4", "--json")
    assert judged.returncode == 0, judged.stderr
    found = json.loads(judged.stdout)
    assert len(found["evaluations"]) == 7
    assert found["lowest"]["win_rate"] == min(row["win_rate"] for row in found["evaluations"])
    for row in found["evaluations"]:
        assert {"vp_margin", "kills", "charges", "end_wipe_out", "end_round_limit", "end_step_cap"} <= row.keys()
    other = maple("show", "showdown", "--players", "tiny,random", "--runs-dir", tmp_path)
    assert other.returncode == 2, other.stderr
    assert "--players tiny: that run plays wargame, not showdown" in " ".join(other.stderr.split())
