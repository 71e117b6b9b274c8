"""Whatever a run says or writes, however it is started: no address of messages and no credential is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from maple.cli import sitting
from tests.cli.command import TINY, maple, maple_alone
from tests.runs.mirroring import wait_until

ADDRESS = "json://user:verysecretword@127.0.0.1:9/hooktoken12345"
DISCORD = "https://discord.com/api/webhooks/123456789012345678/verysecretword-hooktoken12345"
SECRETS = (b"verysecretword", b"hooktoken12345", b"123456789012345678", b"verysecretkey")


@pytest.fixture
def words(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | Path]:
    """A command that knows secrets, by this way; nobody hears its messages, nor leave they this machine."""
    for variable in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "verysecretkey")
    command = ["train", "ofc", "--run", "x", "--runs-dir", tmp_path / "runs", "--steps", "1500", *TINY]
    if given == "--notify":
        return [*command, "--notify", ADDRESS]
    monkeypatch.setenv(given, DISCORD if given == "DISCORD_WEBHOOK_URL" else ADDRESS)
    return [*command, "--profile", "--storage", f"file://{tmp_path}/mirror"]


def _check(said: list[str], folder: Path) -> None:
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    for text in (*(text.encode() for text in said), *written):
        for secret in SECRETS:
            assert secret not in text


@pytest.mark.parametrize("given", ["--notify", "MAPLE_NOTIFY_URL", "DISCORD_WEBHOOK_URL"])
def test_secrets_leave_no_trace(
    given: str,
    words: list[str | Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sitting, "MESSAGES_S", 2.0)
    done = maple(*words)
    assert done.returncode == 0, done.stderr
    assert "could not be sent" in done.stderr
    assert (tmp_path / "mirror" / "x" / "config.json").is_file() == (given != "--notify")
    failed = maple(*words, "--set", "net.hidden=[8]")  # not what the run was begun with
    assert failed.returncode == 2, failed.stderr
    shown = maple("config", "show", "ofc", *words[-2:])
    said = [text for one in (done, failed, shown) for text in (one.stdout, one.stderr)]
    _check([*said, *capfd.readouterr()], tmp_path)


@pytest.mark.parametrize("given", ["--notify", "DISCORD_WEBHOOK_URL"])
def test_a_detached_run_leaves_no_trace_of_them_either(given: str, words: list[str | Path], tmp_path: Path) -> None:
    done = maple_alone(*words, "--detach")
    assert done.returncode == 0, done.stderr
    attached = maple("runs", "attach", "x", "--runs-dir", tmp_path / "runs")
    assert "x has ended" in attached.stderr
    log = tmp_path / "runs" / "x" / "log.txt"
    wait_until(lambda: "could not be sent" in log.read_text(), 60.0)
    listed = maple("runs", "--runs-dir", tmp_path / "runs", "--json")
    said = [text for one in (done, attached, listed) for text in (one.stdout, one.stderr)]
    _check(said, tmp_path)
