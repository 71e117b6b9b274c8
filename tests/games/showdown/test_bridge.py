"""The bridge's own tests, and that its sources are typed."""

from __future__ import annotations

import os
import subprocess

from maple.games.showdown.runtime import find_node, installed_modules
from maple.games.showdown.schema import BRIDGE, load_schema


def test_the_bridges_own_tests_pass() -> None:
    environment = {**os.environ, "MAPLE_SHOWDOWN_MODULES": str(installed_modules())}
    files = sorted(str(path) for path in (BRIDGE / "test").glob("*.test.js"))
    done = subprocess.run([find_node(), "--test", *files], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_schema_is_aligned_and_fills_whole_words() -> None:
    schema = load_schema()
    assert schema.bytes == 8 * schema.words
    taken = set()
    for group in schema.groups.values():
        for number in range(group.repeat):
            for field in group.fields.values():
                at = group.byte(field.name, number)
                assert at % field.size == 0, (group.name, field.name)
                places = set(range(at, at + field.size * field.count))
                assert not places & taken
                taken |= places
    assert max(taken) < schema.bytes
