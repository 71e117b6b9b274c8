"""A run from its start, or from where it stopped, to its end."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from maple.arena.choose import evaluation_arena
from maple.core.config import Config
from maple.core.errors import CheckpointError, GameError
from maple.core.threads import Team
from maple.games import make_game
from maple.games.settled import files_of_run, settled
from maple.learn.replay import Replay
from maple.perf.spans import span
from maple.runs.machine import describe_machine
from maple.runs.outages import Outages
from maple.runs.own_files import OwnFiles
from maple.runs.records import Recorder, tensorboard_is_there
from maple.runs.store import RunFolder
from maple.training.build import build_trainer, checkpoint_rivals, keeps_anomalies, restore_trainer
from maple.training.checkpoint import Checkpoint, latest_checkpoint
from maple.training.evaluate import Player, bot_player, evaluate, greedy_player
from maple.training.keeper import Keeper
from maple.training.learners import load_weights
from maple.training.loop import Counters, HurriedError, Trainer, Update
from maple.training.resuming import check_room, load_donor, resume_point

__all__ = ["RECENT_S", "Progress", "Window", "train_run"]

RECENT_S = 10.0
SLOW_UPDATE_S = 5.0  # about as long as a stop waits
SAVING_APART = 20.0  # times what saving takes: so much of the time at least is left for training
PROBE_SEED = 2**40 + 1  # deals that no training run plays
SLOW_LOOK_S = 1.0  # looks at the strength that take longer are LOOKS_APART times as long apart
LOOKS_APART = 20.0
LONGEST_LOOK_S = 30.0  # one that takes longer, and longer than the time between two, is left
LOOK_WORKERS = 2  # at most, for envs of the user's own: they are there beside those that train


@dataclass(frozen=True, slots=True)
class Progress:
    """What a user is shown after an update."""

    steps: int
    updates: int
    minibatches: int
    games: int  # without the lost ones
    lost: int  # games, with their env or process
    worker_deaths: int  # processes that play, in this process's share of the run
    process_starts: int
    elapsed_s: float
    eta_s: float
    progress: float
    steps_per_s: float  # of the last seconds, by this process
    cpu_use: float  # work of this process over wall-clock × cores, since it began
    figures: dict[str, float]  # the learner's
    game: dict[str, float]  # the game's own, of the learner's games in the last seconds
    probe: dict[str, float]  # the same against the probe's opponents, as of the last probe; empty before the first
    pool: dict[str, float]  # of games in another program: its processes, frames, bytes, refusals and anomalies
    before: dict[str, int]  # steps, updates and games from before this process went on with the run


class _TooLongError(Exception):
    """A look at the strength would take too much of the run's time."""


class Window:
    """Figures of the last seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._marks: list[tuple[float, int, np.ndarray, np.ndarray]] = []

    def add(self, steps: int, games: np.ndarray, seats: np.ndarray) -> None:
        now = self._clock()
        self._marks.append((now, steps, games, seats))
        while len(self._marks) > 2 and now - self._marks[1][0] > RECENT_S:
            self._marks.pop(0)

    def speed(self) -> float:
        """Steps a second between the oldest and the newest mark."""
        if not self._marks:
            return 0.0
        first, last = self._marks[0], self._marks[-1]
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0

    def games(self) -> tuple[np.ndarray, np.ndarray]:
        """The games that ended in the window and the learner's seats."""
        return np.concatenate([mark[2] for mark in self._marks]), np.concatenate([mark[3] for mark in self._marks])


def train_run(
    config: Config,
    run: RunFolder,
    tell: Callable[[Progress], bool],
    *,
    start_from: Path | None = None,
    saved: Callable[[Path], None] = lambda _: None,
    warn: Callable[[str], None] = warnings.warn,
    note: Callable[[str], None] = lambda _: None,
    hurry: Callable[[], bool] = lambda: False,
    held: bool = False,
) -> Progress:
    """Train until the budget is spent or `tell` answers False; what was reached is saved. Returns the last progress.

    A new run begins with the weights of the checkpoint `start_from`, if given; `saved` is told of every checkpoint,
    `note` what was chosen for the run. Once `hurry` answers True, as it may while `tell` answers False, the play under
    way is left at once, and the progress is that of the last checkpoint. `held`: the caller has the run's lock.
    """
    with ExitStack() as held_open:
        with span("build"):
            config = settled(config)
            if not held:
                held_open.enter_context(run.locked())
            config, checkpoint = resume_point(config, run, warn)
            game = check_room(config, goes_on=checkpoint is not None)
            donor = load_donor(start_from, config.name) if start_from and checkpoint is None else None
            OwnFiles(run.path).keep(files_of_run(config))
            run.write_json("config.json", config.model_dump())
            run.write_json("machine.json", describe_machine() | {"seed": config.seed})
            torch.set_num_threads(1)
            team = held_open.enter_context(Team(config.threads or 1))
            rivals = checkpoint_rivals(checkpoint.state) if checkpoint is not None else None
            trainer = build_trainer(config, game, team, run.log, run.path, warn, rivals, note)
            held_open.enter_context(closing(trainer.arena))
            held_open.enter_context(closing(trainer.learner))
            if donor is not None:
                _adopt(trainer, donor, start_from)
            if checkpoint is not None:
                _restore(trainer, checkpoint, warn)
            recorder = held_open.enter_context(closing(_recorder(config, run, trainer, warn)))
            session = _Session(config, run, trainer, tell, saved, recorder, warn)
        return session.go(hurry)


def _restore(trainer: Trainer, checkpoint: Checkpoint, warn: Callable[[str], None]) -> None:
    """Go on where the checkpoint was made."""
    restore_trainer(trainer, checkpoint.weights, checkpoint.state)
    trainer.counters = Counters(**checkpoint.meta["counters"])
    if isinstance(trainer.learner.memory, Replay) and trainer.learner.memory.count == 0:
        warn("this run's replay was not saved (dqn.save_replay is off): it is filled anew")


def _recorder(config: Config, run: RunFolder, trainer: Trainer, warn: Callable[[str], None]) -> Recorder:
    log, first = config.log, trainer.counters.steps
    wanted = log.enabled and log.file
    tensorboard = wanted and (tensorboard_is_there() if log.tensorboard is None else log.tensorboard)
    return Recorder(run.path, first, as_csv=wanted and log.csv, tensorboard=tensorboard, warn=warn)


def _adopt(trainer: Trainer, donor: Checkpoint, path: Path | None) -> None:
    try:
        load_weights(trainer.learner.policy, donor.weights)
    except RuntimeError:
        raise CheckpointError(
            f"the weights in {path} are of another network or way to learn; give this run the settings of that one"
        ) from None


class _Session:
    """This process's share of a run."""

    def __init__(
        self,
        config: Config,
        run: RunFolder,
        trainer: Trainer,
        tell: Callable[[Progress], bool],
        saved: Callable[[Path], None],
        recorder: Recorder,
        warn: Callable[[str], None],
    ) -> None:
        self.config, self.run, self.trainer, self.tell = config, run, trainer, tell
        self.recorder, self.outages, self.warn = recorder, Outages(warn), warn
        self.game = make_game(config.name, config.game)
        self.window = Window(time.monotonic)
        self.keeper = Keeper(run.checkpoints, config, trainer, files_of_run(config), saved)
        self.began = self.saved = time.monotonic()
        self.cpu = self._worked_s()
        counters = trainer.counters
        self.before = {"steps": counters.steps, "updates": counters.updates, "games": counters.games}
        self.probed, self.probe = self.began, dict[str, float]()
        self.looking_s, self.said = 0.0, False
        self.saving_s = 0.0
        self.last = self.kept = self._progress(trainer.progress(), {}, {})

    def go(self, hurry: Callable[[], bool]) -> Progress:
        none = np.zeros(0, self.game.spec.figures), np.zeros(0, np.int64)
        self.window.add(self.trainer.counters.steps, *none)
        self.trainer.stopping = lambda: not self.tell(self.last)
        self.trainer.hurry = hurry
        if not self.trainer.run(self._after_update):
            return self.kept
        if self.trainer.counters.steps > self.keeper.saved_steps or latest_checkpoint(self.run.checkpoints) is None:
            with span("checkpoint"):
                self.keeper.save()
        return self.last

    def _after_update(self, update: Update) -> bool:
        with span("log"):
            self._log(update)
        if self._save_is_due(update.act_s + update.learn_s):
            self._save()
        if self._look_is_due():
            self._probe()
        with span("log"):
            return self.tell(self.last)

    def _save_is_due(self, update_s: float) -> bool:
        """After a while, and after every update that takes so long that a stop in the next one cannot wait for it."""
        since = time.monotonic() - self.saved
        slow = update_s >= SLOW_UPDATE_S and since >= SAVING_APART * self.saving_s
        return slow or since >= self.config.checkpoint_every_s

    def _save(self) -> None:
        began = time.monotonic()
        with span("checkpoint"):
            if self.outages.attempt("checkpoints", self.keeper.save):
                self.kept = self.last
        self.saved = time.monotonic()
        self.saving_s = self.saved - began

    def _log(self, update: Update) -> None:
        self.window.add(update.counters.steps, update.games, update.seats)
        games, seats = self.window.games()
        self.last = self._progress(update.progress, update.figures, self.game.summarize(games, seats))
        record = {**asdict(self.last), "act_s": update.act_s, "learn_s": update.learn_s}
        log = self.config.log
        due = update.counters.updates % log.every == 0 or update.progress >= 1.0
        if log.enabled and log.file and due:
            event = {"event": "update", **record}
            self.outages.attempt("events.jsonl", partial(self.run.append, "events.jsonl", event))
            self.recorder.add(self.last.steps, record)
        if log.enabled and log.rewards:
            rows = self._rewards(update)
            self.outages.attempt("rewards.jsonl", partial(self.run.extend, "rewards.jsonl", rows))

    def _rewards(self, update: Update) -> Iterator[dict[str, float]]:
        """What the learner earned in each game that ended, and what that is made of."""
        for number, seat in enumerate(update.seats.tolist()):
            one = slice(number, number + 1)
            figures = self.game.summarize(update.games[one], update.seats[one])
            parts = {name: value for name, value in figures.items() if name.startswith("reward_")}
            yield {"steps": update.counters.steps, "seat": seat, "reward": sum(parts.values()), **parts}

    def _progress(self, progress: float, figures: dict[str, float], game: dict[str, float]) -> Progress:
        counters = self.trainer.counters
        wall = time.monotonic() - self.began
        left = (1 - progress) / progress * counters.elapsed_s if progress > 0 else 0.0
        deaths, starts = self.trainer.processes
        return Progress(
            steps=counters.steps,
            updates=counters.updates,
            minibatches=counters.minibatches,
            games=counters.games,
            lost=counters.lost,
            worker_deaths=deaths,
            process_starts=starts,
            elapsed_s=counters.elapsed_s,
            eta_s=left,
            progress=progress,
            steps_per_s=self.window.speed() if progress else 0.0,
            cpu_use=(self._worked_s() - self.cpu) / (wall * (self.config.threads or 1)) if wall > 0 else 0.0,
            figures=figures,
            game=game,
            probe=self.probe,
            pool=self.trainer.pool,
            before=self.before,
        )

    def _worked_s(self) -> float:
        """Processor time of this process so far, less what its threads spent watching for each other."""
        return time.process_time() - self.trainer.actor.team.watched_s

    def _look_is_due(self) -> bool:
        """As often as asked for, but where looks are slow so seldom that training has nearly all of the time."""
        apart = self.config.probe_every_s
        if self.looking_s > SLOW_LOOK_S:
            apart = max(apart, LOOKS_APART * self.looking_s)
        return self.config.probe_every_s > 0 and time.monotonic() - self.probed >= apart

    def _probe(self) -> None:
        """A quick look at the strength; it changes nothing in training, and its time counts as the run's."""
        began = time.monotonic()
        other = bot_player(self.game, self.config.probe_against, self.trainer.actor.team)
        try:
            with span("evaluate"), suppress(HurriedError):
                self._look(other, began)
        except _TooLongError:
            self._say_once(f"takes more than {self._longest_look_s:g} s and is left; try fewer games, probe_hands")
        except GameError as error:  # of an env: the games that are learned from have a say of their own
            self._say_once(f"failed: {error}")
        self.probed = time.monotonic()
        self.looking_s = self.probed - began

    @property
    def _longest_look_s(self) -> float:
        return max(LONGEST_LOOK_S, self.config.probe_every_s)

    def _say_once(self, what: str) -> None:
        if not self.said:
            self.warn(f"a look at the strength {what}; training goes on")
        self.said = True

    def _look(self, other: Player, began: float) -> None:
        team, limits = self.trainer.actor.team, self.config.workers
        others = [other] * (self.game.spec.seats - 1)
        agent = greedy_player(self.trainer.learner.policy)
        count = LOOK_WORKERS if limits.count == "auto" else min(limits.count, LOOK_WORKERS)
        few = limits.model_copy(update={"count": count, "spares": 0})
        envs = partial(evaluation_arena, limits=few, log=self.run.log, keep=keeps_anomalies(self.run, self.outages))

        def played(_done: int, _all: int) -> None:
            self.trainer.check_time()
            if time.monotonic() - began > self._longest_look_s:
                raise _TooLongError

        found = evaluate(self.game, agent, others, self.config.probe_hands, PROBE_SEED, team, played, envs)
        self.probe = found.figures
        result = self.probe[self.game.spec.metric.name]
        self.outages.attempt("the best agent", partial(self.keeper.offer, result))
