"""Native games as Gymnasium environments: one seat learns, the others are played inside step()."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from maple.adapters.table import OneTable
from maple.core.errors import ActionError, GameError, nearest
from maple.games import make_game
from maple.games.contract import Bot, Game

__all__ = ["Actor", "NativeGymEnv", "Opponent", "gym_env"]

Observed = dict[str, NDArray[Any]]


@runtime_checkable
class Actor(Protocol):
    """Who plays from an observation, such as a Maple agent."""

    def act(self, observed: Observed, /) -> Any:
        """The action for an observation as `aec_env(...).observe` gives it."""


Opponent = str | Actor | Callable[[Observed], Any]
Move = Callable[[OneTable], None]  # writes table.action
Stepped = tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]


class NativeGymEnv(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One table of a native game, seen from the learner's seat; made by `gym_env`."""

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, game: Game, opponents: Opponent | Sequence[Opponent], seed: int, seat: int | None) -> None:
        spec = game.spec
        if seat is not None and not 0 <= seat < spec.seats:
            raise GameError(f"seat {seat} is not at the table; {spec.name} has seats 0 to {spec.seats - 1}")
        self.observation_space = Box(0, 255, (spec.observation,), np.uint8)
        self.action_space = Discrete(spec.actions)
        self.seat = seat or 0  # the learner's, in this game
        self._fixed_seat = seat
        self._moves = _moves(game, opponents)
        self._seats = spec.seats
        self._table = OneTable(game, seed)
        self._observe = game.observe
        self._observation = np.zeros((1, spec.observation), np.uint8)
        self._mask = np.zeros((1, spec.actions), np.bool_)
        self._legal = np.zeros(spec.actions, np.bool_)  # of the waiting decision; handed out, so never written again
        self._playing = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin the first game of `seed`, or, without one, the next game; up to the learner's first decision."""
        table = self._table
        if seed is not None:
            table.begin(seed)
        elif self._playing:
            table.abandon()
        super().reset(seed=seed)
        self._playing = True
        self._take_seat()
        while not self._play_others():  # a game in which the learner decides nothing is none of its business
            self._take_seat()
        observation, info = self._look()
        info["seat"] = self.seat
        return observation, info

    def step(self, action: Any) -> Stepped:
        """Play the learner's action and then the others', up to the learner's next decision or the end."""
        if not self._playing:
            raise ActionError("no game is being played; call reset() first")
        table = self._table
        table.action[0] = table.legal(action, self._legal)
        if not (table.advance() and self._play_others()):
            return self._end()
        observation, info = self._look()
        return observation, table.reward.item(0), False, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal, as sb3-contrib's MaskablePPO asks for it."""
        return self._legal

    def _take_seat(self) -> None:
        """Sit down for the game at the table.

        The seat moves on with every game and once more after each round: the button also moves with every game, and
        the learner would otherwise keep its distance from it.
        """
        if self._fixed_seat is None:
            game = self._table.game_number
            self.seat = (self._table.seed + game + game // self._seats) % self._seats

    def _play_others(self) -> bool:
        """Play until the learner has to act. False when the game ended first."""
        table, mine, moves = self._table, self.seat, self._moves
        seat = table.keys.seat
        while (who := seat.item()) != mine:
            moves[who - mine](table)  # counted from the learner; negative numbers count from the end, as they should
            if not table.advance():
                return False
        return True

    def _look(self) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """The waiting decision: the learner's observation and what goes with it, in new arrays."""
        self._observe(self._table.view, self._observation, self._mask, 0, 1)
        self._legal = self._mask[0].copy()
        return self._observation[0].copy(), {"action_mask": self._legal}

    def _end(self) -> Stepped:
        """The last reward and the figures; the learner sees its last decision, or the one that a cut left it with."""
        table, cut = self._table, self._table.truncated
        self._playing = False
        observation, self._legal = self._observation[0].copy(), np.zeros_like(self._legal)
        if cut:
            observation, self._legal = table.encode(table.last_view(self.seat))
        info = {"action_mask": self._legal, "seat": self.seat, "figures": table.figures()}
        return observation, table.last_reward(self.seat), not cut, cut, info


def _moves(game: Game, opponents: Opponent | Sequence[Opponent]) -> list[Move]:
    """How each seat plays, counted from the learner, whose own place is never asked."""
    others = game.spec.seats - 1
    several = isinstance(opponents, Sequence) and not isinstance(opponents, str)
    chosen = list(cast(Sequence[Opponent], opponents)) if several else [cast(Opponent, opponents)] * others
    if len(chosen) != others:
        raise GameError(f"{len(chosen)} opponents were given; {game.spec.name} has {others} seats beside the learner's")
    return [_never, *(_move(game, opponent) for opponent in chosen)]


def _never(table: OneTable) -> None:
    raise AssertionError(f"the learner at seat {table.seat} was played as an opponent")


def _move(game: Game, opponent: Opponent) -> Move:
    """How one opponent plays."""
    if isinstance(opponent, str):
        if opponent not in game.spec.opponents:
            raise GameError(f"{game.spec.name} has no opponent {opponent!r}; {nearest(opponent, game.spec.opponents)}")
        return _bot_move(game.bot(opponent))
    act = opponent.act if isinstance(opponent, Actor) else opponent
    if not callable(act):
        raise GameError(f"{opponent!r} is no opponent; give a bot's name, an object with act() or a function")

    def move(table: OneTable) -> None:
        observed = table.observed()
        table.action[0] = table.legal(act(observed), observed["action_mask"])

    return move


def _bot_move(bot: Bot) -> Move:
    def move(table: OneTable) -> None:
        bot(table.view, table.seed, table.keys, table.action, 0, 1)

    return move


def gym_env(
    game_name: str,
    opponents: Opponent | Sequence[Opponent] = "random",
    seed: int = 0,
    *,
    seat: int | None = None,
    **game_options: Any,
) -> NativeGymEnv:
    """A native game as a gymnasium.Env in which one seat learns.

    `opponents` play the other seats: a bot's name, an object with `act(observed)` (a Maple agent), a function of the
    same, or one of these for each seat after the learner's. The learner's seat moves from game to game unless `seat`
    fixes it. `reset(seed=n)` deals the first game of seed n, a bare `reset()` the next game. Give envs that run side
    by side seeds of their own, or they play the same deals.

        env = gym_env("ofc", opponents=["safe", "random"], seed=7)
        observation, info = env.reset()
        observation, reward, terminated, truncated, info = env.step(info["action_mask"].argmax())

        model = MaskablePPO("MlpPolicy", DummyVecEnv([lambda n=n: gym_env("ofc", seed=n) for n in range(8)]))
    """
    return NativeGymEnv(make_game(game_name, game_options), opponents, seed, seat)
