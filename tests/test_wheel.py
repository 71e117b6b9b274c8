"""What ships: the wheel is built and runs in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_wheel_runs_maple_games_in_a_new_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("maple_rl-*.whl")
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    # The dependencies come from this environment, so that nothing is downloaded; Maple itself only from the wheel.
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    mine = [line for line in sys.path if line.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(mine))
    pip = [
        str(home / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--force-reinstall",
        str(wheel),
    ]
    subprocess.run(pip, check=True, capture_output=True)
    where = subprocess.run(
        [home / "bin" / "python", "-c", "import maple; print(maple.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(home) in where.stdout
    done = subprocess.run([home / "bin" / "maple", "games"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ofc" in done.stdout
    presets = subprocess.run(
        [home / "bin" / "python", "-c", "from maple.core.presets import preset_names; print(preset_names())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "speed" in presets.stdout
    bridge = packages / "maple" / "games" / "showdown" / "bridge"
    assert (bridge / "src" / "main.js").exists()
    assert (bridge / "package-lock.json").exists()
