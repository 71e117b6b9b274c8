"""Learning is tested by learning: from random play, every learner finds out within seconds how not to foul."""

from __future__ import annotations

import pytest

from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer
from maple.training.evaluate import bot_player, evaluate, greedy_player
from maple.training.loop import Update

COMMON = ["game.fantasyland=off", "tables=128", "optimizer.learning_rate=0.003", "optimizer.schedule=constant"]


@pytest.mark.parametrize(
    ("settings", "steps", "foul", "points"),
    [
        (["algo=afterstate", "afterstate.horizon=3840", "afterstate.minibatch=512"], 120_000, 0.35, 7.0),
        (["algo=ppo", "ppo.policy=options", "ppo.horizon=3840", "ppo.minibatch=512"], 80_000, 0.5, 3.0),
        (["algo=ppo", "ppo.policy=index", "ppo.horizon=3840", "ppo.minibatch=512", "ppo.epochs=4"], 150_000, 0.6, 1.0),
        (["algo=dqn", "dqn.dueling=false", "dqn.gamma=1", "dqn.updates_per_step=4"], 40_000, 0.5, 3.0),
        (["algo=dqn", "dqn.policy=index", "dqn.gamma=1", "dqn.updates_per_step=4"], 100_000, 0.65, 0.0),
    ],
)
def test_a_learner_beats_random_players(
    settings: list[str], steps: int, foul: float, points: float, team: Team
) -> None:
    config = load_config("ofc", settings=[*COMMON, *settings], flags={"steps": steps})
    game = make_game("ofc", config.game)
    trainer = build_trainer(config, game, team)
    others = [bot_player(game, "random", team)] * 2
    player = greedy_player(trainer.learner.policy)
    before = evaluate(game, player, others, 600, 1, team).figures
    trainer.run(lambda _: True)
    after = evaluate(game, player, others, 1500, 1, team).figures
    assert before["foul"] > 0.5
    assert after["foul"] < foul
    assert after["points_per_hand"] > points


def test_only_the_learners_rows_are_learned_from(team: Team) -> None:
    settings = ["algo=ppo", "ppo.policy=index", "tables=64", "ppo.horizon=640", "ppo.minibatch=128", "opponents=random"]
    config = load_config("ofc", settings=[*settings, "game.fantasyland=off"], flags={"steps": 2000})
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    updates: list[Update] = []
    trainer.run(lambda update: updates.append(update) is None)
    games = sum(len(update.games) for update in updates)
    # One seat of three learns, five decisions a hand: games that were told of, and what 64 tables played since.
    assert 5 * games <= trainer.counters.steps <= 5 * (games + 2 * 64)
