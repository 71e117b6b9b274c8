"""Where settings come from, and in which order: later wins.

defaults < the game's own < preset < YAML file < environment < `--set key=value` < flags
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple.core.config import Config, assign, flat, known_keys, validated
from maple.core.errors import ConfigError, nearest
from maple.core.presets import preset_settings, settings_of

__all__ = ["ENVIRONMENT", "PROVIDERS", "Sourced", "Variable", "from_environment", "gather", "load_config"]

PREFIX = "MAPLE_"
# Variables with Maple's prefix that are not settings of a run.
NOT_SETTINGS = (
    *("MAPLE_RUNS_DIR", "MAPLE_CACHE_DIR", "MAPLE_CONFIG_DIR", "MAPLE_NOTIFY_URL"),
    *("MAPLE_NODE", "MAPLE_SHOWDOWN_MODULES", "MAPLE_BATTLES"),
)
# Names that other training programs use, and what they are here.
ENVIRONMENT = {
    "NUM_ENVS": "tables",
    "USE_SUBPROC_ENVS": "workers.count",
    "TRAIN_LOG_ENABLED": "log.enabled",
    "TRAIN_LOG_TO_CONSOLE": "log.console",
    "TRAIN_LOG_TO_FILE": "log.file",
    "LOG_EVERY": "log.every",
    "REWARD_DEBUG": "log.rewards",
    "UPDATES_PER_STEP": "dqn.updates_per_step",
    "PREFETCH": "dqn.prefetch",
    "USE_AMP": "torch.amp",
    "USE_COMPILE": "torch.compile",
    "PIN_MEMORY": "torch.pin_memory",
    "MAPLE_STORAGE_URL": "storage",
}
# What CLOUD_PROVIDER may say, and the scheme and the variable with the bucket's name that go with it.
PROVIDERS = {
    "gcs": ("gs", "GCS_BUCKET"),
    "gcp": ("gs", "GCS_BUCKET"),
    "aws": ("s3", "S3_BUCKET"),
    "s3": ("s3", "S3_BUCKET"),
}
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Sourced:
    """A config, and for each setting that is not a default what it came from."""

    config: Config
    source: dict[str, str]

    def rows(self) -> list[tuple[str, Any, str]]:
        """Every setting with its value and its source."""
        values = flat(self.config.model_dump())
        return [(key, value, self._source(key)) for key, value in values.items()]

    def _source(self, key: str) -> str:
        return self.source.get(key, "default")


@dataclass(frozen=True, slots=True)
class Variable:
    """What the environment says of a setting."""

    name: str
    text: str


def from_environment(environment: Mapping[str, str]) -> dict[str, Variable]:
    """Settings by dotted key: MAPLE_PPO__CLIP=0.1 is ppo.clip=0.1, and some names of other programs are understood."""
    found = {"storage": bucket} if (bucket := _bucket(environment)) else {}
    for name, key in ENVIRONMENT.items():
        if environment.get(name):
            found[key] = Variable(name, _as_setting(name, environment[name]))
    known = known_keys()
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in NOT_SETTINGS and name not in ENVIRONMENT:
            key = name.removeprefix(PREFIX).lower().replace("__", ".")
            if key not in known and not key.startswith(("game.", "env.")):
                raise ConfigError(f"the environment's {name} is no setting ({key!r}); {nearest(key, known)}")
            found[key] = Variable(name, environment[name])
    return found


def _bucket(environment: Mapping[str, str]) -> Variable | None:
    """The storage that CLOUD_PROVIDER and the name of its bucket mean, or the only bucket that is named."""
    provider = environment.get("CLOUD_PROVIDER", "").lower()
    if provider in ("none", "local"):
        return None
    if not provider:
        return _only_bucket(environment)
    if provider not in PROVIDERS:
        raise ConfigError(f"the environment's CLOUD_PROVIDER = {provider!r} cannot be used; write gcs, aws or none")
    scheme, name = PROVIDERS[provider]
    if not environment.get(name):
        raise ConfigError(
            f"the environment's CLOUD_PROVIDER is {provider}, but {name} is not set; name the bucket there"
        )
    return Variable(name, f"{scheme}://{environment[name]}")


def _only_bucket(environment: Mapping[str, str]) -> Variable | None:
    """The storage that a bucket means by itself."""
    named = {name: scheme for scheme, name in PROVIDERS.values() if environment.get(name)}
    if environment.get("MAPLE_STORAGE_URL"):
        return None
    if len(named) > 1:
        raise ConfigError(
            f"the environment's {' and '.join(named)} are both set; say which one is meant: CLOUD_PROVIDER=gcs, aws or "
            "none"
        )
    return next((Variable(name, f"{scheme}://{environment[name]}") for name, scheme in named.items()), None)


def _as_setting(name: str, text: str) -> str:
    if name != "USE_SUBPROC_ENVS":
        return text
    if text.lower() not in (*_YES, *_NO):
        raise ConfigError(f"the environment's {name} = {text!r} cannot be used; write 1 or 0")
    return "auto" if text.lower() in _YES else "0"


def gather(
    name: str,
    *,
    defaults: Mapping[str, Any] | None = None,
    preset: str | None = None,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    settings: list[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    origin: str = "the game",
) -> Sourced:
    """The config of a run of game `name` from all its sources, and where each setting came from.

    `origin` says what the `defaults` are of.
    """
    layers: list[tuple[str, dict[str, Any]]] = [(origin, dict(defaults or {}))]
    if preset is not None:
        layers.append((f"preset {preset}", preset_settings(preset, name)))
    if file is not None:
        layers.append((str(file), settings_of(file)))
    variables = from_environment(environment or {})
    layers.append(("environment", _tree({key: variable.text for key, variable in variables.items()})))
    layers.append(("--set", _tree(dict(map(_pair, settings or [])))))
    layers.append(("flag", {key: value for key, value in (flags or {}).items() if value is not None}))
    tree: dict[str, Any] = {"name": name}
    source = {"name": "flag"}
    for label, layer in layers:
        if "env" in layer:  # what an env is made with: the options of a game of the user's own
            env = layer.pop("env")
            layer["game"] = {**layer.get("game", {}), **env}
        _merge(tree, layer)
        source |= dict.fromkeys(flat(layer), label)
        if label == "environment":
            source |= {_setting_of(key): f"${variable.name}" for key, variable in variables.items()}
    return Sourced(validated(tree, source), source)


def _setting_of(key: str) -> str:
    return f"game.{key.removeprefix('env.')}" if key.startswith("env.") else key


def load_config(
    name: str,
    preset: str | None = None,
    settings: list[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """The config of a run of game `name`, without file and environment; `settings` are `key=value` texts."""
    return gather(name, defaults=defaults, preset=preset, settings=settings, flags=flags).config


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text!r} has no value; write it as key=value, such as --set game.seats=2")
    return key.strip(), value.strip()


def _tree(texts: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, text in texts.items():
        assign(tree, key, text)
    return tree


def _merge(into: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in extra.items():
        old = into.get(key)
        into[key] = _merge(dict(old), value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return into
