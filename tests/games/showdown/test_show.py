"""A battle written down: the viewer's own form, and text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from maple.arena.record import Scribe, load_record
from maple.cli.show_battle import show_battle, show_battle_again
from maple.core.threads import Team
from maple.games import make_game
from maple.games.showdown.show import VIEWER, readable, replay_html, replay_log
from maple.training.evaluate import bot_player, evaluate

LINES = [
    "|player|p1|First|1|",
    "|player|p2|Second|2|",
    "|tier|[Gen 9] Test",
    "|switch|p1a: Rex|Arcanine, M|100/100",
    "|turn|1",
    "|move|p1a: Rex|Flare Blitz|p2a: Fern",
    "|-supereffective|p2a: Fern",
    "|-damage|p2a: Fern|0 fnt",
    "|-damage|p1a: Rex|67/100|[from] Recoil",
    "|faint|p2a: Fern",
    "|-message|First </script> is not renamed here",
    "|win|First",
]


def test_names_are_put_where_players_are_named_only() -> None:
    log = replay_log(LINES, ("One", "Two"))
    assert "|player|p1|One|1|\n|player|p2|Two|2|" in log
    assert log.endswith("|win|One\n")
    assert "|-message|First" in log
    swapped = replay_log(LINES, ("Second", r"a\1|b"))
    assert "|player|p1|Second|1|\n|player|p2|a\\1b|2|" in swapped
    assert swapped.endswith("|win|Second\n")


def test_a_page_holds_the_log_and_cannot_be_broken_by_it() -> None:
    page = replay_html(replay_log(LINES, ("One", "Two")), "One & Two")
    assert page.count("</script>") == 2
    assert 'class="battle-log-data"' in page
    assert "One &amp; Two" in page
    assert "Rex (p1) uses Flare Blitz at Fern (p2)" in page


def test_a_page_shows_the_battle_as_text_where_the_viewer_cannot_be_loaded(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no browser here")
    page = tmp_path / "battle.html"
    page.write_text(replay_html(replay_log(LINES, ("One", "Two")), "One & Two").replace(VIEWER, "missing.js"))
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    seen = subprocess.run([*words, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120).stdout
    assert '<p class="alone">' in seen
    assert "<details open" in seen
    assert seen.count("Flare Blitz") == 2


def test_sentences_say_what_happened() -> None:
    assert readable("\n".join(LINES)).splitlines() == [
        "p1 is First",
        "p2 is Second",
        "format: [Gen 9] Test",
        "Rex (p1) comes in: Arcanine, M, 100/100",
        "",
        "Turn 1",
        "Rex (p1) uses Flare Blitz at Fern (p2)",
        "  it is super effective",
        "  Fern (p2) is at 0",
        "  Rex (p1) is at 67/100, by Recoil",
        "  Fern (p2) faints",
        "",
        "First wins",
    ]


@pytest.mark.parametrize("battle_format", ["gen9randombattle", "gen7randombattle"])
def test_a_whole_battle_is_written_and_repeats(tmp_path: Path, battle_format: str) -> None:
    settings = [f"game.format={battle_format}"]
    first = show_battle(["heuristic", "power"], 5, tmp_path / "a", settings, None, tmp_path / "battle.json")
    again = show_battle(["heuristic", "power"], 5, tmp_path / "b", settings, None)
    assert first["text"] == again["text"]
    assert show_battle_again(load_record(tmp_path / "battle.json"), tmp_path / "c")["text"] == first["text"]
    log = Path(first["log"]).read_text()
    assert "|split|" not in log
    assert "|player|p1|heuristic|" in log
    winner = re.findall(r"^\|win\|(.+)$", log, re.MULTILINE)
    assert winner == [["heuristic", "power"][first["score"].index(1.0)]]
    assert log.count("|turn|") == first["turns"]
    assert log.replace("</", "<\\/") in Path(first["html"]).read_text()
    assert f"\n{winner[0]} wins\n" in Path(first["readable"]).read_text()


def test_the_first_battle_of_an_evaluation_can_be_watched(tmp_path: Path) -> None:
    game, scribe = make_game("showdown", {"format": "gen9randombattle"}), Scribe()
    with Team(1) as team:
        first, second = bot_player(game, "power", team), bot_player(game, "random", team)
        evaluate(game, first, [second], 6, 11, team, watch=scribe.over)
    record = scribe.record(game, 11, ["power", "random"])
    assert record is not None
    assert show_battle_again(record, tmp_path)["score"] == record.end["score"]
