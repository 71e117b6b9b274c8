"""Learning from a script first: a short look at it is worth a lot of play, and what cannot be studied is refused."""

from __future__ import annotations

import pytest

from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer
from maple.training.evaluate import bot_player, evaluate, greedy_player
from maple.training.loop import Update

SMALL = ["tables=64", "net.hidden=[64, 32]", "optimizer.learning_rate=0.003", "optimizer.schedule=constant"]
PPO = ["ppo.horizon=2048", "ppo.minibatch=256", "ppo.epochs=2"]
DQN = ["dqn.updates_per_step=4", "dqn.minibatch=128", "dqn.warmup=500", "dqn.epsilon=0.05"]
MEMORY = ["dqn.policy=index", "net.core=gru", "net.core_width=16", "dqn.segment=4", "dqn.burn_in=0"]


@pytest.mark.parametrize(
    ("algo", "settings", "against", "least"),
    [("ppo", PPO, "charger", 0.6), ("dqn", DQN, "charger", 0.6), ("dqn", [*DQN, *MEMORY], "random", 0.75)],
    ids=["ppo", "dqn", "dqn with memory"],
)
def test_what_was_studied_is_played(algo: str, settings: list[str], against: str, least: float, team: Team) -> None:
    """`greedy` seldom loses to `charger`, and never to `random`; who has watched it for a few seconds does the same."""
    rates = []
    for study in ("greedy", "null"):
        config = load_config(
            "wargame", settings=[*SMALL, f"algo={algo}", *settings, f"{algo}.study={study}"], flags={"steps": 12_000}
        )
        game = make_game("wargame", config.game)
        trainer = build_trainer(config, game, team)
        trainer.run(lambda _: True)
        player = greedy_player(trainer.learner.policy)
        found = evaluate(game, player, [bot_player(game, against, team)], 100, 1, team)
        rates.append(found.figures["win_rate"])
    assert rates[0] > least
    assert rates[0] > rates[1]


def test_a_guides_results_are_not_the_learners(team: Team) -> None:
    """Games that begin while somebody else plays count for nobody, also those that end after it has left."""
    settings = [*SMALL, "algo=ppo", *PPO, "opponents=self,hard,random", "ppo.study=tactician", "ppo.study_steps=6000"]
    config = load_config("wargame", settings=settings, flags={"steps": 60_000})
    trainer = build_trainer(config, make_game("wargame", config.game), team)
    met: list[tuple[int, int, float]] = []

    def watch(update: Update) -> bool:
        met.append((update.counters.steps, int(trainer.seating.guided.sum()), trainer.league.records.games.sum()))
        return update.counters.steps < 40_000

    trainer.run(watch)
    studying = [games for steps, _, games in met if steps <= 6000]
    assert studying
    assert not any(studying)
    assert met[0][1] == 64
    assert met[-1][1] == 0
    assert met[-1][2] > 0


@pytest.mark.parametrize(
    ("game", "settings", "words"),
    [
        ("wargame", ["algo=ppo", "ppo.study=gredy"], "ppo.study: wargame has no opponent 'gredy'; did you mean"),
        (
            "CartPole-v1",
            ["algo=ppo", "ppo.policy=index", "ppo.study=safe"],
            "ppo.study: CartPole-v1 has no opponent 'safe'",
        ),
    ],
)
def test_what_cannot_be_studied_is_refused(game: str, settings: list[str], words: str, team: Team) -> None:
    config = load_config(game, settings=settings, flags={"steps": 1000})
    with pytest.raises(ConfigError, match=words):
        build_trainer(config, make_game(game, config.game), team)
