"""Workers take whole files, and only one of them starts Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from support.lanes import NICENESS

TESTS = Path(__file__).parent.parent

SPARKS = 'import pytest\npytestmark = pytest.mark.xdist_group("spark")\n'
TOLD = """
import os, pytest
@pytest.mark.parametrize("number", range(5))
def test_tells(number):
    with open("told", "a") as told:
        told.write(f"{__name__} {os.environ['PYTEST_XDIST_WORKER']} {os.nice(0)}\\n")
"""


def workers_of(folder: Path, *chosen: str, **files: str) -> dict[str, set[tuple[str, int]]]:
    """Which workers ran tests of each file, and how far behind others they stood."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    options = ("-q", "-p", "support.lanes", "-p", "no:cacheprovider", "-n", "3")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--dist", "loadscope", *chosen],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert f"{5 * len(files)} passed" in done.stdout, done.stdout + done.stderr
    found = defaultdict(set)
    for line in (folder / "told").read_text().splitlines():
        name, worker, niceness = line.split()
        found[name].add((worker, int(niceness) - os.nice(0)))
    return found


def test_each_file_has_one_worker_and_all_of_spark_the_same(tmp_path: Path) -> None:
    sparks = {f"test_spark_{number}": SPARKS + TOLD for number in range(4)}
    others = {f"test_other_{number}": TOLD for number in range(8)}
    found = workers_of(tmp_path, **sparks, **others)
    assert all(len(workers) == 1 for workers in found.values())
    [(first, behind)] = set.union(*(found[name] for name in sparks))
    assert behind == 0
    others_behind = {behind for worker, behind in set.union(*found.values()) if worker != first}
    assert others_behind == {NICENESS}


def test_workers_that_find_nothing_for_them_end(tmp_path: Path) -> None:
    found = workers_of(tmp_path, **{f"test_spark_{number}": SPARKS + TOLD for number in range(4)})
    assert len(set.union(*found.values())) == 1


def test_where_only_real_delays_are_compared_no_other_file_is_imported(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = timing\n")
    (tmp_path / "test_other.py").write_text('open("told", "a").write("test_other collected 0\\n")')
    timing = "import pytest\npytestmark = pytest.mark.timing\n"
    found = workers_of(tmp_path, "-m", "timing", test_timing=timing + TOLD)
    assert set(found) == {"test_timing"}
    assert {behind for _, behind in found["test_timing"]} == {0}
