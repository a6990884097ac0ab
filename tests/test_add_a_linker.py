"""The guide's example of a linker, followed to the letter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, package_with

PAGE = ROOT / "docs" / "guide" / "add-a-linker.md"

# Twelve brokers join one after the other, each by another member; then one of them crashes.
JOINED = """
import json

from support.moving_overlay import MovingOverlay
from tidings.linking import LINKERS
from tidings.linking.options import LinkingOptions

overlay = MovingOverlay(lambda: LINKERS["ring"](LinkingOptions()), lambda a, b: 0.010)
names = [f"b{number:02}" for number in (7, 3, 11, 0, 5, 9, 1, 8, 2, 10, 4, 6)]
for place, name in enumerate(names):
    overlay.join(name, *names[max(0, place - 1) : place])
    overlay.round()
overlay.settle()
joined = sorted(overlay.links)
overlay.crash("b05")
overlay.settle()
print(json.dumps([joined, sorted(overlay.links)]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_with(PAGE, tmp_path_factory.mktemp("followed"), "linking/ring.py")


def test_brokers_that_follow_the_new_linker_form_a_ring_and_close_it_after_a_crash(
    package: Path,
) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT / 'tests'}"}
    done = subprocess.run(
        [sys.executable, "-c", JOINED], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    joined, after = json.loads(done.stdout)
    assert joined == ring([f"b{number:02}" for number in range(12)])
    assert after == ring([f"b{number:02}" for number in range(12) if number != 5])


def ring(names: list[str]) -> list[list[str]]:
    return sorted(sorted([name, names[place - 1]]) for place, name in enumerate(names))
