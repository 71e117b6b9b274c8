"""Networks that remember and attend, in training: what others cannot solve, who remembers what, exact resuming."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import maple
from maple.core.errors import ConfigError
from maple.core.sources import load_config
from maple.core.step import Keys
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.nets.memory import Memory
from maple.nets.policy import Choice
from maple.nets.sequence import SequencePolicy
from maple.runs.store import RunFolder
from maple.training.build import build_trainer
from maple.training.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint
from maple.training.evaluate import evaluate, greedy_player
from maple.training.loop import Trainer
from maple.training.session import train_run
from tests.games.external.described import DescribedEnv

ENVS = "tests.games.external.envs:"
SMALL = ["threads=1", "tables=32", "workers.count=0", "ppo.horizon=1024", "ppo.minibatch=256", "net.hidden=[32, 32]"]
LEARNS = [*SMALL, "optimizer.learning_rate=0.005", "ppo.epochs=6", "net.core_width=32", "ppo.gamma=1"]
DQN = ["algo=dqn", "dqn.policy=index", "dqn.train_every=64", "dqn.updates_per_step=4", "dqn.minibatch=128"]
REPLAY = ["dqn.capacity=8192", "dqn.warmup=512", "dqn.segment=6", "dqn.tau=0.05", "dqn.gamma=1"]


def _trainer(name: str, team: Team, *settings: str) -> Trainer:
    config = load_config(name, settings=list(settings), defaults=entry(name).defaults)
    return build_trainer(config, make_game(name, config.game), team)


def _score(name: str, team: Team, *settings: str) -> float:
    """The mean return after training."""
    trainer = _trainer(ENVS + name, team, *LEARNS, *settings)
    trainer.run(lambda _: True)
    trainer.arena.close()
    config = load_config(ENVS + name, settings=list(settings), defaults=entry(ENVS + name).defaults)
    game = make_game(ENVS + name, config.game)
    return evaluate(game, greedy_player(trainer.learner.policy), [], 300, 9, team).figures["return"]


@pytest.mark.parametrize(("core", "masked"), [("lstm", False), ("gru", True)])
def test_a_cue_is_remembered(core: str, masked: bool, team: Team) -> None:
    assert _score("Recall", team, f"net.core={core}", f"env.masked={masked}", "steps=12000") > 0.95


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
@pytest.mark.parametrize("core", ["gru", "none"])
def test_a_cue_is_remembered_where_options_are_described(algo: str, core: str, team: Team) -> None:
    name, more = ENVS + "Recall", [f"algo={algo}", f"{algo}.policy=options", f"net.core={core}", "steps=12000"]
    config = load_config(name, settings=[*LEARNS, *DQN, *REPLAY, *more], defaults=entry(name).defaults)
    game = DescribedEnv(name, {"masked": True, "delay": 3})
    trainer = build_trainer(config, game, team)
    trainer.run(lambda _: True)
    trainer.arena.close()
    found = evaluate(game, greedy_player(trainer.learner.policy), [], 300, 9, team).figures["return"]
    assert found > 0.95 if core == "gru" else found < 0.55


@pytest.mark.parametrize(("core", "masked"), [("gru", False), ("lstm", True)])
def test_a_cue_is_remembered_by_values_from_replay(core: str, masked: bool, team: Team) -> None:
    settings = [*DQN, *REPLAY, "env.delay=3", f"net.core={core}", f"env.masked={masked}", "steps=12000"]
    assert _score("Recall", team, *settings) > 0.95


@pytest.mark.parametrize("algo", [["steps=12000"], [*DQN, *REPLAY, "env.delay=3", "steps=8000"]])
def test_a_network_without_memory_cannot_know_the_cue(algo: list[str], team: Team) -> None:
    assert _score("Recall", team, *algo) < 0.55


def test_the_heaviest_animal_is_pointed_at(team: Team) -> None:
    settings = ["net.attention=true", "net.attention_width=16", "net.attention_heads=2", "steps=16000"]
    assert _score("Herd", team, *settings) > 0.8


def test_attention_and_memory_go_together(team: Team) -> None:
    trainer = _trainer(ENVS + "Herd", team, *SMALL, "net.attention=true", "net.core=gru", "steps=2000")
    before = {name: tensor.clone() for name, tensor in trainer.learner.policy.state_dict().items()}
    trainer.run(lambda _: True)
    trainer.arena.close()
    after = trainer.learner.policy.state_dict()
    assert all(
        not np.array_equal(after[name], before[name]) for name in before if "query" in name or "weight_ih" in name
    )


OFC = ["algo=ppo", "ppo.policy=index", "net.core=lstm", "net.core_width=8", "net.hidden=[16, 8]", "tables=24"]
WALK = ["ppo.horizon=512", "env.limit=4", "net.core=gru"]
PAST = ["opponents=self:0.4,past:0.4,random:0.2", "snapshots.every_steps=500", "ppo.horizon=480", "ppo.minibatch=96"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ofc", [*OFC, *PAST]),
        (ENVS + "Walk", [*SMALL, *WALK]),
        (ENVS + "Walk", [*SMALL, *WALK, "workers.count=2", "workers.spares=0"]),
        (ENVS + "Nim", [*SMALL, *PAST, "net.core=lstm", "workers.count=2", "workers.spares=0"]),
    ],
)
def test_every_seat_goes_on_from_where_it_was(
    name: str, settings: list[str], team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever plays a seat, snapshots too: a game begins with zeros and each decision with what the last one left.

    That also holds for the judgement of what lies beyond a game that was cut off.
    """
    left: dict[tuple[int, ...], tuple[SequencePolicy, NDArray[np.float32]]] = {}
    players, begun, gone_on = set[int](), 0, 0
    choose = SequencePolicy.choose

    def watched(
        self: SequencePolicy,
        view: NDArray[np.uint64],
        keys: Keys,
        seed: int,
        greedy: bool,
        memory: Memory | None = None,
    ) -> Choice:
        nonlocal begun, gone_on
        assert memory is not None
        choice = choose(self, view, keys, seed, greedy, memory)
        players.add(id(self))
        rows = zip(keys.table.tolist(), keys.game.tolist(), keys.seat.tolist(), strict=True)
        for row, key in enumerate(rows):
            if keys.decision[row] == 0:
                assert not choice.state[row].any()
                begun += 1
            else:
                player, state = left[key]
                assert player is self
                np.testing.assert_array_equal(choice.state[row], state)
                gone_on += 1
            left[key] = self, memory.state[key[0], key[2]].copy()
        return choice

    monkeypatch.setattr(SequencePolicy, "choose", watched)
    trainer = _trainer(name, team, *settings, "steps=3000")
    trainer.run(lambda _: True)
    trainer.arena.close()
    assert begun > 100
    assert gone_on > 1000
    assert len(players) > (0 if name.endswith("Walk") else 3)


def test_a_look_at_the_strength_disturbs_no_game(team: Team) -> None:
    trainer = _trainer("ofc", team, *OFC, *PAST, "steps=1000000")
    trainer.collect()
    before = trainer.actor.memory.state.copy()
    assert before.any()
    evaluate(
        make_game("ofc"),
        greedy_player(trainer.learner.policy),
        [greedy_player(trainer.learner.policy)] * 2,
        30,
        1,
        team,
    )
    np.testing.assert_array_equal(trainer.actor.memory.state, before)


def _end(run: str, runs_dir: Path) -> Checkpoint:
    path = latest_checkpoint(runs_dir / run / "checkpoints")
    assert path is not None
    return load_checkpoint(path)


FROM_REPLAY = ["algo=dqn", "dqn.policy=index", "net.core=gru", "net.core_width=8", "net.hidden=[16, 8]", "tables=24"]
FEW = ["dqn.minibatch=32", "dqn.updates_per_step=1", "dqn.capacity=2000", "dqn.warmup=300", "dqn.segment=3"]


@pytest.mark.parametrize(
    "kind",
    [
        [*OFC, "ppo.burn_in=2"],
        ["ppo.policy=options", *OFC[:1], *OFC[2:]],
        FROM_REPLAY + FEW,
        [*FROM_REPLAY, *FEW, "dqn.policy=options"],
    ],
)
def test_a_run_that_stopped_ends_like_one_that_did_not(kind: list[str], tmp_path: Path) -> None:
    config = load_config("ofc", settings=[*PAST, *kind, "threads=1", "steps=4000", "probe_every_s=0", "evaluate=false"])
    train_run(config, RunFolder(tmp_path / "whole"), lambda _: True)
    for stop in (500, 2000, 10_000):
        train_run(config, RunFolder(tmp_path / "cut"), lambda progress, stop=stop: progress.steps < stop)  # type: ignore[misc]
    whole, cut = _end("whole", tmp_path), _end("cut", tmp_path)
    assert whole.state["recall/state"].any()
    for left, right in ((whole.weights, cut.weights), (whole.state, cut.state)):
        assert left.keys() == right.keys()
        for name in left:
            assert np.array_equal(left[name], right[name]), name


def test_an_agent_remembers_until_it_is_reset(tmp_path: Path) -> None:
    settings = [*SMALL, "env.masked=true", "net.core=lstm"]
    agent = maple.train(ENVS + "Recall", run="recall", runs_dir=tmp_path, steps=1, settings=settings)
    view = np.zeros(agent.game.spec.view, np.uint64)
    row = agent.game.plan.layout  # type: ignore[attr-defined]
    row.observation_of(view)[1] = 1.0
    row.mask_of(view)[:] = True
    row.flag_of(view)[...] = 1

    def remembered() -> NDArray[np.float32]:
        agent.act({"view": view})
        return agent.memory.state[0, 0].copy()

    first, second = remembered(), remembered()
    assert not np.array_equal(first, second)
    agent.act({"view": view, "key": np.array([1, 0])})
    np.testing.assert_array_equal(agent.memory.state[0, 1, : len(first)], first)
    agent.reset()
    np.testing.assert_array_equal(remembered(), first)


def test_an_agent_plays_an_envs_games_as_it_plays_an_arenas(tmp_path: Path, team: Team) -> None:
    """Game after game, for every seat: what it remembers in an AEC env is what it remembers at an arena's table."""
    settings = [*OFC, "threads=1", "game.fantasyland=off"]
    agent = maple.train("ofc", run="ofc", runs_dir=tmp_path, steps=1, settings=settings)
    env = maple.aec_env("ofc", seed=4, fantasyland="off")
    arena = maple.make_arena("ofc", tables=1, seed=4, fantasyland="off")
    twin = maple.load("ofc", tmp_path)
    for _ in range(3):
        env.reset()
        for name in env.agent_iter():
            observed, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            step = arena.recv()
            assert name == f"seat_{step.keys.seat[0]}"
            action = agent.act(observed)
            assert action == twin.act(step)[0]  # type: ignore[index]
            np.testing.assert_array_equal(
                agent.memory.state[0, : step.keys.seat[0] + 1], twin.memory.state[0, : step.keys.seat[0] + 1]
            )
            env.step(action)
            arena.send(np.array([action]))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["algo=afterstate", "net.core=lstm"], "net.core=lstm is not for after-state values; use --algo ppo"),
        (["algo=ppo", "ppo.policy=index", "net.core=gru", "ppo.augment=true"], "turn it or net.core=gru off"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(settings: list[str], sentence: str, team: Team) -> None:
    config = load_config("ofc", settings=["tables=8", "steps=1", *settings])
    with pytest.raises(ConfigError, match=sentence):
        build_trainer(config, make_game("ofc"), team)


def test_heads_have_to_share_the_width() -> None:
    with pytest.raises(ConfigError, match="attention_width 30 is no multiple of 4 heads"):
        load_config("ofc", settings=["net.attention_width=30"])
