from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from maple.adapters import aec_env, gym_env
from maple.core.errors import ActionError
from maple.core.sources import load_config
from maple.core.threads import Team
from maple.games import make_game
from maple.nets.seen import Seen
from maple.training.agent import Agent
from maple.training.learners import make_policy

KINDS = {
    "afterstate": ["algo=afterstate"],
    "ppo over options": ["algo=ppo", "ppo.policy=options"],
    "ppo over indices": ["algo=ppo", "ppo.policy=index"],
    "dqn over options": ["algo=dqn", "dqn.policy=options"],
    "dqn over indices": ["algo=dqn", "dqn.policy=index"],
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """An agent that has learnt nothing yet."""
    config = load_config("ofc", settings=request.param)
    game = make_game("ofc")
    with Team(1) as team:
        policy = make_policy(config, Seen(game, team), torch.device("cpu"))
        yield Agent(policy.requires_grad_(False), game, config, steps=0)


def test_plays_the_aec_env(agent: Agent) -> None:
    env = aec_env("ofc", seed=2)
    for _ in range(3):
        env.reset()
        for seat in env.agent_iter():
            seen, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            action = agent.act(env.observe(seat))
            assert isinstance(action, int)
            assert seen["action_mask"][action] == 1
            env.step(action)


def test_answers_many_observations_at_once(agent: Agent) -> None:
    seen: list[dict[str, Any]] = []
    env = aec_env("ofc")
    for seed in range(8):
        env.reset(seed=seed)
        seen.append(env.observe(env.agent_selection))
    actions = agent.act(seen)
    assert isinstance(actions, np.ndarray)
    assert actions.shape == (8,)
    assert all(row["action_mask"][action] for row, action in zip(seen, actions, strict=True))


def test_is_an_opponent_of_the_gym_env(agent: Agent) -> None:
    env = gym_env("ofc", opponents=[agent, "random"], seed=2)
    for _ in range(3):
        _, info = env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(info["action_mask"].argmax())
            over = terminated or truncated
        assert info["figures"]["length"] % 5 == 0


def test_a_seat_out_of_turn_has_nothing_to_decide(agent: Agent) -> None:
    env = aec_env("ofc", seed=2)
    env.reset()
    waiting = next(seat for seat in env.agents if seat != env.agent_selection)
    with pytest.raises(ActionError, match="seat in turn"):
        agent.act(env.observe(waiting))
    with pytest.raises(ActionError, match="plays from 'view', 12 words"):
        agent.act({"observation": np.zeros(644, np.uint8)})
