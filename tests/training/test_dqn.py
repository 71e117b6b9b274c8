"""DQN is tested by learning: a masked task, one that needs foresight, and the ways to explore and to judge."""

from __future__ import annotations

import pytest

from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.training.build import build_trainer
from maple.training.evaluate import evaluate, greedy_player
from maple.training.learners import DqnLearner

LOCK = "tests.games.external.envs:Lock"
SMALL = ["algo=dqn", "workers.count=0", "net.hidden=[32, 32]", "dqn.warmup=200", "optimizer.learning_rate=0.002"]


def _return(game_name: str, steps: int, team: Team, *settings: str) -> float:
    config = load_config(game_name, None, [*SMALL, *settings], entry(game_name).defaults, {"steps": steps})
    game = make_game(game_name, config.game)
    trainer = build_trainer(config, game, team)
    trainer.run(lambda _: True)
    trainer.arena.close()
    trainer.learner.close()
    return evaluate(game, greedy_player(trainer.learner.policy), [], 60, 1, team).figures["return"]


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["dqn.prioritized=false", "dqn.dueling=false", "dqn.double=false", "dqn.n_step=1"],
        ["dqn.exploration=noisy"],
        ["dqn.quantiles=8", "dqn.prefetch=true"],
        ["dqn.tau=1", "dqn.target_every=25"],
    ],
)
def test_a_lock_is_opened(settings: list[str], team: Team) -> None:
    tables = ["tables=16", "dqn.updates_per_step=4", "dqn.minibatch=64"]
    assert _return(LOCK, 8_000, team, *tables, *settings) == 1.0


def test_a_pole_is_balanced(team: Team) -> None:
    settings = ["tables=16", "dqn.updates_per_step=4", "dqn.minibatch=128", "net.activation=relu"]
    settings += ["optimizer.learning_rate=0.0007", "dqn.tau=0.01"]
    # One seed says little: they end between 170 and 340, and which is which depends on how a processor rounds.
    returns = [_return("CartPole-v1", 50_000, team, *settings, f"seed={seed}") for seed in range(4)]
    assert sum(returns) / len(returns) > 190


def test_a_replay_that_cannot_hold_what_waits_is_refused(team: Team) -> None:
    config = load_config("ofc", settings=["algo=dqn", "dqn.capacity=4000", "tables=1024"])
    with pytest.raises(ConfigError, match="make it at least 24576"):
        build_trainer(config, make_game("ofc"), team)


def test_the_update_ratio_is_reported(team: Team) -> None:
    settings = [*SMALL, "tables=16", "dqn.updates_per_step=4", "dqn.train_every=32", "dqn.horizon=1000"]
    config = load_config(LOCK, None, settings, entry(LOCK).defaults, {"steps": 1500})
    trainer = build_trainer(config, make_game(LOCK, config.game), team)
    told = []
    trainer.run(lambda update: told.append(update) is None)
    trainer.arena.close()
    assert isinstance(trainer.learner, DqnLearner)
    assert [update.counters is trainer.counters for update in told] == [True, True]
    assert told[-1].figures["update_ratio"] == pytest.approx(4 / 32)
    assert trainer.counters.minibatches == 4 * (trainer.counters.updates - 6)  # six rounds before 200 decisions
