"""Settings: later wins, unknown is an error, and every field is read somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

import maple
from maple.core.errors import ConfigError, GameError
from maple.core.presets import preset_names, preset_settings, user_presets
from maple.core.sources import load_config
from maple.games import GAMES, entry, game_settings, make_game
from maple.games.showdown.schema import REWARD_PARTS


def test_later_wins() -> None:
    assert load_config("ofc").algo == "afterstate"
    assert load_config("ofc", "sb3").algo == "ppo"
    assert load_config("ofc", "sb3", ["algo=afterstate"]).algo == "afterstate"
    assert load_config("ofc", "sb3", ["seed=4"], flags={"seed": 5, "steps": None}).seed == 5
    assert load_config("ofc", "sb3", ["ppo.epochs=3"]).ppo.minibatch == 256


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_loads(preset: str) -> None:
    assert load_config("ofc", preset).name == "ofc"


@pytest.mark.parametrize("preset", ["speed", "balance"])
def test_battles_have_their_defaults_under_a_preset(preset: str) -> None:
    config = load_config("showdown", preset, defaults=entry("showdown").defaults)
    wanted = preset_settings(preset, "showdown")["ppo"]
    assert {name: getattr(config.ppo, name) for name in wanted} == wanted
    assert (config.algo, config.ppo.policy, config.tables) == ("ppo", "options", 64)
    assert config.ppo.horizon % config.ppo.minibatch == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["afterstate.lamda=1"], "there is no setting 'afterstate.lamda'; did you mean 'afterstate.lam'"),
        (["nonsense=1"], "there is no setting 'nonsense'"),
        (["ppo.epochs=0"], "ppo.epochs = 0 cannot be used"),
        (["ppo.epochs=many"], "ppo.epochs = 'many' cannot be used: it must be a whole number"),
        (["ppo.epochs=true"], "ppo.epochs: it cannot be True"),
        (["evaluate=2"], "evaluate = 2 cannot be used: it must be true or false"),
        (["net.hidden=[64, 0]"], "net.hidden.1 = 0 cannot be used: it must be greater than or equal to 1"),
        (["optimizer.learning_rate=.inf"], "learning_rate = inf cannot be used: it must be a finite number"),
        (["ppo=3"], "ppo = 3 cannot be used: it is a group of settings, set ppo.NAME instead"),
        (["=3"], "a setting needs a name"),
        (["practice=[{game: {}}]"], "practice.0.share is missing"),
        (["ppo.minibatch=99999"], "ppo: minibatch 99999 is larger than horizon 16384"),
        (["algo=dqnn"], "algo = 'dqnn' cannot be used"),
        (["dqn.capacity=100"], "capacity 100 is smaller than warmup 2000"),
        (["dqn.replay=file", "dqn.save_replay=true"], "kept in a file may exceed memory"),
        (["seed"], "has no value"),
        (["seed.deep=1", "seed=[1"], "cannot be read"),
        (["tables=0"], "tables = 0 cannot be used"),
    ],
)
def test_bad_settings_get_a_sentence(settings: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        load_config("ofc", settings=settings)


def test_presets_of_an_env_have_a_folder_that_any_system_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_DIR", str(tmp_path))
    env = "my_package.my_module:make_env"
    assert user_presets(env) == tmp_path / "presets" / "my_package.my_module-make_env"
    user_presets(env).mkdir(parents=True)
    (user_presets(env) / "tuned.yml").write_text("tables: 7\n")
    assert preset_settings("tuned", env) == {"tables": 7}
    assert "tuned" in preset_names(env)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'speed'"):
        load_config("ofc", "sped")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seats": 4}, "game.seats = 4 cannot be used"),
        ({"jokers": 1}, "game.jokers = 1 cannot be used"),
        ({"fantasylnd": "off"}, "did you mean 'fantasyland'"),
        ({"variant": "turbo"}, "game.variant = 'turbo' cannot be used"),
    ],
)
def test_bad_game_options_get_a_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(GameError, match=re.escape(sentence)):
        make_game("ofc", options)


def test_an_unknown_game_names_the_nearest() -> None:
    with pytest.raises(GameError, match="did you mean 'ofc'"):
        make_game("ofcc")


def test_off_means_off() -> None:
    config = load_config("ofc", settings=["game.fantasyland=off"])
    assert make_game("ofc", config.game).settings.model_dump()["fantasyland"] == "off"


def _leaves(model: type[BaseModel]) -> list[str]:
    names = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        is_section = isinstance(inner, type) and issubclass(inner, BaseModel)
        names += _leaves(inner) if is_section else [name]  # type: ignore[arg-type]
    return names


def test_every_option_of_a_game_is_read_somewhere() -> None:
    """Of the settings of runs, tests/training/test_every_setting.py shows what each one changes."""
    package = Path(maple.__file__).parent
    files = [p for p in package.rglob("*.py") if p.name != "config.py"]
    files += (package / "games" / "showdown" / "bridge" / "src").glob("*.js")
    text = "\n".join(p.read_text() for p in files)
    for name in (leaf for game in GAMES for leaf in _leaves(game_settings(game))):
        read = re.search(rf"\.{name}\b", text) or name in REWARD_PARTS  # those go to the bridge as one mapping
        assert read, f"nobody reads {name}"
