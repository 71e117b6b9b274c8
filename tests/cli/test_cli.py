"""The command line from the outside: what it prints, what it answers to mistakes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maple.cli import evaluate
from maple.cli.train import new_name
from maple.core.config import known_keys
from maple.core.cores import available_cores
from maple.core.sources import ENVIRONMENT
from tests.cli.command import TINY, command_line, maple


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    done = maple("train", "ofc", "--run", "tiny", "--runs-dir", folder, "--steps", "1500", "--json", *TINY)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["steps"] >= 1500
    assert report["run"] == "tiny"
    return folder


def test_eval_gives_the_promised_figures(runs: Path) -> None:
    done = maple(
        "eval", "tiny", "--runs-dir", runs, "--against", "random,random", "--hands", "60", "--seed", "3", "--json"
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert {"points_per_hand", "ci95", "foul", "royalty", "fantasyland_entry", "hands"} <= figures.keys()
    assert figures["ci95"][0] < figures["points_per_hand"] < figures["ci95"][1]
    assert figures["hands"] >= 60
    assert 0 <= figures["foul"] <= 1
    again = maple("eval", runs / "tiny", "--hands", "60", "--seed", "3", "--json")
    assert json.loads(again.stdout)["points_per_hand"] == figures["points_per_hand"]
    kept = [json.loads(line) for line in (runs / "tiny" / "evaluations.jsonl").read_text().splitlines()]
    assert [row["points_per_hand"] for row in kept[-2:]] == 2 * [figures["points_per_hand"]]
    watched = maple("show", "ofc", "--replay", runs / "tiny" / figures["record"])
    assert watched.returncode == 0, watched.stderr
    assert "tiny against random against random: " in watched.stdout


def test_eval_takes_the_games_options(runs: Path) -> None:
    done = maple("eval", "tiny", "--runs-dir", runs, "--hands", "60", "--set", "game.fantasyland=off", "--json")
    figures = json.loads(done.stdout)
    assert figures["hands"] == 60
    assert figures["game"]["fantasyland"] == "off"


def test_the_same_command_goes_on(runs: Path) -> None:
    done = maple("train", "ofc", "--run", "tiny", "--runs-dir", runs, "--steps", "3000", "--json", *TINY)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] >= 3000


def test_games_and_doctor_speak_json() -> None:
    games = json.loads(maple("games", "--json").stdout)
    assert games["games"]["ofc"]["options"]["fantasyland"] == "progressive"
    found = json.loads(maple("doctor", "--json").stdout)
    assert found["cores"] >= 1
    assert "torch" in found["versions"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "ofx"], "there is no game 'ofx'"),
        (["train", "ofc", "--preset", "sped"], "there is no preset 'sped'"),
        (["train", "ofc", "--set", "game.seats=5"], "game.seats = 5 cannot be used"),
        (["train", "ofc", "--set", "algoo=ppo"], "there is no setting 'algoo'"),
        (["train", "ofc", "--opponents", "self:0.5,nobody:0.5"], "there is no 'nobody'"),
        (["train", "ofc", "--opponents", "self:-1"], "--opponents self:-1: weights are positive numbers"),
        (["train", "ofc", "--steps", "0"], "steps = 0 cannot be used"),
        (["train", "ofc", "--set", "actors.count=2"], "leave actors.count at 0"),
        (["train", "ofc", "--algo", "dqn", "--set", "dqn.capacity=16384"], "make it at least 24576"),
        (["train", "ofc", "--set", "probe_against=nobody"], "probe_against: ofc has no opponent 'nobody'"),
        (["train", "ofc", "--set", "net.core=lstm"], "net.core=lstm is not for after-state values"),
        (["train", "ofc", "--set", "net.attention=true"], "net.attention is not for after-state values"),
        (["eval", "never-trained"], "there is no run 'never-trained'"),
        (["bench", "train", "ofc", "--peer", "sb4"], "there is no peer 'sb4'"),
        (["bench", "game", "CartPole-v1"], "CartPole-v1 is an env, not a game in kernels: `maple bench arena`"),
    ],
)
def test_mistakes_get_one_sentence_and_code_2(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    runs_dir = [] if arguments[0] == "bench" else ["--runs-dir", str(tmp_path)]
    done = maple(*arguments, *runs_dir)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_is_told_of(runs: Path) -> None:
    newest = sorted((runs / "tiny" / "checkpoints").glob("[0-9]*"))[-1]
    content = (newest / "checkpoint.json").read_text()
    train = ["train", "ofc", "--run", "tiny", "--runs-dir", runs, "--steps", "9000", *TINY]
    (newest / "checkpoint.json").write_text(content[: len(content) // 2])
    done = maple("eval", "tiny", "--runs-dir", runs)
    assert done.returncode == 2
    assert "is damaged" in done.stderr
    assert "the one before it is" in done.stderr
    assert "Traceback" not in done.stderr
    (newest / "checkpoint.json").write_text(json.dumps({**json.loads(content), "format": 99}))
    for command in (["eval", "tiny", "--runs-dir", runs], train):
        done = maple(*command)
        assert done.returncode == 2
        assert "has format 99" in done.stderr
    newer = json.loads(content)
    newer["config"]["warp"] = {"drive": True}
    (newest / "checkpoint.json").write_text(json.dumps(newer))
    for command in (["eval", "tiny", "--runs-dir", runs], train):
        done = maple(*command)
        assert done.returncode == 2
        assert "a setting that this Maple does not know (warp" in done.stderr
    (newest / "checkpoint.json").write_text(content)


def test_a_clock_that_was_set_back_never_makes_an_old_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda form: form.replace("%Y%m%d-%H%M%S", "then"))
    assert new_name("ofc", tmp_path) == "ofc-then"
    (tmp_path / "ofc-then").mkdir()
    (tmp_path / "ofc-then-2").mkdir()
    assert new_name("ofc", tmp_path) == "ofc-then-3"
    assert new_name("my.module:make_env", tmp_path) == "my.module-make_env-then"


def test_eval_takes_another_caution_and_nothing_it_would_ignore(runs: Path) -> None:
    command = ["eval", "tiny", "--runs-dir", runs, "--hands", "60", "--json"]
    careless, careful = (
        json.loads(maple(*command, "--set", f"afterstate.caution={caution}").stdout) for caution in (0, 50)
    )
    assert careful["points_per_hand"] != careless["points_per_hand"]
    done = maple(*command, "--set", "ppo.clip=0.3")
    assert done.returncode == 2
    assert "changes nothing in an evaluation" in done.stderr


def test_the_command_starts_without_torch() -> None:
    code = "import sys, maple.cli.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_teaches() -> None:
    text = maple("train", "--help").stdout
    assert "maple train ofc --minutes 5" in text


def test_a_full_disk_leaves_the_checkpoint_before_it_whole(runs: Path) -> None:
    """A bound on the size of files stands for the full disk."""
    import resource

    before = sorted((runs / "tiny" / "checkpoints").rglob("*"))
    done = subprocess.run(
        command_line("train", "ofc", "--run", "tiny", "--runs-dir", runs, "--steps", "9000", *TINY),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert done.returncode == 2, done.stderr
    assert "the checkpoint before it is whole: free some space" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted((runs / "tiny" / "checkpoints").rglob("*")) == before
    assert maple("eval", "tiny", "--runs-dir", runs, "--hands", "6").returncode == 0


def test_a_folder_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = maple("train", "ofc", "--run", "x", "--runs-dir", tmp_path / "file", "--steps", "100", *TINY)
    assert done.returncode == 2
    assert "cannot use run folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_of_another_game_is_told_of(runs: Path) -> None:
    newest = sorted((runs / "tiny" / "checkpoints").glob("[0-9]*"))[-1]
    content = (newest / "checkpoint.json").read_text()
    (newest / "checkpoint.json").write_text(json.dumps({**json.loads(content), "game": "chess"}))
    done = maple("train", "ofc", "--run", "tiny", "--runs-dir", runs, "--steps", "3000", *TINY)
    (newest / "checkpoint.json").write_text(content)
    assert done.returncode == 2
    assert "is of game 'chess', not 'ofc'" in done.stderr


def test_runs_lists_compares_keeps_and_removes(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tiny", tmp_path / "one")
    shutil.copytree(runs / "tiny", tmp_path / "two")
    config = json.loads((tmp_path / "two" / "config.json").read_text())
    (tmp_path / "two" / "config.json").write_text(json.dumps({**config, "seed": 7}))
    listed = json.loads(maple("runs", "--runs-dir", tmp_path, "--json", "--sort", "name").stdout)["runs"]
    assert [(run["name"], run["game"], run["state"]) for run in listed] == [
        ("one", "ofc", "finished"),
        ("two", "ofc", "finished"),
    ]
    assert listed[0]["steps"] >= 1500
    with (tmp_path / "two" / "events.jsonl").open("a") as events:
        events.write('{"steps": "many", "progress": null}\n')
    assert "one" in maple("runs", "--runs-dir", tmp_path).stdout
    compared = json.loads(maple("runs", "compare", "one", "two", "--runs-dir", tmp_path, "--json").stdout)
    assert compared["settings"] == {"seed": ["0", "7"]}
    undrawn = maple("runs", "compare", "one", "two", "--runs-dir", tmp_path, "--svg", tmp_path / "curves.svg")
    assert undrawn.returncode == 2
    assert "run 'one' has fewer than two looks at its strength" in " ".join(undrawn.stderr.split())
    assert not (tmp_path / "curves.svg").exists()
    assert maple("runs", "keep", "one", "--runs-dir", tmp_path).returncode == 0
    refused = maple("runs", "rm", "one", "two", "--yes", "--runs-dir", tmp_path)
    assert refused.returncode == 2
    assert "is kept" in refused.stderr
    assert (tmp_path / "two").exists()
    assert maple("runs", "rm", "two", "--yes", "--runs-dir", tmp_path).returncode == 0
    assert not (tmp_path / "two").exists()
    attached = maple("runs", "attach", "one", "--runs-dir", tmp_path)
    assert "one has ended" in attached.stderr


def _start(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command_line(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.05)


def test_being_told_to_end_it_saves_and_exits_well(tmp_path: Path) -> None:
    child = _start("train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "100000000", *TINY)
    _wait_for(tmp_path / "x" / "events.jsonl")
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert "and saved" in errors
    assert maple("eval", "x", "--runs-dir", tmp_path, "--hands", "6").returncode == 0


def test_a_lost_terminal_does_not_end_a_run(tmp_path: Path) -> None:
    child = _start("train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "100000000", *TINY)
    events = tmp_path / "x" / "events.jsonl"
    _wait_for(events)
    child.send_signal(signal.SIGHUP)
    size = events.stat().st_size
    end = time.monotonic() + 60
    while events.stat().st_size < size + 2000:
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 0


def test_a_run_starts_on_a_new_machine_from_its_storage(runs: Path, tmp_path: Path) -> None:
    storage = ["--storage", f"file://{tmp_path}/storage"]
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, steps in ((here, "1500"), (there, "3000")):
        done = maple("train", "ofc", "--run", "x", "--runs-dir", folder, "--steps", steps, *storage, *TINY)
        assert done.returncode == 0, done.stderr
    assert "brought the run from" in done.stderr
    whole = maple("train", "ofc", "--run", "x", "--runs-dir", here, "--steps", "3000", *TINY)
    assert whole.returncode == 0
    newest = [sorted((folder / "x" / "checkpoints").glob("[0-9]*"))[-1] for folder in (here, there)]
    assert newest[0].name == newest[1].name
    weights = [(path / "weights.safetensors").read_bytes() for path in newest]
    assert weights[0] == weights[1]
    done = maple("train", f"file://{tmp_path}/storage/x", "--runs-dir", tmp_path / "new", "--steps", "3700")
    assert done.returncode == 0, done.stderr  # its settings come from there as well
    assert sorted((tmp_path / "storage" / "x" / "checkpoints").glob("[0-9]*"))[-1].name == "000000004320"
    other = maple("train", f"file://{tmp_path}/storage/x", "--run", "y", "--runs-dir", tmp_path / "new")
    assert (other.returncode, "is called x; leave --run out" in " ".join(other.stderr.split())) == (2, True)


def test_settings_are_shown_as_they_will_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISCORD_WEBHOOK_URL", "https://discord.com/api/webhooks/1/verysecretword")
    monkeypatch.setenv("MAPLE_CHECKPOINT_EVERY_S", "7")
    words = ["config", "show", "ofc", "--set", "minutes=60", "--algo", "ppo", "--json"]
    said = maple(*words)
    found = json.loads(said.stdout)["settings"]
    assert "verysecretword" not in said.stdout
    assert found["notify"] == {"value": "1 address", "source": "$DISCORD_WEBHOOK_URL"}
    assert found["checkpoint_every_s"] == {"value": 7.0, "source": "$MAPLE_CHECKPOINT_EVERY_S"}
    assert found["minutes"] == {"value": 60.0, "source": "--set"}
    assert found["algo"] == {"value": "ppo", "source": "flag"}
    assert found["game.seats"] == {"value": 3, "source": "default"}
    assert found["tables"] == {"value": 1024, "source": "automatic"}
    assert found["threads"] == {"value": available_cores(), "source": "automatic"}
    assert maple(*words, "--set", "game.seats=9").returncode == 2
    assert json.loads(maple("config", "show", "ofc", "--json").stdout)["settings"]["minutes"]["value"] == 5.0


@pytest.mark.parametrize("wanted", [True, False])
def test_progress_is_shown_unless_it_is_not_wanted(wanted: bool, tmp_path: Path) -> None:
    words = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path, "--steps", "700", *TINY]
    said = maple(*words, "--set", f"log.console={wanted}")
    assert said.returncode == 0, said.stderr
    assert ("steps/s" in said.stderr) == wanted


def test_the_reference_page_has_every_setting() -> None:
    page = maple("config", "docs").stdout
    for key in [*known_keys(), *ENVIRONMENT, "CLOUD_PROVIDER", "GCS_BUCKET", "S3_BUCKET", "DISCORD_WEBHOOK_URL"]:
        assert f"`{key}`" in page, key
    assert "`practice[].share`" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) > 150
    for row in rows:
        assert all(cell.strip() for cell in row.strip("|").split("|")), row


def test_settings_are_shown_without_a_game_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_PPO__CLIP", "0.1")
    said = maple("config", "show", "--preset", "speed", "--json")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)["settings"]
    assert found["ppo.clip"] == {"value": 0.1, "source": "$MAPLE_PPO__CLIP"}
    assert found["algo"]["source"] == "default"
    assert any(setting["source"] == "preset speed" for setting in found.values())
    assert not any(key == "name" or key.startswith("game.") for key in found)
    assert "settings where no game says otherwise" in maple("config", "show").stdout
    of_a_game = maple("config", "show", "--set", "game.seats=2")
    assert (of_a_game.returncode, "name the game too" in of_a_game.stderr) == (2, True)


def test_the_evaluation_at_the_end_is_compared_with_the_best_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(evaluate.GAME_HANDS, "ofc", 60)
    words = ["--runs-dir", tmp_path, "--steps", "1500", "--evaluate", "--json", *TINY]
    first, second = (maple("train", "ofc", "--run", name, *words) for name in ("first", "second"))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    earlier, later = json.loads(first.stdout), json.loads(second.stdout)
    assert [row["against"][0] for row in earlier["evaluations"]] == ["random", "safe", "rollout"]
    assert earlier["best_before"] is None
    assert Path(later["best_before"]["run"]).name == "first"
    assert later["best_before"]["against"] == later["lowest"]["against"]
    for row in later["evaluations"]:
        assert row["win_rate_ci95"][0] <= row["win_rate"] <= row["win_rate_ci95"][1]
        assert row["points_per_hand"] >= later["lowest"]["points_per_hand"]
    every = maple("eval", "first", "--runs-dir", tmp_path, "--against", "all", "--hands", "60", "--json")
    assert {row["against"][0] for row in json.loads(every.stdout)["evaluations"]} == {"random", "safe", "rollout"}
    tables = [["random", "random"], ["safe", "second"], ["first@2160", "second"]]
    words = [word for table in tables for word in ("--against", ",".join(table))]
    several = json.loads(maple("eval", "first", "--runs-dir", tmp_path, *words, "--hands", "60", "--json").stdout)
    assert [row["against"] for row in several["evaluations"]] == tables
    assert several["lowest"] == min(several["evaluations"], key=lambda row: row["points_per_hand"])


def test_a_ladder_needs_somebody_to_meet_and_a_file_that_can_be_read(tmp_path: Path) -> None:
    alone = maple("ladder", "CartPole-v1", "--runs-dir", tmp_path)
    assert (alone.returncode, "has one seat" in alone.stderr) == (2, True)
    (tmp_path / "ladder-ofc.json").write_text('{"results": ')
    damaged = maple("ladder", "ofc", "--runs-dir", tmp_path)
    assert (damaged.returncode, "cannot be read; remove it" in damaged.stderr) == (2, True)


def test_a_checkpoint_is_not_taken_for_a_run(runs: Path) -> None:
    for command in (["rm", "--yes"], ["keep"]):
        step = next((runs / "tiny" / "checkpoints").glob("[0-9]*")).name.lstrip("0")
        said = maple("runs", *command, f"tiny@{step}", "--runs-dir", runs)
        assert (said.returncode, "is a checkpoint, not a run" in said.stderr) == (2, True)
    assert maple("runs", "--state", "asleep", "--runs-dir", runs).returncode == 2
