"""How many cores there are for a process in a container."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from maple.core.cores import available_cores


def test_the_share_of_a_container_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert available_cores(tmp_path) == 16
    write("proc/self/cgroup", "0::/pod/box\n")
    write("sys/fs/cgroup/pod/box/cpu.max", "max 100000\n")
    assert available_cores(tmp_path) == 16
    write("sys/fs/cgroup/pod/cpu.max", "600000 100000\n")  # around it all
    assert available_cores(tmp_path) == 6
    write("sys/fs/cgroup/pod/box/cpu.max", "150000 100000\n")
    assert available_cores(tmp_path) == 2
    write("sys/fs/cgroup/pod/box/cpu.max", "20000 100000\n")
    assert available_cores(tmp_path) == 1
    write("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/docker/not-seen-from-here\n")
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert available_cores(tmp_path) == 16
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n")
    assert available_cores(tmp_path) == 3
