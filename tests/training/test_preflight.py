"""The estimate of memory against what a run really allocates."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from maple.core.errors import ConfigError
from maple.core.room import container_room
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.learn.replay import Replay
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.nets.sequence_q import RecurrentQ
from maple.training.build import build_trainer, trainer_state
from maple.training.learners import weights_of
from maple.training.preflight import BATTLE, NODE, WORKER, check_memory, estimate

KINDS = [
    ["algo=afterstate"],
    ["algo=ppo", "ppo.policy=options"],
    ["algo=ppo", "ppo.policy=index"],
    ["algo=ppo", "ppo.policy=index", "net.core=lstm"],
    ["algo=ppo", "ppo.policy=index", "net.core=gru", "net.core_width=200", "net.hidden=[100]"],
    ["algo=ppo", "ppo.policy=options", "net.core=lstm"],
    ["algo=dqn", "dqn.policy=options"],
    ["algo=dqn", "dqn.policy=index", "net.core=lstm"],
    ["algo=dqn", "dqn.policy=options", "dqn.dueling=true", "net.core=gru"],
    ["algo=dqn", "dqn.policy=index", "dqn.quantiles=7", "dqn.exploration=noisy"],
]


@pytest.mark.parametrize("settings", KINDS)
def test_the_estimate_is_near_what_is_allocated(settings: list[str], team: Team) -> None:
    config = load_config("ofc", settings=["tables=2048", "threads=2", "steps=1000", *settings])
    game = make_game("ofc")
    need, trainer = estimate(config, game), build_trainer(config, game, team)
    held = vars(trainer.learner.memory)
    held |= vars(held["tree"]) if "tree" in held else {}
    held |= vars(held["chains"]) if held.get("chains") is not None else {}
    memory = sum(array.nbytes for array in held.values() if isinstance(array, np.ndarray))
    assert need.memory == pytest.approx(memory, rel=0.05)
    net = trainer.learner.policy
    width = net.state_width if isinstance(net, SequencePolicy | OptionSequencePolicy | RecurrentQ) else 0
    recalled = 2048 * game.spec.seats * 4 * width
    tables = recalled + sum(array.nbytes for array in trainer.arena.state().values())
    assert need.tables == pytest.approx(tables, rel=0.3)
    weights = trainer.learner.schedule.descent.flat.vector.numel()
    assert need.network == pytest.approx(4 * weights * (6 if config.algo == "dqn" else 5), rel=0.1)


def test_a_run_that_does_not_fit_is_told_what_would() -> None:
    config = load_config("ofc", settings=["tables=1000000"])
    game = make_game("ofc")
    with pytest.raises(ConfigError) as caught:
        check_memory(config, game, free=2 * 2**30)
    found = re.search(r"tables=(\d+) would fit", str(caught.value))
    assert found is not None
    smaller = load_config("ofc", settings=[f"tables={found[1]}"])
    assert check_memory(smaller, game, free=2 * 2**30).total < 2 * 2**30
    long = load_config("ofc", settings=["afterstate.horizon=100000000"])
    with pytest.raises(ConfigError, match=r"tables=1 --set afterstate.horizon=\d+ would fit"):
        check_memory(long, game, free=2 * 2**30)
    assert check_memory(load_config("ofc"), game, free=4 * 2**30).total < 2**30
    vast = load_config("ofc", settings=["algo=dqn", "dqn.capacity=100000000"])
    with pytest.raises(ConfigError, match=r"dqn.capacity=\d+ would fit"):
        check_memory(vast, game, free=2 * 2**30)
    with pytest.raises(ConfigError, match=r"\(saving .* GiB, memory .*dqn.save_replay=false or dqn.replay=file"):
        check_memory(vast, game, free=20 * 2**30)
    unsaved = load_config("ofc", settings=["algo=dqn", "dqn.capacity=100000000", "dqn.save_replay=false"])
    assert check_memory(unsaved, game, free=20 * 2**30).memory > 10 * 2**30
    filed = load_config("ofc", settings=["algo=dqn", "dqn.capacity=100000000", "dqn.replay=file"])
    assert check_memory(filed, game, free=6 * 2**30).memory < 4 * 2**30
    recurrent = ["dqn.policy=index", "net.core=lstm", "net.core_width=256"]  # 2 KiB a decision
    filed = load_config("ofc", settings=["algo=dqn", "dqn.capacity=20000000", "dqn.replay=file", *recurrent])
    assert check_memory(filed, game, free=6 * 2**30).memory < 4 * 2**30


def test_a_run_that_goes_on_is_told_only_what_it_may_change() -> None:
    game = make_game("ofc")
    for settings, said in (
        (["tables=1000000"], "take the run to a larger machine, or begin another --run with smaller settings"),
        (["algo=dqn", "dqn.capacity=30000000", "dqn.save_replay=false"], "--set dqn.replay=file would fit"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_memory(load_config("ofc", settings=settings), game, free=3 * 2**30, goes_on=True)


@pytest.mark.parametrize("settings", [["algo=ppo", "ppo.policy=index"], ["algo=dqn", "dqn.capacity=50000"]])
def test_what_saving_takes_is_foreseen(settings: list[str], team: Team) -> None:
    """Bytes of a checkpoint that keeps as much as it can, twice: once as tensors, once as one piece."""
    config = load_config("ofc", settings=["tables=256", "threads=2", "steps=1000", *settings])
    trainer = build_trainer(config, make_game("ofc"), team)
    if isinstance(trainer.learner.memory, Replay):
        trainer.learner.memory.count = config.dqn.capacity
    else:
        trainer.learner.memory.size = 2 * 256 * 3
    held = sum(array.nbytes for array in trainer_state(trainer).values())
    held += sum(array.nbytes for array in weights_of(trainer.learner.policy).values())
    assert estimate(config, make_game("ofc")).saving == pytest.approx(2 * held, rel=0.15)


def test_snapshots_and_rivals_are_foreseen() -> None:
    game = make_game("ofc")
    plain, league = (
        estimate(load_config("ofc", settings=["threads=2", "snapshots.keep=4", *more]), game)
        for more in ([], ["opponents=self:0.5,hard:0.3,run:a:0.1,run:b:0.1"])
    )
    assert league.network / plain.network == pytest.approx((5 + 5 + 2) / 5)


def test_processes_that_play_are_foreseen() -> None:
    walk = "tests.games.external.envs:Walk"
    few, many = (load_config(walk, settings=["algo=ppo", "ppo.policy=index", f"workers.count={n}"]) for n in (0, 60))
    game = make_game(walk)
    assert estimate(few, game).workers == 0
    assert estimate(many, game).workers == (60 + 2) * WORKER
    with pytest.raises(ConfigError, match=r"\(workers 3\.9 GiB.* --workers (\d+) --set workers.spares=0 would fit"):
        check_memory(many, game, free=3 * 2**30)
    assert estimate(many.model_copy(update={"actors": many.actors.model_copy(update={"count": 2})}), game).workers == 0
    battles = load_config("showdown", settings=["algo=ppo", "threads=32", "tables=64"])
    showdown = make_game("showdown")
    assert estimate(battles, showdown).workers == 34 * NODE + 64 * BATTLE
    with pytest.raises(ConfigError, match=r"workers 17\.\d GiB.* --set threads=\d+ --set workers.spares=0 would fit"):
        check_memory(battles, showdown, free=5 * 2**30)


def test_fewer_actors_are_named_where_they_would_fit() -> None:
    walk, free = "tests.games.external.envs:Walk", 4 * 2**30
    settings = ["algo=ppo", "ppo.policy=index", "actors.count=8"]
    with pytest.raises(ConfigError, match=r"--set actors\.count=\d+ --set workers\.spares=0 would fit") as caught:
        check_memory(load_config(walk, settings=settings), make_game(walk), free=free)
    named = str(caught.value).rpartition("; ")[2].removesuffix(" would fit").replace("--set ", "").split()
    fits = load_config(walk, settings=[*settings, *named])
    assert 1 <= fits.actors.count < 8
    assert check_memory(fits, make_game(walk), free=free).total <= 0.9 * free


def test_fewer_tables_are_named_to_dqn_where_its_replay_is_not_to_blame() -> None:
    settings, game, free = ["algo=dqn", "dqn.capacity=10000000", "tables=1000000"], make_game("ofc"), 2 * 2**30
    with pytest.raises(ConfigError, match=r"tables=\d+ .*would fit") as caught:
        check_memory(load_config("ofc", settings=settings), game, free=free)
    named = re.findall(r"(?:tables|dqn\.capacity)=\d+", str(caught.value))
    assert check_memory(load_config("ofc", settings=[*settings, *named]), game, free=free).total <= 0.9 * free


def test_the_bounds_of_a_container_are_seen(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert container_room(tmp_path) is None
    write("proc/self/cgroup", "0::/pod/box\n")
    write("sys/fs/cgroup/pod/box/memory.max", "max\n")
    write("sys/fs/cgroup/pod/box/memory.current", "500\n")
    assert container_room(tmp_path) is None
    write("sys/fs/cgroup/pod/memory.max", "3000\n")  # around it all
    write("sys/fs/cgroup/pod/memory.current", "2500\n")
    write("sys/fs/cgroup/pod/memory.stat", "anon 1500\ninactive_file 700\n")
    assert container_room(tmp_path) == 3000 - 2500 + 700
    write("sys/fs/cgroup/pod/box/memory.max", "900\n")
    assert container_room(tmp_path) == 400
    write("proc/self/cgroup", "4:memory:/docker/not-seen-from-here\n1:cpu:/\n")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n")
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "200\n")
    assert container_room(tmp_path) == 800
