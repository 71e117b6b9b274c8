"""Settings from files and the environment: order, names, mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from maple.core.errors import ConfigError
from maple.core.sources import ENVIRONMENT, from_environment, gather


def test_each_source_beats_the_one_before_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    file.write_text("ppo:\n  epochs: 5\n  clip: 0.3\nseed: 2\n")
    found = gather(
        "ofc",
        defaults={"practice": []},
        preset="sb3",
        file=file,
        environment={"MAPLE_PPO__CLIP": "0.4", "MAPLE_SEED": "3", "PATH": "/bin"},
        settings=["seed=4"],
        flags={"minutes": 1.0, "steps": None},
    )
    assert (found.config.ppo.minibatch, found.config.ppo.epochs, found.config.ppo.clip) == (256, 5, 0.4)
    assert (found.config.seed, found.config.minutes) == (4, 1.0)
    rows = {key: (value, source) for key, value, source in found.rows()}
    assert rows["ppo.minibatch"] == (256, "preset sb3")
    assert rows["ppo.epochs"] == (5, str(file))
    assert rows["ppo.clip"] == (0.4, "$MAPLE_PPO__CLIP")
    assert rows["seed"] == (4, "--set")
    assert rows["minutes"] == (1.0, "flag")
    assert rows["practice"] == ([], "the game")
    assert rows["afterstate.lam"][1] == "default"


def test_names_of_other_programs_are_understood() -> None:
    values = {"NUM_ENVS": "64", "LOG_EVERY": "5", "TRAIN_LOG_TO_CONSOLE": "0", "TRAIN_LOG_TO_FILE": "false"}
    values |= {"TRAIN_LOG_ENABLED": "1", "USE_SUBPROC_ENVS": "1", "REWARD_DEBUG": "1"}
    config = gather("ofc", environment=values).config
    assert config.log.rewards
    assert (config.tables, config.log.every, config.log.console, config.log.file) == (64, 5, False, False)
    assert (config.log.enabled, config.workers.count) == (True, "auto")
    assert gather("ofc", environment={"USE_SUBPROC_ENVS": "0"}).config.workers.count == 0
    switches = {"USE_AMP": "1", "USE_COMPILE": "0", "PREFETCH": "1", "PIN_MEMORY": "0", "UPDATES_PER_STEP": "12"}
    config = gather("ofc", environment=switches).config
    assert (config.torch.amp, config.torch.compile, config.torch.pin_memory) == (True, False, False)
    assert (config.dqn.prefetch, config.dqn.updates_per_step) == (True, 12)
    assert set(from_environment(dict.fromkeys(ENVIRONMENT, "1"))) == set(ENVIRONMENT.values())


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"MAPLE_PPO__CLIPP": "1"}, "MAPLE_PPO__CLIPP is no setting ('ppo.clipp'); did you mean 'ppo.clip'"),
        ({"MAPLE_SEED": "many"}, "seed = 'many' (from $MAPLE_SEED) cannot be used: it must be a whole number"),
        ({"NUM_ENVS": "0"}, "tables = 0 (from $NUM_ENVS) cannot be used: it must be greater than or equal to 1"),
        ({"CLOUD_PROVIDER": "attic"}, "CLOUD_PROVIDER = 'attic' cannot be used; write gcs, aws or none"),
        ({"CLOUD_PROVIDER": "gcs", "S3_BUCKET": "b"}, "CLOUD_PROVIDER is gcs, but GCS_BUCKET is not set"),
        (
            {"GCS_BUCKET": "a", "S3_BUCKET": "b"},
            "GCS_BUCKET and S3_BUCKET are both set; say which one is meant: CLOUD_",
        ),
        ({"USE_SUBPROC_ENVS": "maybe"}, "USE_SUBPROC_ENVS = 'maybe' cannot be used"),
    ],
)
def test_mistakes_in_the_environment_get_a_sentence(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        gather("ofc", environment=environment)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("ppo: [1", "is not YAML"), ("just words", "has no settings"), ("ppoo:\n  clip: 1\n", "no setting 'ppoo'")],
)
def test_mistakes_in_a_file_get_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        gather("ofc", file=file)
    with pytest.raises(ConfigError, match="cannot read"):
        gather("ofc", file=tmp_path / "none.yml")


@pytest.mark.parametrize("section", ["ppo", "afterstate"])
def test_values_that_cannot_work_together_are_refused(section: str) -> None:
    with pytest.raises(ConfigError, match="minibatch"):
        gather("ofc", settings=[f"{section}.horizon=1000", f"{section}.minibatch=2000"])


@pytest.mark.parametrize(
    ("environment", "url", "source"),
    [
        ({"CLOUD_PROVIDER": "gcs", "GCS_BUCKET": "box/runs"}, "gs://box/runs", "$GCS_BUCKET"),
        ({"CLOUD_PROVIDER": "AWS", "S3_BUCKET": "box"}, "s3://box", "$S3_BUCKET"),
        ({"CLOUD_PROVIDER": "aws", "S3_BUCKET": "box", "MAPLE_STORAGE_URL": "file:///x"}, "file:///x", None),
        ({"CLOUD_PROVIDER": "none", "S3_BUCKET": "box"}, None, "default"),
        ({"GCS_BUCKET": "box/runs"}, "gs://box/runs", "$GCS_BUCKET"),
        ({"S3_BUCKET": "box", "GCS_BUCKET": ""}, "s3://box", "$S3_BUCKET"),
        ({"CLOUD_PROVIDER": "s3", "S3_BUCKET": "box", "GCS_BUCKET": "other"}, "s3://box", "$S3_BUCKET"),
        ({"S3_BUCKET": "box", "GCS_BUCKET": "other", "MAPLE_STORAGE_URL": "file:///x"}, "file:///x", None),
    ],
)
def test_the_clouds_own_names_say_where_runs_are_copied(
    environment: dict[str, str], url: str | None, source: str | None
) -> None:
    found = {key: (value, origin) for key, value, origin in gather("ofc", environment=environment).rows()}
    assert found["storage"] == (url, source or "$MAPLE_STORAGE_URL")


@pytest.mark.parametrize("key", ["storage=s3://me:hush@box", "storage=az://box?sig=hush"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="must hold no password") as caught:
        gather("ofc", settings=[key])
    assert "hush" not in str(caught.value)
