"""Showdown behind the contract: observations, masks and bots from views, evaluation and training over real battles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from maple.arena.node import NodeArena
from maple.arena.node_pool import PoolLimits
from maple.core.errors import CheckpointError, GameError
from maple.core.sources import load_config
from maple.core.step import Keys, Options
from maple.core.threads import Team
from maple.games import entry, make_game
from maple.games.showdown import options as described
from maple.games.showdown import shared as around
from maple.games.showdown.encode import ABOVE, BITS, CAP, NUMBER, ONE_HOT, mask_byte, observation_plan
from maple.games.showdown.schema import load_schema
from maple.nets.sequence import OptionSequencePolicy, SequencePolicy
from maple.runs.store import RunFolder
from maple.training.agent import load_agent
from maple.training.checkpoint import find_checkpoint, load_checkpoint
from maple.training.evaluate import bot_player, evaluate
from maple.training.export import export_onnx
from maple.training.session import train_run

QUICK = {"max_turns": 10}


@pytest.fixture(scope="module")
def rows() -> tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]]:
    """Some decisions of random battles."""
    game = make_game("showdown", {"max_turns": 40})
    views, keys, masks = [], [], []
    with NodeArena(game, 8, 5, processes=1, limits=PoolLimits(spares=0)) as arena:
        for _ in range(40):
            step = arena.recv()
            views.append(step.view)
            keys.append(step.keys)
            masks.append(step.mask)
            action = np.empty(len(step.keys), np.int32)
            game.bot("random")(step.view, 5, step.keys, action, 0, len(action))
            arena.send(action)
    together = Keys(
        *(np.concatenate([getattr(k, name) for k in keys]) for name in ("table", "game", "seat", "decision"))
    )
    return np.concatenate(views), together, np.concatenate(masks)


def payments(rewards: dict[str, object], steps: int = 120) -> dict[tuple[int, int], list[float]]:
    """What seat 0 was paid at each of its decisions and at the end, of every finished game."""
    game, found, done = make_game("showdown", {"max_turns": 12, "rewards": rewards}), {}, {}
    with NodeArena(game, 4, 5, processes=1, limits=PoolLimits(spares=0)) as arena:
        for _ in range(steps):
            step = arena.recv()
            for i, (table, number) in enumerate(zip(step.ended.table, step.ended.game, strict=True)):
                paid = [*found.pop((table, number), []), float(step.ended.reward[i, 0, 0])]
                assert sum(paid) == pytest.approx(step.ended.figures["parts"][i, 0].sum(), abs=1e-4)
                done[int(table), int(number)] = paid
            for i, (table, number, seat) in enumerate(
                zip(step.keys.table, step.keys.game, step.keys.seat, strict=True)
            ):
                if seat == 0:
                    found.setdefault((table, number), []).append(float(step.reward[i, 0]))
            action = np.empty(len(step.keys), np.int32)
            game.bot("random")(step.view, 5, step.keys, action, 0, len(action))
            arena.send(action)
    return done


def test_a_secondary_part_of_the_reward_is_paid_at_its_decisions_and_at_the_end() -> None:
    none = {"win": 0, "faint": 0, "hp": 0, "status": 0, "turn": 0}
    often = payments({**none, "hp": 2.0})
    rarely = payments({**none, "hp": {"weight": 2.0, "every": 5}})
    assert often.keys() == rarely.keys()
    assert len(often) >= 8
    for game, paid in often.items():
        due, kept = [], 0.0
        for decision, amount in enumerate(paid):
            kept += amount
            now = decision % 5 == 0 or decision == len(paid) - 1
            due.append(kept if now else 0.0)
            kept = 0.0 if now else kept
        assert rarely[game] == pytest.approx(due, abs=1e-5)
        assert sum(map(abs, paid)) > 0


def slow_observation(view: NDArray[np.uint64]) -> list[int]:
    """The plan, step by step, in plain Python."""
    seen, out = view.tobytes(), [0] * observation_plan().size
    for at, size, kind, argument, place in observation_plan().steps.tolist():
        value = int.from_bytes(seen[at : at + size], "little")
        if kind == NUMBER:
            out[place] = min(CAP, -(-value // argument))
        elif kind == ONE_HOT and value < argument:
            out[place + value] = 1
        elif kind == BITS:
            out[place : place + 16] = [value >> bit & 1 for bit in range(16)]
        elif kind == ABOVE:
            out[place] = max(0, value - argument)
        elif kind not in (NUMBER, ONE_HOT, BITS, ABOVE):
            out[place] = max(0, argument - value)
    return out


def test_observations_are_what_the_plan_says(rows: tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]]) -> None:
    game, (view, _, _) = make_game("showdown"), rows
    observation = np.full((len(view), game.spec.observation), 99, np.uint8)
    mask = np.zeros((len(view), game.spec.actions), np.bool_)
    game.observe(view, observation, mask, 0, len(view))
    for i in range(0, len(view), 7):
        assert observation[i].tolist() == slow_observation(view[i])
        bits = int.from_bytes(view[i].tobytes()[mask_byte() : mask_byte() + 2], "little")
        assert mask[i].tolist() == [bool(bits >> action & 1) for action in range(14)]


def test_entities_are_both_teams_and_the_moves_on_offer(
    rows: tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]],
) -> None:
    game, (view, _, masks), schema = make_game("showdown"), rows, load_schema()
    pokemon, move = schema.groups["pokemon"], schema.groups["move"]
    observation = np.zeros((len(view), game.spec.observation), np.uint8)
    game.observe(view, observation, np.zeros((len(view), game.spec.actions), np.bool_), 0, len(view))
    mine, theirs, moves = game.spec.entities
    for i in range(0, len(view), 7):
        seen = view[i].tobytes()
        of = {g.name: observation[i, g.begin : g.end].reshape(g.count, g.width) for g in game.spec.entities}
        for name, first in (("mine", 0), ("theirs", 6)):
            for number, row in enumerate(of[name]):
                flags, hp = (seen[pokemon.byte(field, first + number)] for field in ("flags", "hp"))
                assert row[0] == (flags > 0)
                assert row[1] == -(-hp // 32)
                assert row[2 + flags] == 1
        for number, row in enumerate(of["moves"]):
            known = int.from_bytes(seen[move.byte("move", number) :][:2], "little")
            assert row[0] == (known > 0)
        for action in np.flatnonzero(masks[i]):  # what can be chosen is there to be pointed at
            group = mine if action in mine.pointing else moves
            assert of[group.name][group.pointing.index(action) % group.count, 0]
    assert theirs.pointing == []
    assert sorted([*mine.pointing, *moves.pointing]) == list(range(14))


@pytest.mark.parametrize("name", ["random", "power", "effective", "heuristic"])
def test_bots_play_legally_and_depend_on_their_row_alone(
    name: str, rows: tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]]
) -> None:
    view, keys, mask = rows
    bot, action = make_game("showdown").bot(name), np.zeros(len(view), np.int32)
    bot(view, 1, keys, action, 0, len(view))
    assert mask[np.arange(len(view)), action].all()
    some = np.arange(0, len(view), 3)
    alone = np.zeros(len(some), np.int32)
    bot(view[some], 1, keys.take(some), alone, 0, len(some))
    assert (alone == action[some]).all()


def test_the_power_bot_takes_the_strongest_open_move(
    rows: tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]],
) -> None:
    view, keys, mask = rows
    action = np.zeros(len(view), np.int32)
    make_game("showdown").bot("power")(view, 1, keys, action, 0, len(view))
    move = load_schema().groups["move"]
    for i in range(len(view)):
        seen = view[i].tobytes()
        power = [int.from_bytes(seen[move.byte("power", m) :][:2], "little") * mask[i, m] for m in range(4)]
        if max(power) > 0:
            assert power[action[i]] == max(power)


def test_the_heuristic_beats_random_play() -> None:
    game = make_game("showdown", {"max_turns": 200})
    with Team(2) as team:
        agent, other = bot_player(game, "heuristic", team), bot_player(game, "random", team)
        result = evaluate(game, agent, [other], 24, 3, team)
    assert result.games == 24
    assert result.figures["win_rate"] > 0.75


def test_a_run_trains_resumes_and_keeps_its_layout(tmp_path: Path) -> None:
    settings = ["game.max_turns=10", "tables=8", "ppo.horizon=64", "ppo.minibatch=32", "net.hidden=[8]", "threads=1"]
    run = RunFolder(tmp_path / "run")

    def config(steps: int):  # type: ignore[no-untyped-def]
        return load_config("showdown", None, settings, entry("showdown").defaults, {"steps": steps})

    first = train_run(config(128), run, lambda _: True)
    assert first.steps >= 128
    last = train_run(config(320), run, lambda _: True)
    assert last.steps >= 320
    assert last.updates > first.updates
    parts = [value for name, value in last.game.items() if name.startswith("reward_")]
    assert len(parts) == 5
    assert last.pool["starts"] == last.process_starts
    assert last.pool["bytes_per_decision"] > 1000
    assert run.last_record("events.jsonl")["pool"] == last.pool
    with pytest.raises(GameError, match="laid out by"):
        make_game("showdown", {"layout": "another"})
    newest = find_checkpoint(run.path, None)
    meta = json.loads((newest / "checkpoint.json").read_text())
    meta["config"]["game"]["layout"] = "another"
    (newest / "checkpoint.json").write_text(json.dumps(meta))
    sentence = "learned from views laid out by schema another, and this Maple lays them out by"
    with pytest.raises(CheckpointError, match=sentence):
        load_agent(run.path)
    with pytest.raises(CheckpointError, match=sentence):
        train_run(config(128), RunFolder(tmp_path / "heir"), lambda _: True, start_from=newest)
    with pytest.raises(CheckpointError, match=sentence):
        train_run(config(400), run, lambda _: True)


@pytest.mark.parametrize("policy", ["index", "options"])
def test_battles_are_remembered_and_attended_to(policy: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    settings = ["game.max_turns=10", "tables=8", "ppo.horizon=64", "ppo.minibatch=32", "net.hidden=[8]", "threads=1"]
    settings += ["net.core=gru", "net.core_width=8", "net.attention=true", "net.attention_width=8"]
    settings += ["net.attention_heads=2", f"ppo.policy={policy}"]
    run = RunFolder(tmp_path / "run")
    config = load_config("showdown", None, settings, entry("showdown").defaults, {"steps": 192})
    last = train_run(config, run, lambda _: True)
    assert last.steps >= 192
    assert last.updates >= 3
    newest = load_checkpoint(find_checkpoint(run.path, None))
    assert newest.state["recall/state"].any()
    agent = load_agent(run.path)
    assert isinstance(agent.policy, SequencePolicy | OptionSequencePolicy)
    written = export_onnx(agent, tmp_path / "net.onnx")
    assert "state" in written.inputs
    assert "next_state" in written.outputs
    assert written.largest_difference < 1e-4


def test_an_option_is_its_decision_and_its_part(rows: tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]]) -> None:
    game, (view, _, mask) = make_game("showdown"), rows
    spec = game.spec.options
    assert spec is not None
    count = np.zeros(len(view), np.int64)
    game.count_options(view, count, 0, len(view))
    assert (count == mask.sum(axis=1)).all()
    options = Options.allocate(spec, len(view), int(count.sum()))
    np.cumsum(count, out=options.offset[1:])
    game.describe(view, options, 0, len(view))
    state, length = np.zeros((len(view), spec.state_width), np.int16), np.zeros(len(view), np.int16)
    for i in range(0, len(view), 5):
        mine = slice(options.offset[i], options.offset[i + 1])
        assert options.action[mine].tolist() == np.flatnonzero(mask[i]).tolist()
        shared = options.shared[i, : options.shared_length[i]].tolist()
        assert max(shared) < spec.features
        for action, place in zip(options.action[mine], options.option_part[mine, 0], strict=True):
            part = options.part[place, : options.part_length[place]].tolist()
            game.describe_choice(view[i : i + 1], np.array([action], np.int16), state, length, 0, 1)
            assert state[0, : length[0]].tolist() == shared + part
            assert max(part) < spec.features
    game.describe_state(view, state, length, 0, len(view))
    assert (length == options.shared_length).all()


def test_features_name_what_is_in_the_view(rows: tuple[NDArray[np.uint64], Keys, NDArray[np.bool_]]) -> None:
    game, (view, _, mask) = make_game("showdown"), rows
    groups = load_schema().groups
    spec = game.spec.options
    assert spec is not None
    feature, length = np.zeros((1, spec.state_width), np.int16), np.zeros(1, np.int16)
    for i in range(0, len(view), 9):
        seen = view[i].tobytes()
        first = int(np.flatnonzero(mask[i])[0])
        game.describe_choice(view[i : i + 1], np.array([first], np.int16), feature, length, 0, 1)
        found = feature[0, : length[0]].tolist()
        lead = int.from_bytes(seen[groups["pokemon"].byte("species") :][:2], "little")
        active = seen[groups["pokemon"].byte("flags")] & 2
        assert (lead if active else lead + around.ROLE) in found
        if first < 4:
            move = int.from_bytes(seen[groups["move"].byte("move", first) :][:2], "little")
            assert described._MOVE + move in found
