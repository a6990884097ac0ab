"""Imports go downwards, pure rooms stay pure, Spark stays in the pipeline; and the check bites."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tidings

PROJECT = Path(__file__).parent.parent
PACKAGE = Path(tidings.__file__).parent


def lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Check the package under `source` against the project's contracts."""
    command = Path(sys.executable).with_name("lint-imports")
    config = PROJECT / "pyproject.toml"
    return subprocess.run(  # the linter looks into the folder it runs in first
        [command, "--config", config, "--no-cache"], capture_output=True, text=True, cwd=source
    )


def test_the_package_keeps_every_contract() -> None:
    checked = lint_imports(PACKAGE.parent)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "3 kept, 0 broken" in checked.stdout


@pytest.mark.parametrize(
    ("room", "statement", "broken"),
    [
        ("core", "import time", "the pure rooms BROKEN"),
        ("sim", "from os import path", "the pure rooms BROKEN"),
        ("sim", "from pathlib import Path", "the pure rooms BROKEN"),
        ("core", "from tidings.files import toml", "downwards only BROKEN"),
        ("sim", "from tidings.traces import files", "the pure rooms BROKEN"),
        ("broker", "import asyncio.events", "the pure rooms BROKEN"),
        ("live", "from pyspark.sql import SparkSession", "Spark stays in the pipeline BROKEN"),
        ("routing", "from tidings import broker", "downwards only BROKEN"),
        ("routing", "from tidings import scheduling", "downwards only BROKEN"),
        ("linking", "from tidings import routing", "downwards only BROKEN"),
        ("linking", "import time", "the pure rooms BROKEN"),
    ],
)
def test_a_planted_import_breaks_its_contract(
    room: str, statement: str, broken: str, tmp_path: Path
) -> None:
    shutil.copytree(PACKAGE, tmp_path / "tidings", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tidings" / room / "planted.py").write_text(statement + "\n")
    checked = lint_imports(tmp_path)
    assert checked.returncode == 1
    assert broken in checked.stdout, checked.stdout + checked.stderr


def test_a_room_without_a_place_breaks_the_layers(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "tidings", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tidings" / "attic.py").touch()
    checked = lint_imports(tmp_path)
    assert checked.returncode == 1
    assert "tidings.attic" in checked.stdout


@pytest.mark.parametrize(
    ("room", "refused"), [("core", True), ("sim/courses", True), ("traces", False)]
)
def test_only_rooms_that_may_read_files_import_a_reader_of_parquet(
    room: str, refused: bool
) -> None:
    """A part of an external package, so ruff watches what the import contracts cannot name."""
    ruff, planted = Path(sys.executable).with_name("ruff"), f"src/tidings/{room}/planted.py"
    done = subprocess.run(
        [ruff, "check", "--select", "TID251", "--quiet", "--stdin-filename", planted, "-"],
        input="import pyarrow.parquet as pq\n",
        capture_output=True,
        text=True,
        cwd=PROJECT,
    )
    assert ("TID251" in done.stdout) == refused, done.stdout + done.stderr
