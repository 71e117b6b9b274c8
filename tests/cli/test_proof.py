"""`maple profile`, `compare`, `tune` and the suites of `bench`, from the outside."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from maple.bench.compare import Comparison, Plan
from maple.bench.gate import Paired, decide
from maple.cli.app import app
from maple.core.errors import ConfigError, UserError
from tests.cli.command import TINY as SMALL
from tests.cli.command import maple, maple_alone

RECIPE = ("minibatch", "epochs")
TINY = [*SMALL, "--set", "afterstate.minibatch=128"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiled")
    flags = ["--steps", "20000", "--profile", "--profile-name", "mine", "--perf-every", "0.1", "--set", "threads=2"]
    done = maple_alone("train", "ofc", "--run", "tiny", "--runs-dir", folder, "--json", *flags, *TINY)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] >= 20000
    assert "[PERF] each 1000 decisions: action_ms=" in done.stderr
    updates = re.findall(r"updates/step=(\S+)", done.stderr)
    assert float(updates[-1]) > 3 / 720  # several minibatches of 128 are learned from 720 decisions
    return folder


def test_a_runs_profile_adds_up(runs: Path) -> None:
    done = maple("profile", "tiny", "--runs-dir", runs, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    accounts = {account["name"]: account for account in found["accounts"]}
    assert {"MainThread", "maple-team-1", "maple-sampler"} <= accounts.keys()
    for account in accounts.values():
        assert 0.995 <= sum(span["share"] for span in account["spans"]) <= 1.005
        assert sum(span["self_s"] for span in account["spans"]) == pytest.approx(account["wall_s"], rel=5e-3)
        assert min(span["self_s"] for span in account["spans"]) >= 0
    names = {span["name"] for span in accounts["MainThread"]["spans"]}
    assert {"env_step", "env_observe", "env_reset", "env_parallel_execution", "agent_action_selection"} <= names
    assert {"loss_calculation", "gradient_calculation", "optimizer_step", "replay_sample", "log", "idle"} <= names
    helper = {span["name"] for span in accounts["maple-team-1"]["spans"]}
    assert {"agent_action_selection", "gradient_calculation", "idle"} <= helper
    assert found["facts"]["steps"] >= 20000
    assert found["figures"]["decisions_per_game"] > 1
    assert found["bottleneck"]


def test_the_report_the_trace_and_the_page(runs: Path) -> None:
    done = maple("profile", runs / "tiny", "--name", "mine", "--html")
    assert done.returncode == 0, done.stderr
    assert "main / maple-team-1" in done.stdout
    folder = runs / "tiny" / "profiles"
    assert sorted(p.name for p in folder.iterdir()) == ["mine.html", "mine.json", "mine.trace.json", "mine.txt"]
    assert "Timeline of the training thread" in (folder / "mine.html").read_text()
    trace = json.loads((folder / "mine.trace.json").read_text())
    assert any(event["name"] == "env_step" and event["ph"] == "X" for event in trace["traceEvents"])


def test_compare_rejects_by_its_exit_code_and_speaks_json() -> None:
    flags = ["--seconds", "0.5", "--pairs", "5", "--hands", "60", "--seeds", "8", "--against", "random"]
    flags += ["--set", "threads=1", *TINY]
    done = maple("compare", "default", "afterstate.epochs=24 afterstate.minibatch=16", *flags, "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "reject"
    assert "throughput failed" in found["reason"]
    assert found["throughput_ratio_ci95"][1] < 1.1
    assert {"strength_diff", "strength_diff_ci95", "time_to_strength", "figures"} <= found.keys()


@pytest.mark.parametrize(
    ("speeds", "differences", "code", "told"),
    [
        ([2.0, 2.1, 1.9, 2.0, 2.05], [0.1, 0.2, 0.15, 0.12], 0, "adopt (throughput at least"),
        ([2.0, 2.1, 1.9, 2.0, 2.05], [-2.0, 2.0, -1.0, 1.0], 3, "undecided: needs {more:,} more games (strength not"),
        ([1.0, 1.5, 0.9, 1.2, 1.1], [0.1, 0.2, 0.15, 0.12], 3, "undecided: needs {more:,} more games (throughput not"),
    ],
)
def test_compare_tells_its_verdict_by_exit_code_and_words(
    speeds: list[float], differences: list[float], code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(_sides: object, _base: object, _candidate: object, plan: Plan, _tell: object) -> Comparison:
        found = Comparison(plan, "points_per_hand")
        found.evidence.base_speeds, found.evidence.candidate_speeds = [1.0] * len(speeds), speeds
        found.evidence.duels = [Paired(one, 0.01, games=600) for one in differences]
        found.verdict = decide(found.evidence, found.limits)
        return found

    monkeypatch.setattr("maple.bench.compare.compare", measured)
    monkeypatch.setattr("maple.bench.compare.two_sides", nullcontext)
    monkeypatch.setattr("maple.bench.measure.machine_lock", nullcontext)  # nothing is measured here
    monkeypatch.setattr("maple.cli.compare.compile_kernels", lambda *_: 0.0)
    asked = maple("compare", "default", "speed", "--json")
    assert asked.returncode == code, asked.stderr
    more = json.loads(asked.stdout)["needs_more_games"]
    assert (more > 0) == (code == 3)
    done = maple("compare", "default", "speed")
    assert done.returncode == code, done.stderr
    assert told.format(more=more) in " ".join(done.stdout.split())


def test_tune_writes_the_preset_that_training_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_DIR", str(tmp_path / "config"))
    small = ["net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=128", "probe_hands=30"]
    flags = [f"--set={text}" for text in small]
    done = maple("tune", "ofc", "--seconds", "2", "--json", *flags)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["tried"][0]["tables"] == found["tables"]
    assert Path(found["path"]) == tmp_path / "config" / "presets" / "ofc" / "tuned.yml"
    run = ["--preset", "tuned", "--steps", "100", "--run", "x", "--runs-dir", tmp_path, "--json"]
    assert maple("train", "ofc", *run).returncode == 0
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    assert (config["tables"], config["threads"]) == (found["tables"], found["threads"])
    assert config["net"]["hidden"] == [16, 8]


def test_tune_keeps_of_learning_what_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_DIR", str(tmp_path / "config"))
    small = [
        "net.hidden=[16, 8]",
        "ppo.horizon=720",
        "ppo.minibatch=120",
        "ppo.epochs=3",
        "probe_hands=30",
        "tables=48",
    ]
    flags = [f"--set={text}" for text in small]
    done = maple("tune", "ofc", "--algo", "ppo", "--seconds", "6", "--learning", "--json", *flags)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tried = found["learning"]["tried"]
    assert [row["setting"] for row in tried] == ["ppo.minibatch=240", "ppo.epochs=2"]
    for row in tried:
        faster, weaker = row["throughput_ratio_ci95"][0] > 1, row["strength_diff"] < -0.5
        assert row["kept"] == (row["verdict"] != "reject" and faster and not weaker)
    kept = found["learning"]["kept"]
    assert [f"{key}={value}" for key, value in kept.items()] == [row["setting"] for row in tried if row["kept"]]
    written = yaml.safe_load(Path(found["path"]).read_text())["ppo"]
    assert {"ppo.minibatch": 120, "ppo.epochs": 3, **kept} == {f"ppo.{key}": written[key] for key in RECIPE}


def test_the_race_is_kept_if_learning_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_DIR", str(tmp_path / "config"))

    def fails(*_: object) -> None:
        raise ConfigError("nothing can be learned today")

    monkeypatch.setattr("maple.bench.tune_learning.improve_learning", fails)
    small = ["net.hidden=[16, 8]", "afterstate.horizon=720", "afterstate.minibatch=128", "probe_hands=30"]
    done = maple("tune", "ofc", "--seconds", "2", "--learning", *(f"--set={text}" for text in small))
    assert done.returncode == 2
    assert "nothing can be learned today" in done.stderr
    assert "settings in the race, best so far" in done.stderr  # progress, though it is no terminal
    written = yaml.safe_load((tmp_path / "config" / "presets" / "ofc" / "tuned.yml").read_text())
    assert written["tables"] > 0
    assert written["afterstate"]["minibatch"] == 128


def test_the_suites_write_what_they_print(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    done = maple("bench", "--only", "games", "--seconds", "0.5", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["rows"] == json.loads(done.stdout)["rows"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["profile", "never-trained"], "there is no run 'never-trained'"),
        (["compare", "default", "sped"], "there is no preset 'sped'"),
        (["compare", "default", "game.seats=2"], "the same game with the same options"),
        (["compare", "default", "default", "--against", "nobody"], "ofc has no opponent 'nobody'"),
        (["compare", "speed", "speed balance"], "names 2 presets"),
        (["train", "ofc", "--profile-name", "../mine"], "is no name for a file"),
        (["tune", "ofx"], "there is no game 'ofx'"),
        (["bench", "--only", "gams"], "there is no suite 'gams'"),
    ],
)
def test_mistakes_get_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):  # which main() makes into exit code 2
        app(arguments, standalone_mode=False)
    assert capsys.readouterr().out == ""


def test_a_profile_that_is_missing_or_damaged_is_told_of(runs: Path) -> None:
    done = maple("profile", "tiny", "--name", "mne", "--runs-dir", runs)
    assert done.returncode == 2
    assert "did you mean 'mine'" in done.stderr
    path = runs / "tiny" / "profiles" / "mine.json"
    content = path.read_text()
    path.write_text(content[:100])
    done = maple("profile", "tiny", "--runs-dir", runs)
    path.write_text(content)
    assert done.returncode == 2
    assert "is damaged" in done.stderr
