"""Formats with teams of one's own: files that are judged before anything starts, team preview that is learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.core.errors import GameError
from maple.core.sources import load_config
from maple.games import entry, make_game
from maple.games.showdown.schema import load_schema
from maple.runs.store import RunFolder
from maple.training.session import train_run
from tests.games.showdown.squads import HERD


@pytest.fixture
def team(tmp_path: Path) -> Path:
    path = tmp_path / "herd.txt"
    path.write_text(HERD)
    return path


def open_arena(**options: str) -> NodeArena:
    return NodeArena(make_game("showdown", options), 4, 3, processes=1, limits=PoolLimits(spares=0))


def test_battles_begin_with_a_pick_of_the_lead(team: Path) -> None:
    turn = load_schema().groups["turn"]
    with open_arena(format="gen9ou", team=str(team)) as arena:
        finished, previews = 0, 0
        for _ in range(2000):
            step = arena.recv()
            seen = np.ascontiguousarray(step.view).view(np.uint8)
            preview = seen[:, turn.byte("request")] == load_schema().lists["request"].index("preview")
            assert (preview == (step.keys.decision == 0)).all()
            assert (step.mask[preview].sum(axis=1) == 3).all()
            previews += int(preview.sum())
            finished += len(step.ended.table)
            if finished >= 4:
                break
            action = np.empty(len(step.keys), np.int32)
            arena.game.bot("heuristic")(step.view, 3, step.keys, action, 0, len(action))
            arena.send(action)
        assert finished >= 4
        assert previews >= 8
        assert arena.counters.anomalies == 0


def test_a_run_learns_with_a_preview(tmp_path: Path, team: Path) -> None:
    settings = ["game.format=gen9ou", f"env.team={team}", "game.max_turns=10", "tables=4", "ppo.horizon=64"]
    small = [*settings, "ppo.minibatch=32", "net.hidden=[8]", "threads=1", "ppo.policy=options"]
    config = load_config("showdown", None, small, entry("showdown").defaults, {"steps": 128})
    assert train_run(config, RunFolder(tmp_path / "run"), lambda _: True).steps >= 128


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Stamina", "Levitate", r"herd\.txt is no team for gen9ou: Mudsdale.*Levitate"),
        ("Houndoom @", "Koraidon @", r"herd\.txt is no team for gen9ou: .*Koraidon"),
    ],
)
def test_the_validators_own_words_are_told(team: Path, old: str, new: str, words: str) -> None:
    team.write_text(HERD.replace(old, new))
    with pytest.raises(GameError, match=words):
        open_arena(format="gen9ou", team=str(team))


def test_a_team_among_several_is_told_by_its_title(team: Path) -> None:
    team.write_text(f"=== [gen9ou] good ===\n{HERD}\n=== [gen9ou] bad ===\n{HERD.replace('Stamina', 'Levitate')}\n")
    with pytest.raises(GameError, match=r"'\[gen9ou\] bad' in .*herd\.txt is no team for gen9ou: Mudsdale.*Levitate"):
        open_arena(format="gen9ou", team=str(team))


def test_teams_and_formats_have_to_go_together(tmp_path: Path, team: Path) -> None:
    with pytest.raises(GameError, match="gen9ou is played with teams of one's own"):
        open_arena(format="gen9ou")
    with pytest.raises(GameError, match="gen9randombattle makes its own teams"):
        open_arena(team=str(team))
    with pytest.raises(GameError, match=r"none\.txt cannot be read: no such file"):
        open_arena(format="gen9ou", team=str(tmp_path / "none.txt"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(GameError, match="there is no team in"):
        open_arena(format="gen9ou", team=str(tmp_path / "empty"))
    with pytest.raises(GameError, match=r"did you mean .*'gen9ou'"):
        open_arena(format="gen9o")
