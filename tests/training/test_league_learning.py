"""Leagues by what they learn: a mixed equilibrium where self-play goes round, and best responses by exploiters.

Rock, paper, scissors has one equilibrium, a third each. Q-learners play one throw at a time, so no single one of them
can be there: only the average over a pool can.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from maple.core.config import Config
from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.nets.policy import IndexPolicy
from maple.nets.q import IndexQ
from maple.training.build import build_trainer
from maple.training.learners import Net
from maple.training.loop import Trainer, Update

THROW = "tests.games.external.envs:Throw"
ROCK, PAPER, SCISSORS = range(3)
SMALL = ["threads=1", "workers.count=0", "net.hidden=[8]", "optimizer.schedule=constant", "league.window=200"]
Q = [
    *("algo=dqn", "tables=32", "dqn.capacity=256", "dqn.train_every=32", "dqn.horizon=32", "dqn.warmup=32"),
    *("dqn.n_step=1", "dqn.updates_per_step=8", "dqn.minibatch=64", "dqn.tau=1", "optimizer.learning_rate=0.03"),
    *("dqn.epsilon=0.6", "dqn.epsilon_final=0.6", "dqn.prioritized=false", "dqn.dueling=false", "dqn.prefetch=false"),
]
PPO = ["tables=64", "ppo.horizon=256", "ppo.minibatch=128", "optimizer.learning_rate=0.02", "ppo.entropy=0.02"]


def _config(*settings: str) -> Config:
    return load_config(THROW, settings=[*SMALL, *settings], defaults=entry(THROW).defaults)


def _trainer(team: Team, *settings: str) -> Trainer:
    config = _config(*settings)
    return build_trainer(config, make_game(THROW, config.game), team)


def _throws(net: Net) -> NDArray[np.float64]:
    """How often a network shows rock, paper and scissors, when it does not explore."""
    seen = np.ones((1, 2), np.float32)
    with torch.no_grad():
        if isinstance(net, IndexQ):
            return np.eye(3)[int(net(seen, np.ones((1, 3), np.bool_)).ravel().argmax())]
        assert isinstance(net, IndexPolicy)
        return torch.softmax(net(seen)[0][0].double(), 0).numpy()


def _exploitability(throws: NDArray[np.float64]) -> float:
    """What the best answer earns a game: 0 at the equilibrium, 1 against a single throw."""
    return float(max(throws[(best - 1) % 3] - throws[(best + 1) % 3] for best in (ROCK, PAPER, SCISSORS)))


def _pool(trainer: Trainer) -> NDArray[np.float64]:
    """(snapshots, 3) how often each of the pool shows rock, paper and scissors, after a run."""
    trainer.run(lambda _: True)
    trainer.arena.close()
    return np.array([_throws(net) for net in trainer.actor.snapshots.values()])


def test_self_play_goes_round(team: Team) -> None:
    plain = _trainer(team, *Q, "steps=8192")
    shown: list[int] = []

    def watch(_: Update) -> bool:
        shown.append(int(_throws(plain.learner.policy).argmax()))
        return True

    plain.run(watch)
    plain.arena.close()
    late = shown[len(shown) // 2 :]
    assert set(late) == {ROCK, PAPER, SCISSORS}  # it never settles: each gives way to what beats it
    assert sum(after != before for before, after in pairwise(late)) >= 9
    assert _exploitability(_throws(plain.learner.policy)) == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_leagues_average_goes_to_the_equilibrium(seed: int, team: Team) -> None:
    mix = ["opponents=past", "snapshots.every_steps=256", "snapshots.keep=1000", f"seed={seed}"]
    pool = _pool(_trainer(team, *Q, "steps=10240", *mix))
    assert (pool.sum(axis=0) > 0).all()
    early, late = (_exploitability(pool[:size].mean(axis=0)) for size in (5, len(pool)))
    assert late <= 0.3  # 0.10 to 0.25 for the first six seeds
    assert late < early


def test_an_exploiter_finds_the_best_answer_to_a_one_sided_learner(team: Team) -> None:
    worth = "env.worth=[1, 1, 3]"  # against random throws scissors earn most, and rock beats them
    mix = ["opponents=random:0.9,hard:0.1", "snapshots.every_steps=4096", "league.exploiter_every=2"]
    trainer = _trainer(team, *PPO, worth, *mix, "league.exploiter_steps=8192", "steps=17000")
    rates: list[float] = []

    def watch(update: Update) -> bool:
        rates.extend(value for name, value in update.figures.items() if name == "exploiter_win_rate")
        return True

    trainer.run(watch)
    trainer.arena.close()
    league = trainer.league
    assert [snapshot.cause for snapshot in league.taken] == ["schedule", "schedule", "exploiter"] * 2
    target, exploiter = (_throws(trainer.actor.snapshots[number]) for number in (4, 5))
    assert target[SCISSORS] > 0.9
    assert exploiter[ROCK] > 0.9
    assert len(rates) == 2
    rows = [league.names.index(snapshot.name) for snapshot in league.taken[4:]]
    games, wins = league.records.games[rows[1], rows[0]], league.records.wins[rows[1], rows[0]]
    assert rates[1] == pytest.approx(wins / games)
    assert rates[1] > 0.9
    assert league.records.games[0, rows[1]] > 0  # and the learner meets it


def test_exploiters_for_a_pool_that_nobody_meets_get_a_sentence(team: Team) -> None:
    with pytest.raises(ConfigError, match="adds to a pool that --opponents self never draws from"):
        _trainer(team, *PPO, "league.exploiter_every=1")
