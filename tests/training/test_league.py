"""The league: who is met how often, when snapshots are taken, and that all of it survives a stop."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from maple.core.config import LeagueConfig, SnapshotConfig
from maple.core.errors import CheckpointError
from maple.core.sources import load_config
from maple.core.step import Keys, Step
from maple.core.threads import Team
from maple.games import make_game
from maple.nets.memory import Memory
from maple.nets.policy import Choice
from maple.runs.store import RunFolder
from maple.training.actor import Actor
from maple.training.build import build_trainer
from maple.training.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint
from maple.training.league import CAUSES, EXPLOITER, League
from maple.training.league_records import Records
from maple.training.learners import frozen_copy
from maple.training.seating import LEARNER, PAST, RIVAL, SNAPSHOT, OpponentMix
from maple.training.session import Progress, train_run

TINY = [
    *("tables=48", "net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=128", "probe_every_s=0"),
    *("optimizer.schedule=constant", "game.fantasyland=off"),
]


def _league(mix: str, keep: int = 5, every_steps: int = 1_000_000, **rules: float) -> League:
    snapshots = SnapshotConfig(keep=keep, every_steps=every_steps)
    return League(OpponentMix.parse(mix, ("random", "safe")), snapshots, LeagueConfig.model_validate(rules))


def _play(league: League, snapshot: int, won: int, lost: int) -> None:
    """Games of two between the learner and a snapshot."""
    player = np.tile(np.array([LEARNER, SNAPSHOT + snapshot], np.int32), (won + lost, 1))
    score = np.array([[1.0, -1.0]] * won + [[-1.0, 1.0]] * lost)
    league.note(player, score)


def test_results_are_those_of_a_slow_count() -> None:
    rng = np.random.default_rng(5)
    player, score = rng.integers(0, 5, (400, 3)), rng.integers(0, 4, (400, 3))
    records = Records(5, window=10**9)
    records.add(player, score)
    games, wins = np.zeros((5, 5)), np.zeros((5, 5))
    for seated, scored in zip(player, score, strict=True):
        for a in range(3):
            for b in range(3):
                if seated[a] != seated[b]:
                    games[seated[a], seated[b]] += 1
                    wins[seated[a], seated[b]] += 1.0 if scored[a] > scored[b] else 0.5 * (scored[a] == scored[b])
    assert np.array_equal(records.games, games)
    assert np.array_equal(records.wins, wins)
    assert np.array_equal(records.wins + records.wins.T, records.games)


def test_of_the_learners_results_older_ones_count_less_and_others_do_not() -> None:
    records = Records(3, window=4)
    records.add(np.tile([0, 1], (8, 1)), np.tile([1, 0], (8, 1)))
    records.add(np.tile([1, 2], (8, 1)), np.tile([1, 0], (8, 1)))
    records.add(np.tile([0, 1], (4, 1)), np.tile([0, 1], (4, 1)))
    assert records.games[0, 1] == records.games[1, 0] == 8 / 2 + 4
    assert records.wins[0, 1] == 4
    assert records.wins[1, 0] == 4
    assert records.games[1, 2] == records.wins[1, 2] == 8
    records.freeze()
    assert records.games[3].tolist() == [0, 8, 0, 0]
    assert records.wins[3, 1] == 4
    assert records.wins[1, 3] == 4
    assert records.games[:, 3].tolist() == [0, 8, 0, 0]


def test_each_way_to_draw_from_the_past() -> None:
    league = _league("past", keep=3, hardness=2.0, half_life=1.0)
    for number in range(5):
        league.freeze(1000 * (number + 1), "schedule")
    assert list(league.pool) == [2, 3, 4]
    _play(league, 2, won=8, lost=0)
    _play(league, 3, won=3, lost=5)
    league.settle(6000)
    won = np.array([9 / 10, 4 / 10, 1 / 2])
    expected = {
        "latest": np.array([0, 0, 1.0]),
        "past": np.ones(3),
        "recent": np.array([0.25, 0.5, 1]),
        "hard": (1 - won) ** 2,
        "even": won * (1 - won),
    }
    for name in PAST:
        way = _league(f"self:0.5,{name}:0.5", keep=3, hardness=2.0, half_life=1.0)
        way.records.games, way.records.wins = league.records.games, league.records.wins
        way.taken = league.taken
        way.settle(6000)
        way.shares = way._drawn()
        share = dict(zip(way.shares.player.tolist(), way.shares.share.tolist(), strict=True))
        wanted = 0.5 * expected[name] / expected[name].sum()
        assert [share[SNAPSHOT + number] for number in (2, 3, 4)] == pytest.approx(wanted.tolist()), name
        assert share[LEARNER] == 0.5


def test_snapshots_are_due_by_schedule_and_by_gate() -> None:
    league = _league("past", every_steps=10_000, gate=0.6, gate_steps=1_000, window=100)
    assert league.settle(900) is None
    assert league.settle(1_000) == "gate"  # nobody to beat yet
    league.freeze(1_000, "gate")
    assert league.settle(2_500) is None  # not met yet
    _play(league, 0, won=60, lost=30)
    assert league.settle(2_600) is None  # too few to tell
    _play(league, 0, won=5, lost=10)
    assert league.settle(2_700) is None  # below the gate
    _play(league, 0, won=200, lost=0)
    assert league.settle(1_500) is None  # too soon
    assert league.settle(2_800) == "gate"
    league.freeze(2_800, "gate")
    assert league.settle(12_799) is None
    assert league.settle(12_800) == "schedule"
    without = _league("past", every_steps=10_000)
    assert without.settle(9_999) is None
    assert without.settle(10_000) == "schedule"
    assert _league("random", every_steps=10).settle(100) is None


def test_exploiters_are_in_the_pool_and_change_no_schedule() -> None:
    league = _league("latest:0.5,past:0.5", keep=2, every_steps=1_000, exploiter_every=2)
    due = []
    for steps in (1_000, 2_000, 3_000, 4_000, 5_000, 6_000):
        assert league.settle(steps - 1) is None
        assert league.settle(steps) == "schedule"
        league.freeze(steps, "schedule")
        due.append(league.exploiter_is_due)
        if league.exploiter_is_due:
            league.admit(steps, games=10, wins=7)
    assert due == [False, True] * 3
    assert [league.taken[number].name for number in league.pool] == [
        "exploiter@4000",
        "@5000",
        "@6000",
        "exploiter@6000",
    ]
    share = dict(zip((league.shares.player - SNAPSHOT).tolist(), league.shares.share.tolist(), strict=True))
    assert share == pytest.approx(dict(zip(league.pool, (0.125, 0.125, 0.625, 0.125), strict=True)))
    at = {name: row for row, name in enumerate(league.names)}
    newest = at["exploiter@6000"]
    assert league.records.win_rate(np.array([newest])) == pytest.approx([4 / 12])  # the learner is what it beat
    assert league.records.games[newest].tolist() == [10.0 if row in (0, at["@6000"]) else 0.0 for row in range(len(at))]
    assert league.records.wins[newest, at["@6000"]] == 7
    assert league.records.wins[at["@6000"], newest] == 3


def test_every_policy_in_play_takes_one_pass_and_rows_get_their_own(team: Team) -> None:
    config = load_config("ofc", settings=TINY, flags={"steps": 1})
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    nets = [trainer.learner.policy]
    for number in range(4):
        copy = frozen_copy(trainer.learner.policy)
        for weight in copy.parameters():
            weight.data += 0.3 * (number + 1) * weight.data.abs().mean() * weight.data.sign().roll(number + 1, 0)
        nets.append(copy)
    actor = Actor(nets[0], [make_game("ofc", config.game).bot("random")], team, 3, [nets[4]])
    actor.snapshots = {7: nets[1], 8: nets[2], 11: nets[3]}
    codes = {LEARNER: 0, SNAPSHOT + 7: 1, SNAPSHOT + 8: 2, SNAPSHOT + 11: 3, RIVAL: 4}
    step = trainer.arena.recv()
    player = np.random.default_rng(0).choice([*codes, 1], len(step.keys)).astype(np.int32)
    calls = _count_passes(nets)
    acted = actor.act(step, player)
    assert calls == [1, 1, 1, 1, 1]
    assert np.array_equal(acted.rows, np.flatnonzero(player == LEARNER))
    for row in np.flatnonzero(player != 1):
        alone = nets[codes[int(player[row])]].choose(
            step.view[[row]], step.keys.take(np.array([row])), 3, False, Memory()
        )
        assert acted.action[row] == alone.action[0]
    trainer.arena.close()


def _count_passes(nets: list) -> list[int]:  # type: ignore[type-arg]
    calls = [0] * len(nets)

    def counted(number: int, choose):  # type: ignore[no-untyped-def]
        def wrapped(view: np.ndarray, keys: Keys, seed: int, greedy: bool, memory: Memory) -> Choice:
            calls[number] += 1
            return choose(view, keys, seed, greedy, memory)  # type: ignore[no-any-return]

        return wrapped

    for number, net in enumerate(nets):
        net.choose = counted(number, net.choose)
    return calls


def test_the_pool_is_never_filled_with_weights_that_learned_nothing(team: Team) -> None:
    settings = [*TINY, "opponents=past:0.5,hard:0.5", "snapshots.every_steps=1500"]
    config = load_config("ofc", settings=settings, flags={"steps": 2200})
    trainer = build_trainer(config, make_game("ofc", config.game), team)
    fresh = frozen_copy(trainer.learner.policy)
    act, seen = trainer.actor.act, set[int]()

    def watch(step: Step, player: np.ndarray, greedy: bool = False):  # type: ignore[no-untyped-def]
        if not trainer.league.taken:
            assert (player == LEARNER).all()
        seen.update(np.unique(player).tolist())
        return act(step, player, greedy)

    trainer.actor.act = watch  # type: ignore[method-assign]
    trainer.run(lambda _: True)
    trainer.arena.close()
    assert SNAPSHOT in seen
    for net in trainer.actor.snapshots.values():
        assert any((a != b).any() for a, b in zip(net.parameters(), fresh.parameters(), strict=True))


def _go_on(_: Progress) -> bool:
    return True


def _run(folder: Path, name: str, steps: int, *more: str, tell: Callable[[Progress], bool] = _go_on) -> Checkpoint:
    run = RunFolder(folder / name)
    train_run(load_config("ofc", settings=[*TINY, *more], flags={"steps": steps}), run, tell)
    path = latest_checkpoint(run.checkpoints)
    assert path is not None
    return load_checkpoint(path)


def test_a_league_resumes_bit_for_bit_even_without_its_rival(tmp_path: Path) -> None:
    _run(tmp_path, "other", 1500, "seed=9")
    mix = "opponents=self:0.2,hard:0.3,recent:0.2,random:0.1,run:other:0.2"
    more = [mix, "snapshots.every_steps=2000", "snapshots.keep=2", "league.gate=0.5", "league.gate_steps=720"]
    more += ["league.window=20", "league.exploiter_every=2", "league.exploiter_steps=720"]
    whole = _run(tmp_path, "whole", 7500, *more)
    _run(tmp_path, "halves", 4000, *more)
    shutil.rmtree(tmp_path / "other")
    halves = _run(tmp_path, "halves", 7500, *more)
    causes = [CAUSES[cause] for cause in whole.state["league/cause"]]
    assert len(causes) > 5
    assert causes.count("exploiter") >= 2
    assert whole.state["league/games"].any()
    for left, right in ((whole.weights, halves.weights), (whole.state, halves.state)):
        assert left.keys() == right.keys()
        for name in left:
            assert np.array_equal(left[name], right[name]), name


def test_a_stop_is_answered_while_an_exploiter_is_trained(tmp_path: Path) -> None:
    more = ["opponents=self:0.5,hard:0.5", "snapshots.every_steps=2000", "league.window=20"]
    more += ["league.exploiter_every=1", "league.exploiter_steps=2160"]
    whole = _run(tmp_path, "whole", 5000, *more)
    asked: list[int] = []

    def stop_between_updates(now: Progress) -> bool:
        asked.append(now.updates)
        return asked.count(now.updates) == 1  # asked again after the same update: an exploiter is under way

    stopped = _run(tmp_path, "stopped", 5000, *more, tell=stop_between_updates)
    assert stopped.meta["counters"]["steps"] < 5000
    assert EXPLOITER not in {CAUSES[cause] for cause in stopped.state["league/cause"]}
    resumed = _run(tmp_path, "stopped", 5000, *more)
    assert [CAUSES[cause] for cause in resumed.state["league/cause"]].count(EXPLOITER) >= 1
    for name, array in whole.weights.items():
        assert np.array_equal(array, resumed.weights[name]), name


def test_a_checkpoint_from_before_leagues_says_so() -> None:
    with pytest.raises(CheckpointError, match="has no league"):
        _league("past").restore({})
    _league("self").restore({})
