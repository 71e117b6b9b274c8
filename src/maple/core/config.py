"""Settings: one typed, frozen tree, parsed once at the edge.

`core/sources.py` says where settings come from. Every field changes something; a test holds that, and unknown keys are
errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator

from maple.core.errors import ConfigError
from maple.core.mistakes import sentence
from maple.core.section import Section, Width, file_name, plain_url

__all__ = [
    "AUTO_TABLES",
    "ActorConfig",
    "AfterstateConfig",
    "Config",
    "DqnConfig",
    "LeagueConfig",
    "LogConfig",
    "NetConfig",
    "OptimizerConfig",
    "PpoConfig",
    "PracticeConfig",
    "SnapshotConfig",
    "TorchConfig",
    "WorkerConfig",
    "assign",
    "flat",
    "known_keys",
    "validated",
]

AUTO_TABLES = 1024  # where nobody says how many


def _fits(section: Any) -> Any:
    """A minibatch that is larger than what is collected would never be learned from."""
    if section.minibatch > section.horizon:
        raise ValueError(f"minibatch {section.minibatch} is larger than horizon {section.horizon}")
    return section


class NetConfig(Section):
    """The network."""

    hidden: list[Width] = Field([128, 64], min_length=1, description="widths of the hidden layers")
    activation: Literal["relu", "tanh"] = Field("relu", description="of policies over indices")
    core: Literal["none", "lstm", "gru"] = Field("none", description="what remembers a seat's earlier decisions")
    core_width: int = Field(64, ge=1, description="how many numbers the core gives")
    attention: bool = Field(False, description="attend over entities, where the game says what they are")
    attention_width: int = Field(32, ge=1, description="of an entity, a multiple of the heads")
    attention_heads: int = Field(4, ge=1, description="ways of attending, side by side in a block")
    attention_blocks: int = Field(1, ge=1, le=16, description="rounds of attention, one after the other")

    @model_validator(mode="after")
    def _heads_fit(self) -> NetConfig:
        if self.attention_width % self.attention_heads:
            raise ValueError(f"attention_width {self.attention_width} is no multiple of {self.attention_heads} heads")
        return self

    @property
    def plain(self) -> bool:
        """Whether it is dense layers alone, without attention or memory."""
        return self.core == "none" and not self.attention


class OptimizerConfig(Section):
    """Adam and its schedule."""

    learning_rate: float = Field(3e-3, gt=0, description="how far a minibatch moves the weights at first")
    schedule: Literal["linear", "constant"] = Field("linear", description="falls to final_fraction over the budget")
    final_fraction: float = Field(0.02, ge=0, le=1, description="of the learning rate, left at the end")
    eps: float = Field(1e-8, gt=0, description="added to what Adam divides by")


class StudyConfig(Section):
    """Learners that can begin by copying somebody who plays in their place."""

    study: str | None = Field(None, description="an opponent in the box that is copied first; none if not set")
    study_steps: int = Field(300_000, ge=1, description="decisions of that opponent that are copied")
    study_share: float = Field(0.0, ge=0, le=0.9, description="share of the tables where it is copied ever after")


class PpoConfig(StudyConfig):
    """Proximal policy optimisation."""

    policy: Literal["options", "index"] = Field("options", description="described options, or plain indices and a mask")
    horizon: int = Field(16384, ge=16, description="decisions between updates")
    epochs: int = Field(2, ge=1, le=64, description="times that what was played is gone through")
    minibatch: int = Field(2048, ge=2, description="decisions that the weights are moved by at once")
    study_minibatch: int | None = Field(
        None, ge=2, description="a smaller one while all that was played is copied; minibatch if not set"
    )
    gamma: float = Field(1.0, gt=0, le=1, description="worth of a reward a decision later")
    lam: float = Field(0.95, ge=0, le=1, description="λ of advantages: 1 trusts what came, 0 the value")
    clip: float = Field(0.2, gt=0, description="how far a choice may become likelier or less so in an update")
    entropy: float = Field(0.01, ge=0, description="weight of staying undecided, at first")
    entropy_final: float = Field(0.0, ge=0, description="what the entropy weight falls to over the budget")
    value_weight: float = Field(0.5, ge=0, description="weight of the value's loss beside the policy's")
    max_grad_norm: float = Field(0.5, gt=0, description="longer gradients are shortened to this")
    normalize_advantage: bool = Field(True, description="give those of a minibatch mean 0 and spread 1")
    clip_value: float = Field(0.0, ge=0, description="0 for no clipping of the value")
    target_kl: float = Field(0.0, ge=0, description="stop an update beyond 1.5 times this; 0 for never")
    segment: int = Field(16, ge=1, description="decisions that gradients flow through, where the network remembers")
    burn_in: int = Field(0, ge=0, description="decisions before a segment that are gone through again for its state")
    augment: bool = Field(
        False, description="learn from an equivalent decision (suits renamed) instead of the one played"
    )
    _fits = model_validator(mode="after")(_fits)


class AfterstateConfig(Section):
    """After-state values from TD(λ)."""

    horizon: int = Field(15360, ge=16, description="decisions between updates")
    epochs: int = Field(1, ge=1, le=64, description="times that what was played is gone through")
    minibatch: int = Field(2048, ge=2, description="decisions that the weights are moved by at once")
    gamma: float = Field(1.0, gt=0, le=1, description="worth of a reward a decision later")
    lam: float = Field(0.7, ge=0, le=1, description="λ of returns: 1 trusts what came, 0 the value")
    epsilon: float = Field(0.1, ge=0, le=1, description="share of decisions that explore")
    temperature: float = Field(0.1, gt=0, description="of the softmax that exploration draws from, in rewards")
    caution: float = Field(2.5, ge=0, description="how much reward a player gives to avoid the game's risk (a foul)")
    _fits = model_validator(mode="after")(_fits)


class DqnConfig(StudyConfig):
    """Q-learning from replay: double, dueling, n-step, prioritized."""

    policy: Literal["options", "index"] = Field("options", description="described options, or plain indices and a mask")
    horizon: int = Field(8192, ge=1, description="decisions between two reports; learning goes on in between")
    train_every: int | None = Field(
        None, ge=1, description="decisions between two rounds of learning; one for each table if not set"
    )
    updates_per_step: int = Field(8, ge=1, le=100_000, description="updates, a minibatch each, in a round of learning")
    minibatch: int = Field(256, ge=2, description="decisions that the weights are moved by at once")
    draw_ahead: int = Field(
        4, ge=1, description="minibatches drawn together; priorities are at most 2 × this - 1 updates old"
    )
    prefetch: bool | None = Field(
        None, description="draw in a thread of its own; where a core or a GPU is free for it, if not set"
    )
    capacity: int = Field(262_144, ge=16, description="decisions that are remembered")
    replay: Literal["memory", "file"] = Field(
        "memory", description="where views and memories are kept: a file may exceed memory"
    )
    save_replay: bool | None = Field(
        None, description="in checkpoints: unless it is kept in a file, if not set; else a resumed run fills it anew"
    )
    warmup: int = Field(2000, ge=0, description="decisions before the first update")
    n_step: int = Field(3, ge=1, le=64, description="own decisions that are added up before the estimate")
    segment: int = Field(16, ge=1, description="decisions that are drawn together, where the network remembers")
    burn_in: int = Field(8, ge=0, description="decisions before a segment that are gone through again for its state")
    gamma: float = Field(0.99, gt=0, le=1, description="worth of a reward a decision later")
    double: bool = Field(True, description="the network picks the best next action, its target judges it")
    dueling: bool = Field(True, description="a value of the decision beside the advantages of its actions")
    prioritized: bool = Field(True, description="draw what surprised most, rather than all alike")
    alpha: float = Field(0.6, ge=0, le=1, description="how much priorities matter")
    beta: float = Field(0.4, ge=0, le=1, description="how much importance weights undo at first; 1 at the end")
    tau: float = Field(0.005, gt=0, le=1, description="how far the target moves; 1 for a copy")
    target_every: int = Field(1, ge=1, description="updates between two moves of the target")
    huber: float = Field(1.0, gt=0, description="the error from which on the loss grows in a line")
    max_grad_norm: float = Field(10.0, gt=0, description="longer gradients are shortened to this")
    exploration: Literal["epsilon", "noisy"] = Field("epsilon", description="random legal actions, or noisy layers")
    epsilon: float = Field(1.0, ge=0, le=1, description="share of random actions at first")
    epsilon_final: float = Field(0.05, ge=0, le=1, description="the same in the end")
    explore_fraction: float = Field(0.3, gt=0, le=1, description="of the budget, over which epsilon falls")
    quantiles: int = Field(0, ge=0, le=512, description="of a distributional head; 0 for none")
    study_margin: float = Field(0.1, ge=0, description="by how much what is copied should be worth more than the rest")

    @model_validator(mode="after")
    def _holds_a_round(self) -> DqnConfig:
        if self.warmup > self.capacity or self.minibatch > self.capacity:
            raise ValueError(f"capacity {self.capacity} is smaller than warmup {self.warmup} or the minibatch")
        if self.replay == "file" and self.save_replay:
            raise ValueError("a replay that is kept in a file may exceed memory and is not saved in checkpoints")
        return self

    @property
    def saves_replay(self) -> bool:
        """Whether checkpoints hold the replay."""
        return self.replay == "memory" if self.save_replay is None else self.save_replay


class TorchConfig(Section):
    """How networks learn in torch; on a CPU, what is asked for here takes the place of kernels."""

    amp: bool | None = Field(
        None, description="16-bit matrix products: on a GPU if not set; on a CPU bfloat16, if that wins"
    )
    compile: bool | None = Field(None, description="torch.compile of the dense layers: on a GPU if not set")
    pin_memory: bool | None = Field(None, description="batches in memory that a GPU reads by itself, if there is one")


class PracticeConfig(Section):
    """A variant of the game that some tables play, so that the agent knows it too."""

    share: float = Field(gt=0, lt=1, description="of the tables")
    game: dict[str, Any] = Field(description="the options that differ")


class WorkerConfig(Section):
    """Processes that play envs of the user's own; the limits are those of battles' Node processes too."""

    count: int | Literal["auto"] = Field(
        "auto", description="0 for none: the trainer plays; auto goes by measured cost"
    )
    step_limit_s: float = Field(30.0, gt=0, description="a step that takes longer means that the worker hangs")
    memory_mb: float = Field(
        0.0,
        ge=0,
        description="a worker that holds more, its envs' programs too, is replaced; 0 for no bound, in Node 1024",
    )
    max_deaths: int = Field(20, ge=1, description="of one worker or table without a finished game, which end the run")
    spares: int = Field(2, ge=0, description="processes that stand by, ready to take a dead one's place")
    in_turn: bool = Field(
        False,
        description="workers' tables, and lanes of battles, are answered in a fixed order, not as they get ready: "
        "slower, but what is learned does not depend on timing",
    )


class ActorConfig(Section):
    """Processes that play envs of the user's own and decide there, with weights from the trainer."""

    count: int = Field(0, ge=0, description="0 for none: the trainer decides")
    lag: int = Field(1, ge=0, le=8, description="updates by which the weights that play are behind those that learn")


class SnapshotConfig(Section):
    """The run's own past, for opponents that are drawn from it."""

    every_steps: int = Field(1_000_000, ge=1, description="a snapshot is taken at the latest after so many decisions")
    keep: int = Field(5, ge=1, description="of the newest, which opponents are drawn from")


class LeagueConfig(Section):
    """Which of its past a run meets, and when it adds to it."""

    gate: float = Field(
        0.0, ge=0, lt=1, description="win rate against the pool that takes a snapshot early; 0 for by schedule alone"
    )
    gate_steps: int = Field(100_000, ge=1, description="decisions since the last snapshot before the gate may open")
    window: int = Field(2000, ge=1, description="results against one opponent after which older ones count half")
    hardness: float = Field(2.0, ge=0, description="`hard` opponents weigh as their win rate to this power")
    half_life: float = Field(2.0, gt=0, description="snapshots of age after which `recent` ones weigh half")
    exploiter_every: int = Field(0, ge=0, description="snapshots after which an exploiter is trained; 0 for none")
    exploiter_steps: int = Field(100_000, ge=1, description="decisions that an exploiter learns from")


class LogConfig(Section):
    """What is shown and written of updates."""

    enabled: bool = Field(True, description="false turns off both console and file")
    console: bool = Field(True, description="show progress")
    file: bool = Field(True, description="write events.jsonl, which `maple runs` reads, and the two below")
    every: int = Field(1, ge=1, description="write every so many updates")
    csv: bool = Field(True, description="progress.csv in the run's folder")
    tensorboard: bool | None = Field(None, description="event files for TensorBoard; where it is installed, if not set")
    rewards: bool = Field(False, description="rewards.jsonl: what the learner earned in each game, and its sub-totals")


class Config(Section):
    """Everything that a training run depends on."""

    name: str = Field(description="the game")
    game: dict[str, Any] = Field(default_factory=dict, description="the game's own options")
    practice: list[PracticeConfig] = Field(default_factory=list, description="variants played beside the game")
    algo: Literal["afterstate", "ppo", "dqn"] = Field("afterstate", description="how to learn")
    seed: int = Field(0, ge=0, lt=2**63, description="of everything random")
    steps: int | None = Field(None, ge=1, description="decisions that enter learning, in the whole run")
    minutes: float | None = Field(None, gt=0, description="wall-clock budget of the whole run")
    tables: int | None = Field(None, ge=1, le=1_000_000, description="games played side by side; automatic if not set")
    threads: int | None = Field(None, ge=1, le=1024, description="of kernels and of torch; one a core if not set")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where the network lives")
    opponents: str = Field("self", description="weights, such as self:0.5,hard:0.3,random:0.1,run:NAME@best:0.1")
    checkpoint_every_s: float = Field(60.0, gt=0, description="seconds between two checkpoints")
    probe_every_s: float = Field(
        20.0, ge=0, description="play some hands against `probe_against` this often; 0 for never"
    )
    probe_against: str = Field("random", description="an opponent in the box, in every other seat")
    probe_hands: int = Field(900, ge=1, description="hands (games, where there are no hands) of such a look")
    evaluate: bool = Field(True, description="at the end, play against every opponent in the box")
    storage: Annotated[str, AfterValidator(plain_url)] | None = Field(
        None, description="a folder that runs are copied to, and brought from: s3://… gs://… file://…"
    )
    price_per_hour: float | None = Field(
        None, ge=0, description="what this machine costs an hour: the end then says what the run cost"
    )
    profile: Annotated[str, AfterValidator(file_name)] | None = Field(
        None, description="the name of a profile of where time goes, or true for one called profile; none if not set"
    )
    perf_every: float | None = Field(None, ge=0.1, description="seconds between two [PERF] lines; none if not set")
    net: NetConfig = NetConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    ppo: PpoConfig = PpoConfig()
    afterstate: AfterstateConfig = AfterstateConfig()
    dqn: DqnConfig = DqnConfig()
    torch: TorchConfig = TorchConfig()
    snapshots: SnapshotConfig = SnapshotConfig()
    league: LeagueConfig = LeagueConfig()
    log: LogConfig = LogConfig()
    workers: WorkerConfig = WorkerConfig()
    actors: ActorConfig = ActorConfig()

    @field_validator("profile", mode="before")
    @classmethod
    def _called_profile(cls, value: Any) -> Any:
        return ("profile" if value else None) if isinstance(value, bool) else value

    @property
    def horizon(self) -> int:
        """Decisions between two reports of the chosen algorithm."""
        return self.recipe.horizon

    @property
    def recipe(self) -> PpoConfig | AfterstateConfig | DqnConfig:
        """The settings of the chosen algorithm."""
        if self.algo == "dqn":
            return self.dqn
        return self.ppo if self.algo == "ppo" else self.afterstate

    @property
    def by_index(self) -> bool:
        """Whether the network scores plain indices under a mask, rather than described options."""
        return not isinstance(self.recipe, AfterstateConfig) and self.recipe.policy == "index"


def assign(tree: dict[str, Any], key: str, text: str) -> None:
    """Put a value, written as YAML, at a dotted key."""
    *path, last = key.split(".")
    node = tree
    for part in path:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise ConfigError(f"--set {key}: {part!r} is a single setting, it has nothing below it")
    try:
        node[last] = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"--set {key}={text}: the value cannot be read; quote it if it is a text") from None


def known_keys(model: type[BaseModel] | None = None, prefix: str = "") -> list[str]:
    """Every setting there is, by dotted key."""
    model = model or Config
    keys = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        below = isinstance(inner, type) and issubclass(inner, BaseModel)
        keys += known_keys(inner, f"{prefix}{name}.") if below else [prefix + name]  # type: ignore[arg-type]
    return keys


def validated(tree: Mapping[str, Any], source: Mapping[str, str] | None = None) -> Config:
    """The config that a tree of settings means, or a sentence about its first mistake and where that came from."""
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(sentence(error, known_keys(), source or {})) from None


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree of settings by dotted keys."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return leaves
