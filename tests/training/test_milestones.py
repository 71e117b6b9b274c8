"""Milestones: at or after every million steps, but at least ten minutes of training apart, over resumes too."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer
from maple.training.checkpoint import milestones
from maple.training.keeper import MILESTONE_APART_S, MILESTONE_STEPS, Keeper


def test_milestones_are_a_million_steps_and_ten_minutes_apart_over_a_resume(tmp_path: Path, team: Team) -> None:
    assert (MILESTONE_STEPS, MILESTONE_APART_S) == (1_000_000, 600.0)
    config = load_config("ofc", settings=["tables=4", "net.hidden=[4]"], flags={"steps": 1})
    trainer = build_trainer(config, make_game("ofc"), team)
    with closing(trainer.arena), closing(trainer.learner):
        for sitting in (  # steps, seconds of training, whether it is a milestone
            [(900_000, 50.0, False), (1_000_000, 60.0, True), (1_999_999, 700.0, False), (2_100_000, 701.0, True)],
            [(3_000_000, 1200.0, False), (3_200_000, 1300.9, False), (3_300_000, 1301.0, True)],
            [(3_900_000, 9000.0, False), (4_000_000, 9001.0, True), (6_000_000, 9601.0, True)],
            [(7_000_000, 10_200.9, False)],
        ):
            keeper = Keeper(tmp_path, config, trainer, {})  # as a process that goes on with the run has it
            for steps, elapsed_s, kept in sitting:
                trainer.counters.steps, trainer.counters.elapsed_s = steps, elapsed_s
                keeper.save()
                assert (f"{steps:012d}" in {path.name for path in milestones(tmp_path)}) == kept, steps
    names = [int(path.name) for path in milestones(tmp_path)]
    assert names == [1_000_000, 2_100_000, 3_300_000, 4_000_000, 6_000_000]
