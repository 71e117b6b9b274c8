"""Make `.venv` with everything pinned; do nothing when it is already right.

A `.venv` that was copied from another machine, made by another Python or moved is remade from scratch.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / ".maple-setup"
EXTRAS = "peers,notify,storage,records,export,showdown,dev"


def say(text: str) -> None:
    sys.stderr.write(f"setup: {text}\n")


def home_stamp() -> str:
    """What a virtual environment is tied to: this place, this interpreter, this kind of machine."""
    return "\n".join([str(VENV), sys.base_prefix, sys.version, platform.platform()])


def content_stamp() -> str:
    """What is installed into it."""
    lock = ROOT / "src" / "maple" / "games" / "showdown" / "bridge" / "package-lock.json"
    files = b"".join(path.read_bytes() for path in (ROOT / "pyproject.toml", ROOT / "constraints.txt", lock))
    return hashlib.sha256(files + EXTRAS.encode()).hexdigest()


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (an older Python may well start this file)
        here = platform.python_version()
        say(f"Maple needs Python 3.11 or newer, this is {here}; run: make PYTHON=/path/to/python3.11")
        return 2
    wanted = f"{home_stamp()}\n{content_stamp()}"
    found = STAMP.read_text() if STAMP.exists() else ""
    python = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    works = python.exists() and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0
    if works and found == wanted:
        return 0
    if VENV.exists() and not (works and found.startswith(home_stamp())):
        say("the .venv here belongs to another machine or Python (or was never finished): remaking it")
        shutil.rmtree(VENV)
    if not VENV.exists():
        say("making .venv")
        venv.create(VENV, with_pip=True)
    say("installing pinned dependencies (a few minutes the first time)")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    code = subprocess.run([*pip, "-c", ROOT / "constraints.txt", "-e", f"{ROOT}[{EXTRAS}]"]).returncode
    if code:
        say("pip failed, see above; mend that and run the same command again")
        return code
    STAMP.write_text(wanted)
    if subprocess.run([python, "-m", "maple.cli", "showdown", "setup"], stdout=subprocess.DEVNULL).returncode:
        say("the Showdown simulator could not be installed; the rest works (maple showdown setup tries again)")
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
