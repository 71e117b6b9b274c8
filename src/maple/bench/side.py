"""One side of a comparison: a process that trains when it is told to and stands still otherwise.

Requests and answers are JSON, a line each, on stdin and stdout. Between requests it sleeps in a read; when the other
end closes, it ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from maple.core.config import Config
from maple.core.errors import ConfigError, MapleError, UserError

__all__ = ["SideProcess", "main"]


class _Side:
    """What the process holds: one training run at a time."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self._open = ExitStack()  # the run that is under way

    def begin(self, config: dict[str, Any]) -> dict[str, Any]:
        """A run from its start."""
        from maple.bench.train import MapleSide
        from maple.games import make_game

        self.close()
        self.config = Config.model_validate(config)
        self.game = make_game(self.config.name, self.config.game)
        self.side = self._open.enter_context(MapleSide(self.config, bounded=True))
        return {"threads": self.side.team.threads, "tables": self.side.trainer.arena.tables}

    def warm(self, config: dict[str, Any]) -> dict[str, Any]:
        """Load every kernel, so that no slice pays for it."""
        from maple.training.warming import warm_up

        return {"seconds": warm_up(Config.model_validate(config))}

    def train(self, seconds: float) -> dict[str, Any]:
        """Whole updates until `seconds` have passed or the budget is spent."""
        trainer = self.side.trainer
        before, began = trainer.counters.steps, time.perf_counter()
        if trainer.progress() < 1.0:
            self.side.slice(seconds)
        wall = time.perf_counter() - began
        counters = trainer.counters
        return {
            "steps": counters.steps - before,
            "wall_s": wall,
            "elapsed_s": counters.elapsed_s,
            "total_steps": counters.steps,
            "done": trainer.progress() >= 1.0,
        }

    def look(self, against: str, hands: int, seed: int) -> dict[str, Any]:
        """Play a few hands; its time is not the training's."""
        from maple.arena.choose import evaluation_arena
        from maple.training.evaluate import bot_player, evaluate, greedy_player

        team, seats = self.side.team, self.game.spec.seats
        others = [bot_player(self.game, against, team)] * (seats - 1)
        player = greedy_player(self.side.trainer.learner.policy)
        envs = partial(evaluation_arena, limits=self.config.workers)
        return {"figures": evaluate(self.game, player, others, hands, seed, team, envs=envs).figures}

    def save(self, folder: str) -> dict[str, Any]:
        """The network as a checkpoint that load_agent() takes."""
        from maple.training.checkpoint import save_checkpoint
        from maple.training.learners import weights_of

        trainer = self.side.trainer
        meta = {"game": self.config.name, "config": self.config.model_dump()}
        steps = trainer.counters.steps
        path = save_checkpoint(Path(folder), steps, meta, weights_of(trainer.learner.policy), {})
        return {"path": str(path)}

    def close(self) -> None:
        """End the run's threads and processes."""
        self._open.close()


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    sys.stdout, side = sys.stderr, _Side()
    can: dict[str, Callable[..., dict[str, Any]]] = {"warm": side.warm, "begin": side.begin, "save": side.save}
    can |= {"train": side.train, "look": side.look}
    with closing(side):
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = can[request.pop("do")](**request)
            except MapleError as error:
                answer = {"error": str(error), "mistake": isinstance(error, UserError)}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


class SideProcess:
    """The other end: starts a side and asks it."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = [sys.executable, "-m", "maple.bench.side"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> SideProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.close()
        if error is not None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Have it do something, wait for the answer; from then on it stands still."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **values}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            raise MapleError(f"the process of the {self.name} ended with code {code}; its last words are above")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            refused = f"the {self.name} cannot be trained: {answer['error']}"
            raise ConfigError(refused) if answer["mistake"] else MapleError(refused)
        return answer


if __name__ == "__main__":
    main()
