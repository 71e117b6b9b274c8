"""Who sits where is drawn by weight, fixed for a game, and a function of its key alone."""

from __future__ import annotations

import numpy as np
import pytest

from maple.core.config import LeagueConfig, SnapshotConfig
from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer
from maple.training.league import League
from maple.training.seating import LEARNER, PAST, SNAPSHOT, OpponentMix, Seating

BOTS = ("random", "safe", "rollout")


def _league(mix: str, snapshots: int = 0, **rules: float) -> League:
    league = League(OpponentMix.parse(mix, BOTS), SnapshotConfig(), LeagueConfig.model_validate(rules))
    for number in range(snapshots):
        league.freeze(1000 * (number + 1), "schedule")
    return league


def _seat(mix: str, games: int, snapshots: int) -> np.ndarray:
    seating = Seating(games, 3, seed=4)
    seating.seat(np.arange(games, dtype=np.int32), np.zeros(games, np.int64), _league(mix, snapshots).shares)
    return seating.player


def test_weights_are_respected_and_the_learner_rotates() -> None:
    player = _seat("self:0.5,past:0.3,random:0.1,safe:0.1", 6000, 2)
    learner_seat = np.arange(6000) % 3
    assert (player[np.arange(6000), learner_seat] == LEARNER).all()
    others = np.array([player[t, s] for t in range(6000) for s in range(3) if s != t % 3])
    for code, share in ((LEARNER, 0.5), (SNAPSHOT, 0.15), (SNAPSHOT + 1, 0.15), (1, 0.1), (2, 0.1)):
        assert (others == code).mean() == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("name", PAST)
def test_an_empty_past_is_the_learner_itself(name: str) -> None:
    assert (_seat(name, 100, 0) == LEARNER).all()
    assert set(np.unique(_seat(f"{name}:0.5,random:0.5", 100, 0))) == {LEARNER, 1}


def test_draws_do_not_depend_on_who_else_is_seated() -> None:
    whole = _seat("self:0.5,random:0.5", 64, 0)
    assert np.array_equal(whole[:10], _seat("self:0.5,random:0.5", 10, 0))


@pytest.mark.parametrize(
    "text", ["nobody", "self:x", "random:-1", "self:0", "", "self:nan", "self,self", "run:", "run::0.5"]
)
def test_bad_mixes_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--opponents"):
        OpponentMix.parse(text, BOTS)


def test_runs_are_named_with_or_without_a_weight() -> None:
    mix = OpponentMix.parse("self:0.5,run:first@best:0.25,run:5,safe", BOTS)
    assert mix.names == ("self", "run:first@best", "run:5", "safe")
    assert mix.weights == pytest.approx(np.array([0.5, 0.25, 1, 1]) / 2.75)
    assert (mix.bots, mix.runs, mix.uses_past) == (["safe"], ["first@best", "5"], False)
    assert OpponentMix.without_runs("self:0.5,run:first@best:0.25, run:5,safe") == "self:0.5,safe"
    assert OpponentMix.without_runs("run:first") == "self"


def test_opponents_stay_for_a_whole_game_and_snapshots_join_in(team: Team) -> None:
    settings = ["tables=32", "opponents=self:0.2,past:0.5,random:0.3", "snapshots.every_steps=600", "snapshots.keep=2"]
    more = ["afterstate.horizon=480", "afterstate.minibatch=128", "net.hidden=[16, 8]", "game.fantasyland=off"]
    config = load_config("ofc", settings=settings + more, flags={"steps": 4000})
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    seen: dict[tuple[int, int], set[tuple[int, ...]]] = {}
    act = trainer.actor.act

    def watch(step, player, greedy=False):  # type: ignore[no-untyped-def]
        for table, game in zip(step.keys.table, step.keys.game, strict=True):
            seen.setdefault((int(table), int(game)), set()).add(tuple(trainer.seating.player[table]))
        return act(step, player, greedy)

    trainer.actor.act = watch  # type: ignore[method-assign]
    trainer.run(lambda _: True)
    assert all(len(seatings) == 1 for seatings in seen.values())
    players = {code for seatings in seen.values() for seating in seatings for code in seating}
    assert LEARNER in players
    assert 1 in players
    assert any(code >= SNAPSHOT for code in players)
    assert trainer.counters.snapshots >= 3
    in_play = set(np.unique(trainer.seating.player)) - {0, 1}
    assert {code - SNAPSHOT for code in in_play} <= set(trainer.actor.snapshots)
