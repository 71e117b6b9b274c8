"""One environment at one table: plays actions, writes what each seat sees into its row.

A seat's reward is what it earned since it last acted. A truncated seat's own last observation goes to `last_view`, for
bootstrapping, and with it the mask of what it could have done next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from maple.core.step import Outcome
from maple.games.external.plan import Plan
from maple.games.external.spaces import (
    FAILURES,
    MASK,
    ContractError,
    NothingOpenError,
    actions_of,
    bind,
    bind_mask,
    opened,
    reward_of,
    shape_of,
)

__all__ = ["Place", "SeveralSeats", "SingleTable", "Table", "open_table"]

_PLAYING, _TERMINATED, _TRUNCATED = int(Outcome.PLAYING), int(Outcome.TERMINATED), int(Outcome.TRUNCATED)


@dataclass(frozen=True, slots=True)
class Place:
    """A table's rows, a seat each."""

    view: NDArray[np.uint64]  # (S, V) what a waiting seat sees
    waiting: NDArray[np.bool_]  # (S,) who has to act
    reward: NDArray[np.float32]  # (S,) since that seat last acted
    last_view: NDArray[np.uint64]  # (S, V) of the game that ended: what a truncated seat saw last, else zeros
    last_reward: NDArray[np.float32]  # (S,) of the game that ended: what came after each seat's last decision


class Table(Protocol):
    """A table that plays one game after another."""

    score: list[float]  # what each seat earned in the game so far
    length: int  # steps of the env in the game so far

    def begin(self, seed: int) -> None:
        """Start a game. Writes view, waiting, reward."""

    def close(self) -> None:
        """Close the env."""


class SeveralSeats(Table, Protocol):
    """A table of an env with several seats."""

    def play(self, action: list[int]) -> int:
        """Play the waiting seats' actions; returns an Outcome. Writes the place."""


class _Seat:
    """Writes what one seat sees, now and when it was cut off."""

    def __init__(self, plan: Plan, place: Place, seat: int, observed: Any, acted: Any) -> None:
        actions = actions_of(acted, plan.name)
        self.choices = actions.choices
        self.from_observation = plan.mask_from == "observation"
        self.from_info = plan.mask_from == "info"
        views = (place.view[seat], place.last_view[seat])
        self.observe, self.observe_last = (self._writer(plan, seat, observed, view) for view in views)
        mask, last_mask = (plan.layout.mask_of(view) for view in views)
        if plan.layout.masked:
            mask[:] = False
            mask[: actions.count] = True
        self.write_mask = bind_mask(actions, mask) if plan.mask_from != "nowhere" else None
        self._write_last_mask = bind_mask(actions, last_mask) if plan.mask_from != "nowhere" else None
        self._last_mask = last_mask[: actions.count] if plan.layout.masked else None
        self._last_numbers = None if plan.layout.is_bytes else plan.layout.observation_of(views[1])
        self._last_flag = plan.layout.flag_of(place.last_view)[seat : seat + 1]
        plan.layout.flag_of(place.view)[seat] = 1

    @staticmethod
    def _writer(plan: Plan, seat: int, observed: Any, view: NDArray[np.uint64]) -> Callable[[Any], None]:
        row = plan.layout.observation_of(view)
        row[:] = 0
        if plan.seats == 1:
            return bind(observed, row)
        row[len(row) - plan.seats + seat] = 1  # all seats share a policy, which has to know whom it plays
        return bind(observed, row[: shape_of(observed, plan.name).width])

    def see(self, observation: Any, info: Any) -> None:
        """Write a decision."""
        self.observe(observation)
        if self.from_observation:
            self.write_mask(observation[MASK])  # type: ignore[misc]
        elif self.from_info:
            try:
                mask = info[MASK]
            except KeyError:
                raise ContractError(f"gave an info without {MASK!r}, which it gave at its first reset") from None
            self.write_mask(mask)  # type: ignore[misc]

    def see_last(self, observation: Any, info: Any, masks: Callable[[], Any] | None = None) -> None:
        """Write what the seat saw when it was cut off, and what it could have done then: all, if the env says nothing.

        No action will be taken there, but what comes next is worth as much as the best of the open ones.
        """
        self.observe_last(observation)
        if self._last_numbers is not None and not np.isfinite(self._last_numbers).all():
            raise ContractError("gave an observation that is not finite")
        if self._last_mask is not None and not self._saw_last_mask(observation, info, masks):
            self._last_mask[:] = True
        self._last_flag[0] = 1

    def _saw_last_mask(self, observation: Any, info: Any, masks: Callable[[], Any] | None) -> bool:
        """Write the mask of a game that is over, if there is one; envs may close everything then, or have none."""
        if self._write_last_mask is None:
            return False
        if masks is not None:
            try:
                mask = masks()
            except FAILURES:  # it need not answer any more
                return False
        else:
            found = observation if self.from_observation else info
            mask = found[MASK] if isinstance(found, Mapping) and MASK in found else None
        if mask is None:
            return False
        try:
            self._write_last_mask(mask)
        except NothingOpenError:
            return False
        return True

    def forget_last(self) -> None:
        """Take that back: it was another game."""
        self._last_flag[0] = 0


class SingleTable:
    """A Gymnasium env: one seat, which decides at every step.

    Its step is the hottest code there is for envs, so the host's loop makes it: `step` and `write` are what it needs.
    """

    def __init__(self, env: Any, plan: Plan, place: Place) -> None:
        self._env, self._place = env, place
        self._seat = _Seat(plan, place, 0, env.observation_space, env.action_space)
        self.step: Callable[[Any], tuple[Any, Any, bool, bool, Any]] = self._bind_step()
        self.masks: Callable[[], Any] = dict  # replaced where masks come from a method
        self._last_masks: Callable[[], Any] | None = None
        self.write = self._bind_write(plan)
        self.score, self.length = [0.0], 0
        # rows that can be written many at once: an observation is a row as it is, and a mask too
        self.is_plain = len(env.observation_space.shape or ()) == 1 and isinstance(
            env.observation_space, spaces.Box | spaces.MultiBinary
        )
        self.is_plain &= plan.mask_from == "nowhere" or isinstance(env.action_space, spaces.Discrete)

    def _bind_step(self) -> Callable[[Any], tuple[Any, Any, bool, bool, Any]]:
        step, choices = self._env.step, self._seat.choices
        return step if choices is None else lambda action: step(choices[action])

    def _bind_write(self, plan: Plan) -> Callable[[Any, Any], None]:
        """How a decision is written, by where its mask comes from."""
        observe, write_mask = self._seat.observe, self._seat.write_mask
        if plan.mask_from == "nowhere":
            return lambda observation, _: observe(observation)
        if plan.mask_from != "method":
            return self._seat.see
        self.masks = self._last_masks = self._env.get_wrapper_attr("action_masks")
        assert write_mask is not None

        def write(observation: Any, _: Any) -> None:
            observe(observation)
            write_mask(self.masks())

        return write

    def reset(self, seed: int) -> tuple[Any, Any]:
        """Begin a game; what is seen first, and info."""
        self.score[0], self.length = 0.0, 0
        return opened(self._env.reset(seed=seed))

    def begin(self, seed: int) -> None:
        """Begin a game and write its first row."""
        observation, info = self.reset(seed)
        self._place.waiting[0] = True
        self._place.reward[0] = 0.0
        self.write(observation, info)

    def end(self, reward: float, terminated: bool, observation: Any, info: Any) -> int:
        """Record the last step of a game; returns an Outcome."""
        self._place.last_reward[0] = reward
        if terminated:
            return _TERMINATED
        self._seat.see_last(observation, info, self._last_masks)
        return _TRUNCATED

    def close(self) -> None:
        """Close the env."""
        self._env.close()


class _ManySeats:
    """What tables with several seats share."""

    def __init__(self, env: Any, plan: Plan, place: Place) -> None:
        self._env, self._place = env, place
        self._number = {agent: seat for seat, agent in enumerate(plan.agents)}
        self._seats = [
            _Seat(plan, place, seat, env.observation_space(agent), env.action_space(agent))
            for agent, seat in self._number.items()
        ]
        self.score, self.length = [0.0] * plan.seats, 0
        self._cut: set[int] = set()  # the seats that were cut off in this game

    def _seat_of(self, agent: Any) -> int:
        try:
            return self._number[agent]
        except KeyError:
            raise ContractError(f"has an agent {agent!r} that is not among its possible_agents") from None

    def _clear(self) -> None:
        self.score[:], self.length = [0.0] * len(self.score), 0
        self._cut.clear()
        self._place.waiting[:] = False
        self._place.last_reward[:] = 0.0

    def _choice(self, seat: int, action: Any) -> Any:
        choices = self._seats[seat].choices
        return action[seat] if choices is None else choices[action[seat]]

    def _wait_for(self, seat: int, observation: Any, info: Any, earned: Any) -> None:
        """Hand out a decision."""
        reward = reward_of(earned)
        self._seats[seat].see(observation, info)
        self._place.waiting[seat] = True
        self._place.reward[seat] = reward
        self.score[seat] += reward

    def _retire(self, seat: int, observation: Any, info: Any, earned: Any, cut: bool) -> None:
        """A seat's game is over, though others may play on; what it earned is told when the whole game ends."""
        reward = reward_of(earned)
        self._place.last_reward[seat] += reward
        self.score[seat] += reward
        if cut:
            self._seats[seat].see_last(observation, info)
            self._cut.add(seat)

    def _ended(self) -> int:
        for number, seat in enumerate(self._seats):
            if number not in self._cut:
                seat.forget_last()
        return _TRUNCATED if self._cut else _TERMINATED

    def close(self) -> None:
        """Close the env."""
        self._env.close()


class _AecTable(_ManySeats):
    """A PettingZoo AEC env: the seats act one after the other."""

    def begin(self, seed: int) -> None:
        """Reset with this seed."""
        self._clear()
        self._env.reset(seed=seed)
        if self._turn() != _PLAYING:
            raise ContractError("ended its game before anybody acted")

    def play(self, action: Any) -> int:
        """The action of the seat in turn."""
        seat = self._seat_of(self._env.agent_selection)
        self._place.waiting[seat] = False
        self._env.step(self._choice(seat, action))
        self.length += 1
        return self._turn()

    def _turn(self) -> int:
        """Go on to the next seat that has something to decide."""
        env = self._env
        while env.agents:
            seat = self._seat_of(env.agent_selection)
            observation, reward, terminated, truncated, info = env.last()
            if not (terminated or truncated):
                self._wait_for(seat, observation, info, reward)
                return _PLAYING
            self._retire(seat, observation, info, reward, cut=not terminated)
            env.step(None)
        return self._ended()


class _ParallelTable(_ManySeats):
    """A PettingZoo parallel env: all seats act at once; an agent may come later, and may leave before the others."""

    def begin(self, seed: int) -> None:
        """Reset with this seed."""
        self._clear()
        self._left: set[Any] = set()
        observations, infos = opened(self._env.reset(seed=seed))
        if not self._env.agents:
            raise ContractError("has no agents after reset()")
        for agent in self._env.agents:
            self._wait_for(self._seat_of(agent), observations[agent], infos.get(agent, {}), 0.0)

    def play(self, action: Any) -> int:
        """The actions of all seats in the game."""
        waiting = self._place.waiting
        chosen = {agent: self._choice(seat, action) for agent, seat in self._number.items() if waiting[seat]}
        waiting[:] = False
        found = self._env.step(chosen)
        if not isinstance(found, tuple) or len(found) != 5:
            raise ContractError("did not give observations, rewards, terminations, truncations and infos from step()")
        observations, rewards, terminated, truncated, infos = found
        self.length += 1
        for agent in (*chosen, *(other for other in self._env.agents if other not in chosen)):
            seat, reward = self._seat_of(agent), rewards.get(agent, 0.0)
            over = terminated.get(agent, False) or truncated.get(agent, False)
            if agent in self._left:
                if not over:
                    raise ContractError(f"brought back agent {agent!r}, who had left the game")
            elif over:
                self._left.add(agent)
                cut = not terminated.get(agent, False)
                self._retire(seat, observations[agent], infos.get(agent, {}), reward, cut)
            else:
                self._wait_for(seat, observations[agent], infos.get(agent, {}), reward)
        return _PLAYING if waiting.any() else self._ended()


def open_table(env: Any, plan: Plan, place: Place) -> SingleTable | SeveralSeats:
    """A table for an environment."""
    if plan.kind == "gym":
        return SingleTable(env, plan, place)
    return _AecTable(env, plan, place) if plan.kind == "aec" else _ParallelTable(env, plan, place)
