"""Who sits where is drawn by weight, fixed for a game, and a function of its key alone."""

from __future__ import annotations

import numpy as np
import pytest

from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.training.build import build_trainer
from maple.training.seating import LEARNER, SNAPSHOT, OpponentMix, Seating

BOTS = ("random", "safe", "rollout")


def _seat(mix: str, games: int, snapshots: list[int]) -> np.ndarray:
    seating = Seating(OpponentMix.parse(mix, BOTS), games, 3, seed=4)
    seating.seat(np.arange(games, dtype=np.int32), np.zeros(games, np.int64), snapshots)
    return seating.player


def test_weights_are_respected_and_the_learner_rotates() -> None:
    player = _seat("self:0.5,past:0.3,random:0.1,safe:0.1", 6000, [3, 8])
    learner_seat = np.arange(6000) % 3
    assert (player[np.arange(6000), learner_seat] == LEARNER).all()
    others = np.array([player[t, s] for t in range(6000) for s in range(3) if s != t % 3])
    for code, share in ((LEARNER, 0.5), (SNAPSHOT + 3, 0.15), (SNAPSHOT + 8, 0.15), (1, 0.1), (2, 0.1)):
        assert (others == code).mean() == pytest.approx(share, abs=0.02)


def test_an_empty_past_is_the_learner_itself() -> None:
    assert (_seat("past", 100, []) == LEARNER).all()


def test_draws_do_not_depend_on_who_else_is_seated() -> None:
    whole = _seat("self:0.5,random:0.5", 64, [])
    assert np.array_equal(whole[:10], _seat("self:0.5,random:0.5", 10, []))


@pytest.mark.parametrize("text", ["nobody", "self:x", "random:-1", "self:0", "", "self:nan"])
def test_bad_mixes_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--opponents"):
        OpponentMix.parse(text, BOTS)


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
